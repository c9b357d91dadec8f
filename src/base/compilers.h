// The compilers as programs: finds them (TUFF_CC, TUFF_CLANG, TUFF_ACO), names their versions,
// turns C sources and SPIR-V into object files, or into PTX. Called by the renderers and by the
// devices' probes. Knows nothing of kernels or of how objects are loaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/target.h"

namespace tuff {

// Path of the compiler: TUFF_CC, else clang-19, clang, clang-18 ... clang-14 on PATH.
std::optional<std::string> find_c_compiler();
std::string why_no_c_compiler();  // and the remedy; empty if compiler_identity() has one

// First line of `--version`, part of disk-cache keys. Without a compiler that of the one that
// compiled last, as the cache folder has it: what it compiled may be in the disk cache. Empty if
// there is none either. Cached.
std::string compiler_identity();

// Compiles all at once, one child per unit, at most one per core. Same order as given.
// Throws CompileError with the first lines of the compiler's message, or Unsupported without one.
std::vector<std::vector<uint8_t>> compile_c(std::span<const std::string> translation_units);

// The compiler for AMD GPUs: clang 19 or later. TUFF_CLANG, else clang-19, clang-20 ... on PATH.
std::optional<std::string> find_amdgpu_compiler();
std::string amdgpu_compiler_identity();
std::string why_no_amdgpu_compiler();  // as why_no_c_compiler()

// As compile_c, of OpenCL C, for a processor as LLVM names it ("gfx1100"): relocatable objects.
std::vector<std::vector<uint8_t>> compile_amdgpu(std::span<const std::string> translation_units,
                                                 const std::string& processor);

// PTX for NVIDIA's GPUs, by the same compiler and of OpenCL C too: the text of each unit. Processors
// as LLVM names them ("sm_86"); those that clang 19 does not know yet get PTX of one before them,
// which they run as well.
std::string why_no_nvptx_compiler();
std::vector<std::vector<uint8_t>> compile_nvptx(std::span<const std::string> translation_units,
                                                const std::string& processor);
// NVIDIA's assembler of PTX (ptxas.h): TUFF_PTXAS, else ptxas on PATH.
std::optional<std::string> find_ptxas();

// Mesa's compiler for AMD GPUs, ACO, through its Vulkan driver: the program tuff_aco. TUFF_ACO,
// else beside the program or module that runs, or where it was installed.
std::optional<std::string> find_aco_compiler();
std::string aco_compiler_identity();  // the driver's version; empty without program or driver
std::string why_no_aco_compiler();
std::vector<MatrixShape> aco_matrix_shapes();  // cooperative matrices that the driver compiles
bool aco_keeps_denormals();  // of f32, in kernels that ask: right since Mesa 25.0.7 at the latest
// The driver that TUFF_RADV names: a library, or that of a folder with a system of its own, as
// scripts/mesa makes them; empty: the system's. Unsupported if the folder has none.
std::string radv_library(const std::string& named);

// A kernel as a compute module of SPIR-V with one push constant, the address of its arguments.
struct SpirvKernelModule {
  std::string symbol;  // its name in the object
  std::span<const uint32_t> words;
};
// As compile_amdgpu: each unit becomes an object of all its kernels.
std::vector<std::vector<uint8_t>> compile_aco(
    std::span<const std::vector<SpirvKernelModule>> units, const std::string& processor);

// A compute shader as Vulkan's programs have it.
struct VulkanShader {
  std::span<const uint8_t> spirv;
  std::string entry;                                   // "": the only one
  std::vector<std::pair<uint32_t, uint32_t>> buffers;  // each one's set and binding
  uint32_t push_bytes = 0;
  std::map<uint32_t, uint32_t> constants;  // specialized: words by SpecId
};
// An object of one kernel, "main", whose metadata names what its user SGPRs hold (.user_sgprs):
// "set.N", "push", "push.BYTE", "groups.AXIS"; addresses are the lower halves of those that begin
// with kVulkanAddresses.
std::vector<uint8_t> compile_aco(const VulkanShader& shader, const std::string& processor);
inline constexpr uint64_t kVulkanAddresses = 0xffff8000'00000000;

}  // namespace tuff
