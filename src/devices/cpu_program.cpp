#include "devices/cpu_program.h"

#include <algorithm>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "devices/elf_object.h"

namespace tuff::devices {

using namespace hcq;

// A loaded object file. It holds its bytes, so the bytes' address stays a valid key while it lives.
struct CpuLoader::Image {
  explicit Image(std::shared_ptr<const std::vector<uint8_t>> b)
      : bytes(std::move(b)), object(*bytes) {}
  std::shared_ptr<const std::vector<uint8_t>> bytes;
  ElfObject object;
};

namespace {

// Shared ownership is real here: several programs come from one image.
class ImageProgram final : public CpuProgram {
 public:
  ImageProgram(const render::Binary& b, const void* function, std::shared_ptr<const void> image)
      : CpuProgram(b, reinterpret_cast<render::CpuKernelFn>(const_cast<void*>(function))),
        image_(std::move(image)) {}

 private:
  std::shared_ptr<const void> image_;
};

#if defined(__x86_64__)
constexpr const char* kArch = "x86-64";
bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
#else
constexpr const char* kArch = "unknown";
bool has_avx512() { return false; }
#endif

// What one thread may pack: what its own cache holds and half its share of the last one.
uint32_t scratch_bytes(const Target& t) {
  const uint64_t held = t.l2_bytes + t.l3_bytes / std::max(t.cores, 1u) / 2;
  return static_cast<uint32_t>(std::clamp<uint64_t>(held, 1 << 20, 64 << 20) & ~uint64_t{4095});
}

}  // namespace

uint32_t cpu_thread_count() {
  const int64_t asked = env_int(Env::TUFF_THREADS);
  return asked > 0 ? static_cast<uint32_t>(asked) : os::core_count();
}

Target cpu_target(const std::string& kind) {
  Target t;
  t.device = kind;
  t.renderer = "c";
  t.arch = kArch;
  t.identity = os::cpu_identity();
  t.cores = cpu_thread_count();
  t.vector_bytes = has_avx512() ? 64 : 32;
  t.vector_registers = has_avx512() ? 32 : 16;
  t.l1_bytes = os::cache_bytes(1);
  t.l2_bytes = os::cache_bytes(2);
  t.l3_bytes = os::cache_bytes(3);
  t.prefetch_bytes = 2048;  // tens of lines: what a core waits for at once, twice
  t.shared_bytes = scratch_bytes(t);
  t.max_groups = {INT32_MAX, INT32_MAX, INT32_MAX};
  t.launch_cost_ns = 100;  // on the consumer's own thread; sharing among workers costs about 10 us
  t.features = {.i8 = true,
                .i16 = true,
                .i64 = true,
                .f64 = true,
                .f16_casts = true,
                .u32_to_f32 = true,
                .storage8 = true,
                .storage16 = true,
                .device_address = true,
                .streaming_stores = true,
                .signed_zero_inf_nan = true,
                .known_zero_products = true,
                .sqrt = true};
  if (env_flag(Env::TUFF_CPU_MATRICES) && os::allow_matrix_registers())
    t.matrix_shapes = {{16, 16, 32, DType::BF16, DType::BF16, DType::F32}};
  return t;
}

std::shared_ptr<CpuLoader::Image> CpuLoader::image(const render::Binary& b) {
  if (b.format != render::BinaryFormat::Object || b.bytes == nullptr)
    fail<CompileError>("{}: the CPU loads object files", b.name);
  std::lock_guard lock(mutex_);
  std::weak_ptr<Image>& known = images_[b.bytes.get()];
  std::shared_ptr<Image> result = known.lock();
  if (result == nullptr) {
    std::erase_if(images_, [&](const auto& row) {
      return row.first != b.bytes.get() && row.second.expired();
    });
    result = std::make_shared<Image>(b.bytes);
    known = result;
  }
  return result;
}

std::vector<std::unique_ptr<Program>> CpuLoader::load(std::span<const render::Binary> binaries) {
  std::vector<std::unique_ptr<Program>> programs;
  programs.reserve(binaries.size());
  for (const render::Binary& b : binaries) {
    std::shared_ptr<Image> loaded = image(b);
    const void* function = loaded->object.function(b.symbol);
    programs.push_back(std::make_unique<ImageProgram>(b, function, std::move(loaded)));
  }
  return programs;
}

}  // namespace tuff::devices
