#include "devices/cuda/api.h"

#include <map>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"

namespace tuff::devices::cuda {
namespace {

constexpr int kOldestDriver = 12000;  // CUDA 12.0: the functions' versions are of it

os::Library open_library(std::string* path) {
  const std::string named = env_text(Env::TUFF_CUDA_LIBRARY);
  const std::string names[] = {named.empty() ? "libcuda.so.1" : named};
  std::string why;
  auto library = os::Library::open(names, &why);
  if (!library && !named.empty())
    fail<Unsupported>("TUFF_CUDA_LIBRARY='{}' cannot be opened: {}", named, why);
  if (!library)
    fail<Unsupported>(
        "no CUDA driver: install NVIDIA's driver 525 or later (Debian: libcuda1) ({})", why);
  *path = names[0];
  return *std::move(library);
}

template <class Function>
void load_one(const os::Library& library, Function& slot, const char* symbol) {
  slot = reinterpret_cast<Function>(library.symbol(symbol));
  if (!slot)
    fail<Unsupported>("the CUDA driver lacks {}: driver 525 or later is needed (CUDA 12)", symbol);
}

CudaApi load() {
  CudaApi api;
  const os::Library library = open_library(&api.path);
#define TUFF_CUDA(name, symbol, ...) load_one(library, api.name, #symbol);
#include "devices/cuda/functions.def"
  if (const CUresult code = api.Init(0); code != CUDA_SUCCESS)
    fail<Unsupported>("cuInit returned {}", error_text(api, code));
  int version = 0;
  const CUresult code = api.DriverGetVersion(&version);
  if (code != CUDA_SUCCESS)
    fail<Unsupported>("cuDriverGetVersion returned {}", error_text(api, code));
  if (version < kOldestDriver)
    fail<Unsupported>("the driver is of CUDA {}.{}: 12.0 or later is needed (driver 525)",
                      version / 1000, version % 1000 / 10);
  return api;
}

}  // namespace

// What was found stays, by the setting that it was found with: a library is never closed.
const CudaApi& cuda_api() {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<CudaApi>>& known =
      *std::make_unique<std::map<std::string, std::unique_ptr<CudaApi>>>().release();
  std::lock_guard lock(mutex);
  auto& api = known[env_text(Env::TUFF_CUDA_LIBRARY)];
  if (!api) api = std::make_unique<CudaApi>(load());
  return *api;
}

std::string error_text(const CudaApi& api, CUresult code) {
  const char *name = nullptr, *text = nullptr;
  if (api.GetErrorName(code, &name) != CUDA_SUCCESS || !name)
    return fmt::format("CUDA error {}", code);
  if (api.GetErrorString(code, &text) != CUDA_SUCCESS || !text)
    return fmt::format("{} ({})", name, code);
  return fmt::format("{} ({}): {}", name, code, text);
}

}  // namespace tuff::devices::cuda
