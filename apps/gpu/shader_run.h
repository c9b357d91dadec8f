// A compute shader of anybody's on the emulated GPU: compiled by Mesa's Vulkan driver, given what
// Vulkan would give it (descriptors, push constants) or an argument block as tuff's own kernels
// take it, executed and counted. Called by gpu_shader. Must never parse options or print.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/emulated_run.h"

namespace tuff::gpu {

// Bytes before the launch, and what is there afterwards.
struct ShaderBuffer {
  uint32_t set = 0, binding = 0;
  std::vector<uint8_t> bytes;
};

// One of the argument block: a scalar's bytes, or a buffer, whose address lies in the block.
struct ShaderArgument {
  std::vector<uint8_t> bytes;
  bool is_buffer = false;
};

struct ShaderLaunch {
  std::vector<uint8_t> spirv;
  std::string entry;                       // "": the only one
  std::map<uint32_t, uint32_t> constants;  // words by SpecId
  std::vector<ShaderBuffer> buffers;
  std::vector<uint8_t> push;
  // Where there are any, the push constants are the address of their block.
  std::vector<ShaderArgument> arguments;
  std::array<uint32_t, 3> groups{1, 1, 1};
};

struct ShaderReport {
  emu_api::KernelProfile profile;
  std::string wrong;  // what the emulator's checks found; empty if nothing
};

// Changes the launch's buffers. Throws where the shader does not compile, or wants other inputs.
ShaderReport run_shader(ShaderLaunch& launch, const EmulationOptions& options);

}  // namespace tuff::gpu
