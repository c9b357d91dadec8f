// Streaming stores: past the caches, where a kernel writes whole lines of memory here and there, as
// a transpose does, and more of them than the last cache holds. An ordinary store reads the line
// first, and what is not written one after another cannot be asked for early (pass prefetch).
#include <numeric>
#include <set>

#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kLineBytes = 64;  // memory and views begin at multiples of it

// A number that divides an offset whatever ranges and coordinates are; 0 for 0.
int64_t divisor_of(const UOp& x) {
  switch (x->op) {
    case Op::Const: return std::abs(x->const_int());
    case Op::Mul: return divisor_of(x->src(0)) * divisor_of(x->src(1));
    case Op::Add:
    case Op::Sub: return std::gcd(divisor_of(x->src(0)), divisor_of(x->src(1)));
    case Op::Range: return is_lane(kind_of(x.get())) ? 0 : 1;  // of the first lane
    default: return 1;
  }
}

// Vectors of whole lines, each of which begins a line.
bool fills_lines(const UOp& offset, int64_t element_bytes, std::span<const UOp> lanes) {
  const int64_t line = kLineBytes / element_bytes;
  bool vector = false;
  for (const UOp& lane : lanes) {
    const std::optional<int64_t> stride = lane_stride(offset, lane);
    if (!stride) return false;
    const bool side_by_side = *stride == 1 && kind_of(lane.get()) == AxisKind::Vector;
    if (!side_by_side && *stride % line != 0) return false;
    if (side_by_side && lane->src(0)->const_int() % line != 0) return false;
    vector = vector || side_by_side;
  }
  return vector && divisor_of(offset) % line == 0;
}

struct Place {
  std::vector<UOp> lanes;  // of the kernel
  std::vector<UOp> loops;  // open ones, outermost first
  std::set<int32_t> read;  // slots
};

bool streams(const Node& u, const Place& at, const Target& target) {
  const UOp& index = u.src(0);
  if (u.src_count != 2 || index->op != Op::Index || index->src_count != 2) return false;
  const UOp& memory = index->src(0);
  if (memory->op != Op::Param || memory->dtype == DType::Bool || at.loops.empty()) return false;
  const ParamArg& param = memory->get<ParamArg>();
  const int64_t bytes = int64_t(size_bytes(memory->dtype));
  if (at.read.contains(param.slot) || !target.exceeds_caches(param.count * bytes)) return false;
  const UOp& offset = index->src(1);
  const std::optional<int64_t> step = lane_stride(offset, at.loops.back());
  const bool scattered = step && std::abs(*step) * bytes > kLineBytes * kLineBytes;
  return scattered && fills_lines(offset, bytes, at.lanes);
}

}  // namespace

void pass_streaming_stores(Lowering& l) {
  if (!l.target.features.streaming_stores) return;
  Place at;
  for (const UOp& u : l.out.ops) {
    if (u->op == Op::Range && is_lane(kind_of(u.get()))) at.lanes.push_back(u);
    const Node* memory = u->op == Op::Load ? accessed_memory(u.get()) : nullptr;
    if (memory && memory->op == Op::Param) at.read.insert(memory->get<ParamArg>().slot);
  }
  for (UOp& u : l.out.ops) {
    if (u->op == Op::Range && is_loop(kind_of(u.get()))) at.loops.push_back(u);
    if (u->op == Op::End) at.loops.pop_back();
    if (u->op == Op::Store && streams(*u, at, l.target))
      u = make(Op::Store, DType::Void, u->src(), kStreaming);
  }
}

}  // namespace tuff::kernel
