#include "ir/batch.h"

#include <algorithm>
#include <utility>

#include "ir/custom_kernel.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

Shape behind(const Dim& first, const Shape& shape) {
  Shape out{first};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}
IntVec moved_on(const IntVec& axes) {
  IntVec out;
  for (int64_t a : axes) out.push_back(a + 1);
  return out;
}

class Batch {
 public:
  Batch(const Dim& count, const UOpMap<UOp>& values)
      : count_(count), values_(values), batched_(values) {}

  void add(std::span<const UOp> roots) {
    const auto enter = [&](const Node* n) { return !batched_.contains(UOp(n)); };
    for (const Node* n : toposort_gated(roots, enter)) {
      const UOp u(n);
      if (!batched_.contains(u) && std::ranges::any_of(u->src(), [&](const UOp& s) {
            return batched_.contains(s);
          }))
        batched_.emplace(u, of_node(u));
    }
  }

  // The same for every value where it depends on none.
  UOp lifted(const UOp& x) const {
    const auto it = batched_.find(x);
    if (it != batched_.end()) return it->second;
    return expand(reshape(x, behind(1, x->shape)), behind(count_, x->shape));
  }

 private:
  UOp of_node(const UOp& u) {
    if (is_movement(u->op)) return of_movement(u, lifted(u->src(0)));
    if (is_alu(u->op)) return of_alu(u);
    switch (u->op) {
      case Op::Reduce: {
        const auto& arg = u->get<ReduceArg>();
        return reduce(arg.op, lifted(u->src(0)), moved_on(arg.axes));
      }
      case Op::Scatter: {
        ScatterArg arg = u->get<ScatterArg>();
        arg.axis++;
        return scatter(lifted(u->src(0)), lifted(u->src(1)), lifted(u->src(2)), arg);
      }
      case Op::Loop: {
        std::vector<UOp> src;
        for (const UOp& s : u->src()) src.push_back(lifted(s));
        return loop_batched(u, count_, src);
      }
      case Op::Rule: return of_rule(u);
      case Op::Ruled: return with_src(u, std::vector<UOp>{lifted(u->src(0)), either(u->src(1))});
      case Op::Detach:
        if (u->src_count > 1) return of_closed_form(u);
        [[fallthrough]];
      case Op::Contiguous:
      case Op::Mark:
      case Op::Copy: return with_src(u, std::vector<UOp>{lifted(u->src(0))});
      case Op::Checkpoint:
      case Op::Again:
        return with_src(u, std::vector<UOp>{lifted(u->src(0)), either(u->src(1))});
      case Op::Sink: {
        std::vector<UOp> src;
        for (const UOp& s : u->src()) src.push_back(either(s));
        return sink(src);
      }
      case Op::CustomKernel:
        fail<Unsupported>("vmap: {} is a user's kernel, which does not say what it does for many "
                          "values: give it all of them as one tensor",
                          u->get<CustomKernelArg>().kernel->name);
      default:
        fail<Unsupported>("vmap: {} of what is different for each value: write to memory outside",
                          name(u->op));
    }
  }

  // What a GradientRule counts along its first axis is as much more.
  UOp of_closed_form(const UOp& u) const {
    std::vector<UOp> src;
    for (const UOp& s : u->src()) {
      const UOp x = lifted(s);
      Shape shape = s->shape.empty() ? Shape{Dim(1)} : s->shape;
      shape[0] = shape[0] * count_;
      src.push_back(reshape(x, shape));
    }
    return reshape(make(Op::Detach, u->dtype, src, u->arg), behind(count_, u->shape));
  }

  UOp either(const UOp& x) const {
    const auto it = batched_.find(x);
    return it == batched_.end() ? x : it->second;
  }

  UOp of_movement(const UOp& u, const UOp& x) const {
    Pairs pairs;
    switch (u->op) {
      case Op::Reshape: return reshape(x, behind(count_, u->shape));
      case Op::Expand: return expand(x, behind(count_, u->shape));
      case Op::Permute: {
        IntVec axes = moved_on(u->get<IntVec>());
        axes.insert(axes.begin(), 0);
        return permute(x, axes);
      }
      case Op::Flip: return flip(x, moved_on(u->get<IntVec>()));
      default: break;
    }
    pairs = u->get<Pairs>();
    pairs.insert(pairs.begin(), {Dim(0), u->op == Op::Pad ? Dim(0) : count_});
    return u->op == Op::Pad ? pad(x, pairs) : shrink(x, pairs);
  }

  // Sources of shape () stand for all elements.
  UOp of_alu(const UOp& u) const {
    std::vector<UOp> src;
    for (const UOp& s : u->src()) {
      const bool depends = batched_.contains(s);
      if (s->shape.empty() && !u->shape.empty() && depends) {
        const Shape ones(u->shape.size(), Dim(1));
        src.push_back(expand(reshape(lifted(s), behind(count_, ones)), behind(count_, u->shape)));
      } else {
        src.push_back(s->shape.empty() && !depends ? s : lifted(s));
      }
    }
    return with_src(u, src);
  }

  // All of its values and arguments are many then, and so are the stand-ins for gradients.
  UOp of_rule(const UOp& rule) const {
    RuleParts parts = parts_of(*rule);
    Batch inside(count_, values_);
    for (size_t i = 0; i < parts.values.size(); i++) {
      parts.values[i] = lifted(parts.values[i]);
      const UOp many = place_like(parts.values[i]);
      inside.batched_.emplace(std::exchange(parts.places[i], many), many);
    }
    inside.add(rule->src().last(rule->get<IntVec>().size() - 3));
    for (UOp& g : parts.gradients)
      if (g) g = inside.lifted(g);
    for (UOp& x : parts.arguments) x = lifted(x);
    return ruled(parts)[0]->src(1);
  }

  const Dim count_;
  const UOpMap<UOp>& values_;
  UOpMap<UOp> batched_;
};

}  // namespace

std::vector<UOp> batched(std::span<const UOp> roots, const Dim& count, const UOpMap<UOp>& values) {
  Batch batch(count, values);
  batch.add(roots);
  std::vector<UOp> out;
  for (const UOp& r : roots) out.push_back(batch.lifted(r));
  return out;
}

}  // namespace tuff::ir
