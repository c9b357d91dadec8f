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

namespace tuff::aco {

struct CompiledShader {
  std::vector<uint32_t> code;                   // instructions, from the first one on
  std::map<std::string, uint64_t> statistics;   // as the driver names them: "VGPRs", "Latency"
  std::string assembly;                         // its own listing
  uint64_t statistic(const std::string& name) const;  // CompileError where the driver has none
};

class RadvCompiler {
 public:
  // `processor` as LLVM names it: "gfx1100".
  explicit RadvCompiler(const std::string& processor);
  ~RadvCompiler();
  // "RADV, Mesa 22.3.6 (LLVM 15.0.6)", part of cache keys.
  const std::string& version() const;
  // In waves of 32 lanes, with `push_bytes` of push constants and no descriptors.
  CompiledShader compile(std::span<const uint32_t> spirv, const std::string& entry,
                         uint32_t push_bytes) const;

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;
};

}  // namespace tuff::aco
