// Reductions in one loop of which some need the maximum that another gives (ir/one_sweep.h): their
// accumulators are carried from one iteration to the next, and scaled where the maximum has grown.
#include "ir/one_sweep.h"

#include <algorithm>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// An accumulator that a loop carries.
class Carried {
 public:
  // `walked`: the ranges that what it holds depends on; `matrix`: what it is, unless a number.
  Carried(RangeDeps& deps, const UOp& loop, RangeMask walked, const Scalar& first, int64_t number,
          const MatrixArg* matrix = nullptr)
      : loop_(loop) {
    const RangeMask around = walked & ~deps.bit(loop);
    Arg arg = number;
    UOp value = constant(first);
    if (matrix) {
      MatrixArg held{matrix->use, matrix->rows, matrix->columns};
      value = make(Op::MatrixFill, first.dtype, {value}, held);
      held.number = number;
      arg = held;
    }
    register_ = make(Op::Register, first.dtype, deps.list(around & deps.kinds(is_lane)), arg);
    const UOp before = make_after(register_, deps.list(around & deps.kinds(is_loop)));
    current_ = make_after(register_, {make_store(before, value), loop});
  }
  UOp current() const { return make_load(current_); }
  UOp end(const UOp& next) const {
    return make_end(make_store(current_, next), std::span(&loop_, 1));
  }
  UOp after(std::initializer_list<UOp> ends) const {
    return make_load(make_after(register_, ends));
  }

 private:
  const UOp loop_;
  UOp register_, current_;
};

class SweepLowerer {
 public:
  SweepLowerer(const UOp& ast, const UOp& loop, const OneSweep& sweep,
               const std::optional<SubgroupRows>& rows)
      : ast_(ast), loop_(loop), sweep_(sweep), rows_(rows), deps_(ast) {
    for (const Node* n : toposort(ast)) {
      if (n->op == Op::Register) registers_ = std::max(registers_, register_number(n) + 1);
      if (n->op == Op::Shared) memories_ = std::max(memories_, n->get<SharedArg>().number + 1);
    }
  }

  UOp lower() {
    UOpMap<UOp> complete;
    const UOp of_part = part(sweep_.max, {}, {});
    const DType t = of_part->dtype;
    const Scalar least = Scalar::of_double(t, t == DType::F64 ? kLeast64 : kLeast);
    const Carried max(deps_, loop_, deps_.of(of_part), least, registers_++);
    const UOp before = max.current(), after = make(Op::Max, t, {before, of_part});
    const UOp max_end = max.end(after);
    complete.emplace(sweep_.max, cast(max.after({max_end}), sweep_.max->dtype));
    const UOp scale = sweep_.scale(cast(before, sweep_.max->dtype), cast(after, sweep_.max->dtype));
    for (const UOp& r : sweep_.scaled) {
      // Invocations that share a sum carry a share each, and add them up once.
      std::vector<UOp> shared;
      for (const UOp& x : closed_ranges(r.get()))
        if (kind_of(x.get()) == AxisKind::GroupReduce) shared.push_back(x);
      const UOp more = part(r, {{sweep_.max, cast(after, sweep_.max->dtype)}}, shared);
      const MatrixArg* matrix = matrix_of(more.get());
      UOp by = cast(scale, more->dtype);
      if (matrix) by = rows_->matrix(by, *matrix, memories_++, std::span(&loop_, 1));
      const Carried sum(deps_, loop_, deps_.of(more) | deps_.of(by),
                        Scalar::of_int(more->dtype, 0), registers_++, matrix);
      const UOp next = make(Op::MulAdd, more->dtype, {sum.current(), by, more});
      // The maximum is carried even if nothing wants it in the end.
      UOp all = sum.after({sum.end(next), max_end});
      if (!shared.empty()) all = make(Op::Reduce, all->dtype, sources(all, shared), r->arg);
      complete.emplace(r, cast(all, r->dtype));
    }
    return substitute(ast_, complete);
  }

 private:
  // Where a whole part is masked by -infinity, a difference from that would be no number.
  static constexpr double kLeast = -0x1.fffffep127, kLeast64 = -0x1.fffffffffffffp1023;

  // Of one iteration, as it is summed up; `later`: ranges that stay open.
  UOp part(const UOp& reduce, const UOpMap<UOp>& map, const std::vector<UOp>& later) const {
    std::vector<UOp> src{cast(substitute(reduce->src(0), map), accumulator(reduce->dtype))};
    for (const UOp& r : closed_ranges(reduce.get()))
      if (!(r == loop_) && !contains(later, r)) src.push_back(r);
    return src.size() > 1 ? with_src(reduce, src) : src[0];
  }

  const UOp ast_, loop_;
  const OneSweep sweep_;
  const std::optional<SubgroupRows>& rows_;
  RangeDeps deps_;
  int64_t registers_ = 0;
  int32_t memories_ = 0;
};

}  // namespace

void pass_one_sweep(Lowering& l) {
  std::vector<UOp> seen, loops;  // loops: of several reductions
  for (const Node* n : toposort(l.ast)) {
    if (n->op != Op::Reduce) continue;
    for (const UOp& r : closed_ranges(n)) {
      if (kind_of(r.get()) != AxisKind::Reduce) continue;
      if (contains(seen, r)) add_once(loops, r);
      seen.push_back(r);
    }
  }
  for (const UOp& loop : loops) {
    const auto sweep = one_sweep(l.ast, std::span(&loop, 1));
    if (sweep && sweep->max) l.ast = SweepLowerer(l.ast, loop, *sweep, l.subgroup_rows).lower();
  }
}

}  // namespace tuff::kernel
