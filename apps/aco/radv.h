// RadvCompiler: Mesa's Vulkan driver for AMD's GPUs as a compiler. Its null device, which
// RADV_FORCE_FAMILY opens, runs nothing and compiles by ACO for a GPU that need not be there.
// Opened once a process, before any thread: the driver is told by environment variables.
// Unsupported says what is missing and how to get it, CompileError what the driver refused.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aco/shader_interface.h"
#include "base/target.h"

namespace tuff::aco {

// A module, and what a pipeline is made with.
struct ShaderModule {
  std::span<const uint32_t> words;
  std::string entry;
  uint32_t push_bytes = 0;
  std::map<Binding, BufferKind> buffers;   // each set has its own in the order of their numbers
  std::map<uint32_t, uint32_t> constants;  // specialized: words by SpecId
};

struct CompiledShader {
  std::vector<uint32_t> code;                   // instructions, from the first one on
  std::map<std::string, uint64_t> statistics;   // as the driver names them: "VGPRs", "Latency"
  std::string assembly;                         // its own listing
  std::string nir, aco_ir;                      // what it was made of, where the driver tells
  uint64_t statistic(const std::string& name) const;  // CompileError where the driver has none
};

class RadvCompiler {
 public:
  // `processor` as LLVM names it: "gfx1100".
  explicit RadvCompiler(const std::string& processor);
  ~RadvCompiler();
  // "RADV, Mesa 22.3.6 (LLVM 15.0.6)", part of cache keys.
  const std::string& version() const;
  const std::vector<MatrixShape>& matrices() const;  // cooperative matrices of a subgroup
  // In waves of 32 lanes.
  CompiledShader compile(const ShaderModule& module) const;

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;
};

}  // namespace tuff::aco
