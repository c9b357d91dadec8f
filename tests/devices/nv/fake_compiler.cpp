// A library in place of the PTX compiler that NVIDIA's driver brings along: what it exports of the
// PTX Compiler API, over the emulated machine's assembler. A text that has no kernel is an error.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tuff/error.h>

#include "emu/nv/assembler.h"

#define FAKE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

struct Compilation {
  std::string text, log;
  std::vector<uint8_t> object;
};

Compilation& of(void* handle) { return *static_cast<Compilation*>(handle); }

}  // namespace

FAKE_EXPORT int nvPTXCompilerCreate(void** handle, size_t bytes, const char* text) {
  *handle = std::make_unique<Compilation>(Compilation{std::string(text, bytes), {}, {}}).release();
  return 0;
}
FAKE_EXPORT int nvPTXCompilerCompile(void* handle, int count, const char* const* options) {
  const std::string name = count == 1 ? options[0] : "", wanted = "--gpu-name=sm_";
  if (!name.starts_with(wanted)) return 5;
  try {
    of(handle).object =
        tuff::emu::nv::assemble(of(handle).text, uint32_t(std::stoul(name.substr(wanted.size()))));
    return 0;
  } catch (const tuff::Error& e) {
    of(handle).log = e.what();
    return 4;
  }
}
FAKE_EXPORT int nvPTXCompilerGetCompiledProgramSize(void* handle, size_t* bytes) {
  *bytes = of(handle).object.size();
  return 0;
}
FAKE_EXPORT int nvPTXCompilerGetCompiledProgram(void* handle, void* to) {
  std::memcpy(to, of(handle).object.data(), of(handle).object.size());
  return 0;
}
FAKE_EXPORT int nvPTXCompilerGetErrorLogSize(void* handle, size_t* bytes) {
  *bytes = of(handle).log.size();
  return 0;
}
FAKE_EXPORT int nvPTXCompilerGetErrorLog(void* handle, char* to) {
  std::memcpy(to, of(handle).log.data(), of(handle).log.size());
  return 0;
}
FAKE_EXPORT int nvPTXCompilerDestroy(void** handle) {
  const std::unique_ptr<Compilation> last(static_cast<Compilation*>(*handle));
  *handle = nullptr;
  return 0;
}
