// SPIR-V for a GPU of AMD's without its Vulkan driver: Mesa's compiler, started as a program, makes
// of modules what clang makes of C.
#include <xxhash.h>

#include "base/check.h"
#include "base/compilers.h"
#include "render/spirv.h"
#include "render/units.h"

namespace tuff::render {
namespace {

constexpr size_t kUnitBytes = 100'000;  // what starting the driver costs, in bytes of SPIR-V

}  // namespace

Source render_aco(const kernel::LinearKernel& k, const Target& t) {
  Source s = render_spirv(k, t);
  s.format = BinaryFormat::AmdgpuObject;
  s.symbol = fmt::format("k{:016x}", XXH64(s.words.data(), s.words.size() * sizeof(uint32_t), 0));
  return s;
}

std::vector<Binary> compile_aco_sources(std::span<const Source> sources, const Target& t) {
  return compile_in_units(sources, kUnitBytes, [&](std::span<const Unit> units) {
    std::vector<std::vector<SpirvKernelModule>> modules;
    for (const Unit& unit : units) {
      auto& kernels = modules.emplace_back();
      for (size_t i : unit) kernels.push_back({sources[i].symbol, sources[i].words});
    }
    return compile_aco(modules, t.arch);
  });
}

std::string aco_identity(const Target& t) {
  return fmt::format("{}; {}; {}", aco_compiler_identity(), t.arch, spirv_identity(t));
}

}  // namespace tuff::render
