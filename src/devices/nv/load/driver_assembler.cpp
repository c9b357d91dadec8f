#include "devices/nv/load/driver_assembler.h"

#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/check.h"
#include "base/os.h"

namespace tuff::devices::nv {
namespace {

using Compiler = void*;  // nvPTXCompilerHandle
using Result = int;      // nvPTXCompileResult; 0: success

struct CompilerApi {
  Result (*create)(Compiler* compiler, size_t bytes, const char* ptx) = nullptr;
  Result (*compile)(Compiler compiler, int count, const char* const* options) = nullptr;
  Result (*program_size)(Compiler compiler, size_t* bytes) = nullptr;
  Result (*program)(Compiler compiler, void* to) = nullptr;
  Result (*log_size)(Compiler compiler, size_t* bytes) = nullptr;
  Result (*log)(Compiler compiler, char* to) = nullptr;
  Result (*destroy)(Compiler* compiler) = nullptr;
};

CompilerApi open_api(const std::string& path) {
  std::string why;
  const std::string places[] = {path};
  const auto library = os::Library::open(places, &why);
  if (!library)
    fail<Unsupported>("NV: no assembler of PTX: {} cannot be opened ({}); it is a part of NVIDIA's "
                      "driver (Debian: libnvidia-ptxjitcompiler1)",
                      path, why.empty() ? "no such file" : why);
  CompilerApi api;
  std::vector<std::string> missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library->symbol(name));
    if (!function) missing.push_back(name);
  };
  find(api.create, "nvPTXCompilerCreate");
  find(api.compile, "nvPTXCompilerCompile");
  find(api.program_size, "nvPTXCompilerGetCompiledProgramSize");
  find(api.program, "nvPTXCompilerGetCompiledProgram");
  find(api.log_size, "nvPTXCompilerGetErrorLogSize");
  find(api.log, "nvPTXCompilerGetErrorLog");
  find(api.destroy, "nvPTXCompilerDestroy");
  if (!missing.empty())
    fail<Unsupported>("NV: no assembler of PTX: {} has no {}", path, fmt::join(missing, ", "));
  return api;
}

// Each library is opened once and stays.
const CompilerApi& api_of(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, CompilerApi>& known =
      *std::make_unique<std::map<std::string, CompilerApi>>().release();
  std::lock_guard lock(mutex);
  const auto found = known.find(path);
  return found != known.end() ? found->second : known.emplace(path, open_api(path)).first->second;
}

class Compilation {
 public:
  Compilation(const CompilerApi& api, const std::string& ptx) : api_(api) {
    if (api.create(&compiler_, ptx.size(), ptx.c_str()) != 0)
      fail<CompileError>("nvPTXCompilerCreate failed for a text of {} bytes", ptx.size());
  }
  ~Compilation() { api_.destroy(&compiler_); }
  Compilation(const Compilation&) = delete;
  std::vector<uint8_t> run(uint32_t sm) {
    const std::string name = fmt::format("--gpu-name=sm_{}{}", sm, sm == 90 ? "a" : "");
    const char* const options[] = {name.c_str()};
    if (const Result result = api_.compile(compiler_, 1, options); result != 0)
      fail<CompileError>("nvPTXCompilerCompile({}) returned {}\n{}", name, result, log());
    size_t bytes = 0;
    Result result = api_.program_size(compiler_, &bytes);
    std::vector<uint8_t> out(bytes);
    if (result == 0) result = api_.program(compiler_, out.data());
    if (result != 0) fail<CompileError>("nvPTXCompilerGetCompiledProgram returned {}", result);
    return out;
  }

 private:
  std::string log() const {
    size_t bytes = 0;
    if (api_.log_size(compiler_, &bytes) != 0 || bytes == 0) return "";
    std::string text(bytes, '\0');
    return api_.log(compiler_, text.data()) == 0 ? text : "";
  }
  const CompilerApi& api_;
  Compiler compiler_ = nullptr;
};

}  // namespace

std::vector<uint8_t> assemble_by_driver(const std::string& ptx, uint32_t sm,
                                        const std::string& library) {
  return Compilation(api_of(library), ptx).run(sm);
}

}  // namespace tuff::devices::nv
