// What `tuff emu run` launches: sizes, buffers and the argument block of a kernel, read from a file
// and from what the code object says of its arguments. Called by run_kernel.cpp; knows
// no interpreter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tuff/dtype.h>
#include <tuff/error.h>

#include "base/json.h"

namespace tuff::emu {

class BadLaunchFile : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

struct EmuBuffer {
  size_t argument = 0;  // which of the kernel's
  DType dtype = DType::U8;
  std::vector<uint8_t> bytes, before;
  uint64_t address = 0;
};

struct EmuLaunch {
  std::array<uint32_t, 3> groups{1, 1, 1}, group_size{32, 1, 1};
  uint32_t dynamic_lds_bytes = 0;
  uint64_t seed = 0, instruction_budget = 0;
  std::vector<EmuBuffer> buffers;
  std::vector<uint8_t> block;  // the kernel's arguments, those that compilers hide too
};

// What a file does not say, and may not exceed.
struct LaunchLimits {
  std::array<uint32_t, 3> group_size{32, 1, 1};
  uint32_t most_lds_bytes = 64 << 10;
};

// `metadata` is the kernel's row of NT_AMDGPU_METADATA, or for PTX one like it, null where the
// object has none: then an argument lies behind the one before, at a multiple of its size, unless
// its row has an offset. BadLaunchFile naming the row that is wrong.
EmuLaunch read_emu_launch(const std::string& path, const Json& metadata, uint32_t block_bytes,
                          const LaunchLimits& limits = {});

}  // namespace tuff::emu
