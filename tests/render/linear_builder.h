// LinearBuilder: writes LinearKernels by hand for the renderers' tests. add() appends a node after
// its sources, in the order of the calls, and derives the lane masks.
#pragma once

#include <algorithm>
#include <set>

#include "kernel/lowered.h"

namespace tuff::render {

using ir::AxisKind;
using ir::Op;
using ir::UOp;

class LinearBuilder {
 public:
  explicit LinearBuilder(std::string name) { k.name = std::move(name); }

  UOp add(const UOp& u) {
    if (!placed_.insert(u.get()).second) return u;
    for (const UOp& s : u->src()) add(s);
    k.ops.push_back(u);
    k.lanes.push_back(mask_of(u));
    return u;
  }
  UOp buffer(DType t, int64_t count, bool read, bool written) {
    const int slot = static_cast<int>(k.buffers.size());
    k.buffers.push_back({slot, t, count, read, written});
    return add(ir::param(slot, t, count));
  }
  UOp variable(const std::string& name, int64_t min, int64_t max) {
    const UOp v = ir::make(Op::Variable, DType::I32, {}, ir::VariableArg{name, min, max});
    k.variables.push_back(v);
    return add(v);
  }
  UOp i32(int64_t v) { return add(ir::constant(Scalar::of_int(DType::I32, v))); }
  UOp number(DType t, double v) { return add(ir::constant(Scalar::of_double(t, v))); }
  UOp lane(int size, AxisKind kind) {
    const UOp r =
        ir::make(Op::Range, DType::I32, {i32(size)}, ir::RangeArg{next_range_++, kind});
    k.lane_ranges.push_back(r);
    return add(r);
  }
  UOp loop(const UOp& size, AxisKind kind = AxisKind::Loop) {
    return add(ir::make(Op::Range, DType::I32, {size}, ir::RangeArg{next_range_++, kind}));
  }
  UOp loop(int64_t size, AxisKind kind = AxisKind::Loop) { return loop(i32(size), kind); }
  void end(const UOp& range) { add(ir::make(Op::End, DType::Void, {range})); }
  UOp group(int axis, int64_t size) {
    k.groups[axis] = ir::Dim(size);
    return add(ir::make(Op::Special, DType::I32, {i32(size)},
                           ir::SpecialArg{'g', static_cast<int8_t>(axis)}));
  }
  UOp local(int axis, int64_t size) {
    k.local[axis] = static_cast<uint32_t>(size);
    return add(ir::make(Op::Special, DType::I32, {i32(size)},
                           ir::SpecialArg{'l', static_cast<int8_t>(axis)}));
  }
  UOp alu(Op op, std::vector<UOp> x) {
    const bool compares = op == Op::CmpLt || op == Op::CmpNe || op == Op::CmpEq;
    const DType t = compares ? DType::Bool : x[op == Op::Where ? 1 : 0]->dtype;
    return add(ir::make(op, t, x));
  }
  UOp cast(const UOp& x, DType to) { return add(ir::make(Op::Cast, to, {x})); }
  UOp bitcast(const UOp& x, DType to) { return add(ir::make(Op::Bitcast, to, {x})); }
  UOp plus(const UOp& a, const UOp& b) { return alu(Op::Add, {a, b}); }
  UOp times(const UOp& a, int64_t b) { return alu(Op::Mul, {a, i32(b)}); }
  UOp index(const UOp& buffer, const UOp& offset) {
    return add(ir::make(Op::Index, buffer->dtype, {buffer, offset}));
  }
  UOp index(const UOp& buffer, const UOp& offset, const UOp& gate) {
    return add(ir::make(Op::Index, buffer->dtype, {buffer, offset, gate}));
  }
  UOp load(const UOp& from) { return add(ir::make(Op::Load, from->dtype, {from})); }
  UOp store(const UOp& to, const UOp& v) {
    return add(ir::make(Op::Store, DType::Void, {to, v}));
  }
  UOp after(const UOp& x, std::vector<UOp> deps) {
    deps.insert(deps.begin(), x);
    return add(ir::make(Op::After, x->dtype, deps));
  }
  UOp reg(DType t, std::vector<UOp> ranges) {
    return add(ir::make(Op::Register, t, ranges, int64_t{next_register_++}));
  }
  UOp shared(DType t, int64_t count) {
    k.shared_bytes += static_cast<uint32_t>(count * size_bytes(t));
    return add(ir::make(Op::Shared, t, {}, ir::SharedArg{next_shared_++, count}));
  }
  UOp barrier(std::vector<UOp> deps) { return add(ir::make(Op::Barrier, DType::Void, deps)); }
  UOp reduce(Op op, const UOp& x, std::vector<UOp> ranges) {
    ranges.insert(ranges.begin(), x);
    return add(ir::make(Op::Reduce, x->dtype, ranges, ir::ReduceArg{op, {}}));
  }

  kernel::LinearKernel k;

 private:
  kernel::LaneMask mask_of(const UOp& u) const {
    for (size_t bit = 0; bit < k.lane_ranges.size(); ++bit)
      if (k.lane_ranges[bit] == u) return kernel::LaneMask{1} << bit;
    if (u->op == Op::Range || u->op == Op::End || u->op == Op::Sink) return 0;
    kernel::LaneMask mask = 0, folded = 0;
    for (size_t s = 0; s < u->src_count; ++s) {
      const auto at = std::find(k.ops.begin(), k.ops.end(), u->src(s)) - k.ops.begin();
      if (u->op == Op::After && s > 0) break;
      (u->op == Op::Reduce && s > 0 ? folded : mask) |= k.lanes[at];
    }
    return mask & ~folded;
  }
  std::set<const ir::Node*> placed_;
  int next_range_ = 0, next_register_ = 0, next_shared_ = 0;
};

}  // namespace tuff::render
