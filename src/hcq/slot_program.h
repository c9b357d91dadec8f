// SlotProgram: what the symbolic sizes of a graph imply, as a straight line of integer operations
// over slots: one entry per distinct expression, whatever the number of kernels that use it.
// Written by engine when it captures, run by CommandGraph once per replay. Knows no expressions, no
// names and no devices.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "ir/op.h"

namespace tuff::hcq {

class SlotProgram {
 public:
  // Slots 0..given-1 are set by each replay. Implicit: a graph may have given values alone.
  SlotProgram(uint32_t given = 0) : given_(given), slot_count_(given) {}
  uint32_t given() const { return given_; }
  uint32_t slot_count() const { return slot_count_; }
  size_t size() const { return entries_.size(); }  // operations of one run

  // The slot of a constant or of a result; the same one for the same operation on the same slots.
  // Ops mean what they do for sizes: comparisons give 0 or 1, And, Or and Where's condition are
  // such. False of `computes`: an op that is no operation of sizes.
  static bool computes(ir::Op op);
  uint32_t constant(int64_t value);
  uint32_t append(ir::Op op, uint32_t a, uint32_t b, uint32_t c = 0);

  // Constants, once; `slots` has slot_count() values.
  void load_constants(std::span<uint64_t> slots) const;
  // Everything else, from the given slots. Allocates nothing. Throws InvalidArgument for a division
  // by a number below 1 and where a result does not fit 64 bits.
  void run(std::span<uint64_t> slots) const;

 private:
  struct Entry {
    ir::Op op;
    uint32_t dst, a, b, c;
  };
  uint32_t given_, slot_count_;
  std::vector<Entry> entries_;
  std::map<int64_t, uint32_t> constants_;
  std::map<std::tuple<ir::Op, uint32_t, uint32_t, uint32_t>, uint32_t> known_;
};

}  // namespace tuff::hcq
