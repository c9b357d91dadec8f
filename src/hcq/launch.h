// Launch: a program with its operands, on its way to a queue, and the one writer of argument
// blocks. Made by engine, for lists that run once and for graphs; recorded by both. Knows nothing
// of UOps or tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "hcq/device.h"

namespace tuff::hcq {

// Fixed memory, or input `input` of a graph (re-bound at each replay) at an offset.
struct LaunchOperand {
  Span span;           // empty for an input
  int32_t input = -1;  // of the graph's inputs, or -1
  size_t offset = 0;   // bytes into the input
  size_t size_bytes = 0;
  bool read = false, write = false;
  Span in(std::span<const MemoryBlock> inputs) const {
    return span ? span : Span{&inputs[size_t(input)], offset, size_bytes};
  }
};

struct LaunchScalar {
  int32_t value = 0;
  int32_t slot = -1;  // >= 0: slot of the graph's SlotProgram, patched; -1: `value` is fixed
};

struct Launch {
  const Program* program = nullptr;
  std::vector<LaunchOperand> operands;  // by argument
  std::vector<LaunchScalar> scalars;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::array<int32_t, 3> group_slots{-1, -1, -1};  // as LaunchScalar::slot
  uint64_t cost_ns = 0;                            // what it is expected to take

  bool is_symbolic() const;  // its size is given by each replay
  bool is_patched() const;   // or anything else of it
};

// A copy; in a graph between fixed memory and fixed memory.
struct Transfer {
  LaunchOperand dst, src;
};

// What is fixed of a launch, written to its block: the layout is render::ArgLayout's. For the rest
// `patch` is called with where it lies, in bytes, and the LaunchOperand or LaunchScalar that each
// replay gives.
template <class Patch>
void write_block(const Launch& launch, std::byte* block, Patch&& patch) {
  for (uint32_t i = 0; i < launch.operands.size(); ++i) {
    const LaunchOperand& operand = launch.operands[i];
    if (!operand.span) {
      patch(size_t(8) * i, operand);
      continue;
    }
    const uint64_t address = operand.span.address();
    std::memcpy(block + size_t(8) * i, &address, sizeof address);
  }
  for (uint32_t i = 0; i < launch.scalars.size(); ++i) {
    const size_t at = launch.program->args().scalar_offset(i);
    if (launch.scalars[i].slot >= 0)
      patch(at, launch.scalars[i]);
    else
      std::memcpy(block + at, &launch.scalars[i].value, sizeof(int32_t));
  }
}

// The command, its block at `args`: what it accesses and, where `names_buffers`, what its addresses
// stand for. Accesses to input i are to `inputs[i]`.
Command dispatch_command(const Launch& launch, const Span& args, bool names_buffers,
                         std::span<const MemoryBlock> inputs = {});
Command copy_command(const Span& dst, const Span& src, const char* label = "copy");
Command copy_command(const Transfer& copy, std::span<const MemoryBlock> inputs = {});

}  // namespace tuff::hcq
