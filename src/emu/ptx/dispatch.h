// Runs a kernel of a module on the host: blocks and warps in an order drawn by seed. Called by
// launch.cpp and by tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emu/ptx/machine.h"

namespace tuff::emu::ptx {

struct Outcome {
  std::vector<Finding> findings;
  bool finished = false;  // false after a fault, a trap or a hang
  uint64_t instructions = 0;
  std::map<std::string, uint64_t> counts;  // by spelling
};

// `counters`, where given, are told of each instruction.
Outcome run(const Launch& launch, RangeMemory& memory, Counters* counters = nullptr);

}  // namespace tuff::emu::ptx
