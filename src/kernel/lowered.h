// From one kernel's AST and a Target to a linear UOp list: what renderers print.
// Called by engine (compile_linear), `tuff` tools and tests. Must never know text, SPIR-V or
// Vulkan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/target.h"
#include "ir/spec.h"
#include "ir/uop.h"

namespace tuff::kernel {

// Bit i: the value exists once per value of lane_ranges[i].
using LaneMask = uint32_t;

// Of each Shared, in bytes: renderers lay them out one behind the other.
inline constexpr int64_t kSharedAlignment = 64;

struct Estimate {
  uint64_t flops = 0, bytes = 0;
};  // per launch, at maximum extents

// What TUFF_CHECK_OOB adds to a kernel: a buffer of u32 words, 0 at launch, that holds a record for
// each place in the kernel that accesses memory and for each of its lanes: 1 if the offset was out
// of bounds (the access was left out: a load gave 0), then the offset's low word, then its high
// word.
inline constexpr int64_t kBoundsRecordWords = 3;
struct BoundsSite {
  int32_t slot = -1;  // of the Param; -1: workgroup memory
  DType dtype = DType::Void;
  int64_t count = 0;  // elements there are
  bool store = false;
  bool wide = false;  // the high word is written; else the low one is a signed offset
  int64_t first_word = 0;
  uint32_t records = 1;
};
struct BoundsReport {
  int32_t slot = -1;  // Param of the report; -1: there is none
  int64_t words = 0;
  std::vector<BoundsSite> sites;
};

// The linear floor: `ops` in execution order, each after its sources; loops are Range/End pairs that
// nest properly. A value exists once per lane of every lane range (Lane, Vector, ReduceLane) that it
// depends on, as `lanes` says, and only the renderer spells the lanes out. No Index dtype is left,
// and nothing that the Target lacks. Op by op: docs/design/linear-floor.md.
struct LinearKernel {
  std::string name;  // "r_64_32_16x4": for people; unique per AST within a run
  std::vector<ir::UOp> ops;
  std::vector<LaneMask> lanes;       // per op
  std::vector<ir::UOp> lane_ranges;  // Lane, Vector and ReduceLane ranges, bit order
  struct Argument {
    int32_t slot;
    DType dtype;
    int64_t count;
    bool read, written;
  };
  std::vector<Argument> buffers;           // by Param slot, dense from 0
  std::vector<ir::UOp> variables;          // scalars of the argument block, in order
  std::array<ir::Dim, 3> groups{1, 1, 1};  // launch size in workgroups; may be symbolic
  std::array<uint32_t, 3> local{1, 1, 1};
  uint32_t subgroup_size = 0;  // lanes that it counts on, along the first axis; 0: any number
  uint32_t shared_bytes = 0;
  Estimate estimate;
  BoundsReport bounds;
  std::string opts;  // the chosen transformations, for TUFF_DEBUG=3
};

struct LowerOptions {
  bool check_bounds = false;          // adds a BoundsReport
  bool check_spec = ir::kChecksSpec;  // after every pass
  bool choose_opts = true;            // false: none
  uint64_t random_seed = 0;           // of opts that are drawn instead of chosen; 0: they are chosen
  std::vector<std::string> skipped;   // passes, by name; InvalidArgument for one that is required
};
// Runs the ordered pass table (pipeline.cpp). Deterministic. Throws Unsupported naming op and dtype
// that the Target can neither do nor have decomposed (fp64 on a device without it).
LinearKernel lower(const ir::UOp& ast, const Target& target, const LowerOptions& options = {});

// The constant step of an offset per lane: offset(lane+1)-offset(lane); nullopt if it is not
// constant.
std::optional<int64_t> lane_stride(const ir::UOp& offset, const ir::UOp& lane_range);

std::string to_text(const LinearKernel& k);
// The line of to_text, counted from 1, that prints ops[i]; the first line describes the launch.
inline constexpr uint32_t text_line(size_t i) { return static_cast<uint32_t>(i) + 2; }

}  // namespace tuff::kernel
