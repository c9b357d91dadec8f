// SizeExpressions: scalars and launch sizes of captured kernels, as slots of a graph's SlotProgram.
// Called by CapturedGraph. Must never know kernels, buffers or tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"
#include "hcq/slot_program.h"

namespace tuff::engine {

class SizeExpressions {
 public:
  // Slot i is the value of variables[i] (Variable nodes).
  explicit SizeExpressions(std::span<const ir::UOp> variables);
  // Whether x is made of these variables and constants; otherwise it is no slot.
  bool covers(const ir::UOp& x) const;
  // The slot of a covered Index expression. Unsupported names an op that a replay cannot compute.
  uint32_t slot(const ir::UOp& x);
  hcq::SlotProgram program() const { return program_; }

 private:
  // Lowered kernels have the variables in another dtype: name and bounds make one.
  std::optional<uint32_t> given(const ir::Node& variable) const;
  uint32_t made(const ir::Node& n);  // of sources that have slots
  std::vector<ir::VariableArg> variables_;
  hcq::SlotProgram program_;
  ir::UOpMap<uint32_t> slots_;
};

}  // namespace tuff::engine
