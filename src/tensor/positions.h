// One rule for all functions that take positions as integers: one outside of what is allowed is an
// IndexError that names function, value, place and range. What the host knows (data that it gave,
// numbers, ranges, and parts of these) is checked when a function is called, without waiting for a
// device. With TUFF_CHECK_OOB all positions are computed and read. Called by indexing, loss and
// jit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tuff/tensor.h>
#include "engine/buffer.h"
#include "ir/uop.h"

namespace tuff::detail {

// What a function allows: low..high-1, and one value that it ignores.
struct Positions {
  const char* function;
  int64_t low = 0, high = 0;
  const char* noun = "index";
  std::optional<int64_t> ignored = {};
  friend bool operator==(const Positions&, const Positions&) = default;
};
// Positions on an axis, which may count from its end. If its extent varies, the largest one counts.
Positions on_axis(const char* function, const Size& extent, bool from_end = false);

void require_inside(const Positions& allowed, const Tensor& index);

// The host has written these to all of the Buffer. More than 2^23 values are not looked at, and
// 2^20 where they are bytes, as pictures are: writing them is to cost no more than that.
void note_host_values(engine::Buffer& b, const void* values);

// The extremes of integers that the host knows; memory that they are computed to is told of them.
std::optional<engine::Extremes> known_extremes(const ir::UOp& u);

// What a Jit's function asks of positions while it is captured.
class PositionRules {
 public:
  PositionRules();
  ~PositionRules();
  PositionRules(const PositionRules&) = delete;

  struct Rule {
    Positions allowed;
    ir::UOp value;           // known as soon as the memory that it is of is known
    const ir::Node* buffer;  // that memory
  };
  const std::vector<Rule>& rules() const { return rules_; }
  // With TUFF_CHECK_OOB: what is to be computed by each replay and read.
  struct Computed {
    Positions allowed;
    Tensor index;
  };
  const std::vector<Computed>& computed() const { return computed_; }

 private:
  friend void require_inside(const Positions& allowed, const Tensor& index);
  std::vector<Rule> rules_;
  std::vector<Computed> computed_;
  PositionRules* const before_;
};

// As require_inside() where the host knows the value, in other memory if some is given.
void require_known_inside(const PositionRules::Rule& rule, const Ref<engine::Buffer>& memory);
// Reads them.
void require_computed_inside(const Positions& allowed, const Tensor& index);

}  // namespace tuff::detail
