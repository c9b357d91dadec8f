// Runs a compute module on the host from its words alone, as the SPIR-V specification says: kernels
// of devices that are not at hand are executed, and every access is checked: within its memory,
// aligned as it claims, written before it is read. Invocations stop at barriers and shuffles until
// all have come. Knows the argument block's ABI (render/binary.h), nothing of the renderer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "render/binary.h"

namespace tuff::render::testing {

struct SpirvLaunch {
  ArgLayout args;
  std::vector<std::span<uint8_t>> buffers;  // argument i
  std::vector<int32_t> scalars;
  std::array<uint32_t, 3> groups{1, 1, 1};
  uint32_t subgroup_size = 1;
};

// InternalError naming what the module does that it must not, or what is not known here.
void run_spirv(std::span<const uint32_t> words, const SpirvLaunch& launch);

}  // namespace tuff::render::testing
