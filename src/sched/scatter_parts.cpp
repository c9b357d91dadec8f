#include "sched/scatter_parts.h"

#include <algorithm>
#include <bit>

#include "ir/scalar_eval.h"
#include "sched/scattered_sum.h"

namespace tuff::sched {

using namespace ir;

namespace {

int64_t run_count(const Node& scatter, const Target& target) {
  const auto& arg = scatter.get<ScatterArg>();
  const Shape& value = scatter.src(1)->shape;
  if (!target.has_local || arg.named != Named::Any || arg.op == Op::Assign) return 1;
  if (is_symbolic(scatter.shape) || is_symbolic(value)) return 1;
  const int64_t n = value[size_t(arg.axis)].value(),
                places = scatter.shape[size_t(arg.axis)].value();
  if (n == 0 || places == 0) return 1;
  const int64_t beside = element_count(value) / n;
  const int64_t most = std::min({n / places, walkers(target) / beside, n / kLeastRun});
  return int64_t(std::bit_floor(uint64_t(std::max<int64_t>(most, 1))));
}

// One axis cut in two; zeros where the last run is shorter.
UOp in_runs(const UOp& x, size_t axis, int64_t runs) {
  const int64_t n = x->shape[axis].value(), length = (n + runs - 1) / runs;
  Pairs behind(x->shape.size(), {Dim(0), Dim(0)});
  behind[axis].b = Dim(runs * length - n);
  Shape shape = x->shape;
  shape[axis] = Dim(length);
  shape.insert(shape.begin() + std::ptrdiff_t(axis), Dim(runs));
  return reshape(pad(x, behind), shape);
}

}  // namespace

UOp scattered_in_parts(const UOp& u, const Target& target) {
  const int64_t runs = run_count(*u, target);
  if (runs < 2) return {};
  const auto& arg = u->get<ScatterArg>();
  const auto axis = size_t(arg.axis);
  const UOp& index = u->src(2);
  const bool wide = size_bytes(index->dtype) > 4 || index->dtype == DType::U32;
  const DType t = wide ? DType::I64 : DType::I32;
  // 0 is what is stored nowhere.
  const UOp one = constant(Scalar::of_int(t, 1));
  const UOp places =
      alu(Op::Sub, {in_runs(alu(Op::Add, {cast(index, t), one}), axis, runs), one});
  Shape shape = u->shape;
  shape.insert(shape.begin() + std::ptrdiff_t(axis), Dim(runs));
  const UOp neutral = constant(reduce_identity(arg.op, u->dtype));
  const UOp nothing = expand(reshape(neutral, Shape(shape.size(), Dim(1))), shape);
  const UOp parts = scatter(nothing, in_runs(u->src(1), axis, runs), places,
                            {arg.op, arg.axis + 1, Named::Any});
  const UOp all = reshape(reduce(arg.op, parts, {arg.axis}), u->shape);
  return alu(arg.op, {u->src(0), all});
}

bool is_combined_atomically(const ScatterArg& arg, DType t, int64_t places,
                            const Target& target) {
  constexpr int64_t kLeastPlaces = 1024;
  const bool has_order = arg.named == Named::Any && (arg.op == Op::Add || arg.op == Op::Max);
  const bool is_word = t == DType::F32 || t == DType::I32 || t == DType::U32;
  return has_order && is_word && places >= kLeastPlaces && target.has_local &&
         target.features.atomics;
}

std::vector<OrderedStep> ordered_steps(const Node& scatter, const Target& t) {
  const auto& arg = scatter.get<ScatterArg>();
  const Shape& value = scatter.src(1)->shape;
  const Dim &n = value[size_t(arg.axis)], &extent = scatter.shape[size_t(arg.axis)];
  if (arg.named != Named::Any || n == 1) return {{1, 0, n}};
  const int64_t beside = std::max<int64_t>(element_count(value) / std::max<int64_t>(n.max(), 1), 1);
  int64_t owners = t.has_local ? std::clamp<int64_t>(walkers(t) / beside, 1, extent.max()) : 1;
  // As many as have an element.
  const int64_t run = (extent.max() + owners - 1) / owners;
  owners = (extent.max() + run - 1) / run;
  const int64_t most = int64_t(t.max_loop_trips) / 2;
  if (most == 0 || !n.is_const()) return {{owners, 0, n}};
  std::vector<OrderedStep> out;
  for (int64_t i = 0; i < n.value(); i += most)
    out.push_back({owners, i, std::min(most, n.value() - i)});
  return out;
}

}  // namespace tuff::sched
