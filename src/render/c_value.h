// Values of a C function that is being written, and where they lie in memory. Shared by the parts
// of the C renderer's walker (c_kernel.h). Must never know its text.
#pragma once

#include <string>

#include "ir/uop.h"

namespace tuff::render {

// One instance of an op. An integer is base + constant + step * (vector lane / every): kept apart
// so that the lanes of an address share one base and a step of 1 shows itself as a contiguous
// access.
struct CValue {
  std::string base;  // a name or literal; empty: 0
  int64_t constant = 0, step = 0, every = 1;
  bool vector = false;  // base is a vector (then constant and step are 0)
  std::string table;    // a vector's lanes are those of this one that the low 4 bits of base name
  int64_t divisor = 1;  // known to divide the base
  bool varies() const { return vector || step != 0; }
  bool is_number() const { return base.empty() && step == 0; }
  bool operator==(const CValue&) const = default;
  bool is_contiguous() const { return step == 1 && every == 1; }
  int64_t at_lane(int64_t l) const { return constant + step * (l / every); }
};

// One instance of a Load or Store of memory.
struct CAccess {
  const ir::Node& index;
  CValue offset;
  int width;                     // lanes
  const CValue* gate = nullptr;  // null: always
  DType dtype() const { return index.dtype; }
  bool lane_gate() const { return gate && gate->varies(); }  // one for each lane
  bool whole_gate() const { return gate && !gate->varies(); }
  CAccess at(int64_t distance, int64_t step = 0) const {  // that far from the first lane
    return {index, {offset.base, offset.constant + distance, step}, width, gate};
  }
};

}  // namespace tuff::render
