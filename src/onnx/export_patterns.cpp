// What is told by its name or its form, so that a file says Softmax and Relu where the function
// did: closed forms by their rule, others by building them again, for equal graphs are the same
// nodes.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/gradient.h"
#include "ir/variants.h"
#include "onnx/exporter.h"
#include "tensor/impl.h"

namespace tuff::onnx {
namespace {

using ir::Op;
using ir::UOp;
using Given = std::span<const Exported>;

Tensor wrapped(const UOp& u) { return detail::wrap(u, ir::device_of(u)); }

// ---- closed forms

Exported like(Exporter& e, DType t, double v) { return e.number(Scalar::of_double(t, v)); }

Exported gelu(Exporter& e, DType t, const Exported& x) {
  const Exported inner = e.elementwise("Mul", {x, like(e, t, std::numbers::sqrt2 / 2)});
  const Exported sum =
      e.elementwise("Add", {e.elementwise("Erf", {inner}), like(e, t, 1)});
  return e.elementwise("Mul", {e.elementwise("Mul", {x, like(e, t, 0.5)}), sum});
}

std::optional<Exporter::Plan> closed_form(Exporter& e, const UOp& u) {
  if (u->op != Op::Detach || u->src_count < 2) return std::nullopt;
  const auto* rule = std::get_if<const ir::GradientRule*>(&u->arg);
  if (!rule || !*rule) return std::nullopt;
  const std::string_view name = (*rule)->name;
  const UOp x = u->src(1);
  const auto of = [&](auto make) {
    const auto t = u->dtype;
    return Exporter::Plan{{x}, [&e, t, make](Given from) { return make(e, t, from[0]); }};
  };
  if (name == "sigmoid")
    return of([](Exporter& e, DType, const Exported& x) { return e.elementwise("Sigmoid", {x}); });
  if (name == "tanh")
    return of([](Exporter& e, DType, const Exported& x) { return e.elementwise("Tanh", {x}); });
  if (name == "erf")
    return of([](Exporter& e, DType, const Exported& x) { return e.elementwise("Erf", {x}); });
  if (name == "silu")
    return of([](Exporter& e, DType, const Exported& x) {
      return e.elementwise("Mul", {x, e.elementwise("Sigmoid", {x})});
    });
  if (name == "gelu") return of(gelu);
  return std::nullopt;
}

// ---- functions of one tensor

struct Function {
  const char* op;
  Tensor (*of)(const Tensor& x);
};
constexpr Function kFunctions[] = {
    {"Relu", [](const Tensor& x) { return x.relu(); }},
    {"Abs", [](const Tensor& x) { return x.abs(); }},
    {"Abs", [](const Tensor& x) { return detail::magnitude(x); }},
    {"Floor", [](const Tensor& x) { return x.floor(); }},
    {"Ceil", [](const Tensor& x) { return x.ceil(); }},
    {"Round", [](const Tensor& x) { return x.round(); }},
};
constexpr size_t kMostCandidates = 48;

// Nodes of the same shape and dtype a few steps below.
std::vector<UOp> arguments_below(const UOp& u) {
  std::vector<UOp> out{u};
  for (size_t i = 0; i < out.size() && out.size() < kMostCandidates; i++) {
    for (const UOp& s : out[i]->src())
      if (s->shape == u->shape && std::ranges::find(out, s) == out.end()) out.push_back(s);
  }
  std::erase_if(out, [&](const UOp& s) { return s == u || s->dtype != u->dtype; });
  return out;
}

std::optional<Exporter::Plan> function(Exporter& e, const UOp& u) {
  if (u->op != Op::Where || !is_float(u->dtype) || u->shape.empty()) return std::nullopt;
  for (const UOp& x : arguments_below(u)) {
    for (const Function& f : kFunctions) {
      if (!e.is(f.of(wrapped(x)), u)) continue;
      return Exporter::Plan{{x}, [&e, op = f.op](Given from) { return e.elementwise(op, from); }};
    }
  }
  return std::nullopt;
}

// ---- parts joined along an axis: each stands among zeros, and is chosen where it begins

// The axis along which zeros stand around a part; -1: it is none.
int64_t padded_axis(const UOp& u) {
  if (u->op != Op::Pad) return -1;
  const auto& pairs = u->get<ir::Pairs>();
  int64_t axis = -1;
  for (size_t i = 0; i < pairs.size(); i++) {
    if (pairs[i].a == 0 && pairs[i].b == 0) continue;
    if (axis >= 0) return -1;
    axis = int64_t(i);
  }
  return axis;
}

std::optional<Exporter::Plan> joined(Exporter& e, const UOp& u) {
  if (u->op != Op::Where) return std::nullopt;
  const int64_t axis = padded_axis(u->src(2));
  if (axis < 0) return std::nullopt;
  std::vector<UOp> parts;
  for (UOp x = u;; x = x->src(1)) {
    const UOp& part = x->op == Op::Where ? x->src(2) : x;
    if (padded_axis(part) != axis) return std::nullopt;
    parts.insert(parts.begin(), part->src(0));
    if (x->op != Op::Where) break;
  }
  std::vector<Tensor> again;
  for (const UOp& p : parts) again.push_back(detail::wrap(p, ir::device_of(u)));
  if (!e.is(Tensor::cat(again, axis), u)) return std::nullopt;
  return Exporter::Plan{parts, [&e, parts, axis, u](Given from) {
                          std::vector<std::string> names;
                          for (size_t i = 0; i < parts.size(); i++)
                            names.push_back(e.exact(from[i], parts[i]->shape));
                          return Exported{e.node("Concat", names, {attribute("axis", axis)}),
                                          u->shape, u->shape};
                        }};
}

// ---- softmax: e / sum(e) of e = exp(x - max(x))

std::optional<Exporter::Plan> softmax(Exporter& e, const UOp& u) {
  if (u->op != Op::Mul || (u->dtype != DType::F32 && u->dtype != DType::F64)) return std::nullopt;
  const UOp over = narrow(u->src(1));
  if (over->op != Op::Recip || u->src(0)->op != Op::Exp2) return std::nullopt;
  const UOp sum = over->src(0);
  if (sum->op != Op::Reduce || sum->get<ir::ReduceArg>().axes.size() != 1) return std::nullopt;
  UOp off = u->src(0)->src(0);
  if (off->op == Op::Mul) off = off->src(0);
  if (off->op != Op::Sub) return std::nullopt;
  const UOp x = off->src(0);
  const int64_t axis = sum->get<ir::ReduceArg>().axes[0];
  if (!e.is(wrapped(x).softmax(axis), u)) return std::nullopt;
  return Exporter::Plan{{x}, [&e, x, axis](Given from) {
                          return Exported{e.node("Softmax", {e.exact(from[0], x->shape)},
                                                 {attribute("axis", axis)}),
                                          x->shape, x->shape};
                        }};
}

// ---- layer norms, which have a weight and may have a bias

// What the mean of a sum of squares is added to before its root is taken, where a factor is such.
const Scalar* epsilon_of(const UOp& factor) {
  const UOp over = narrow(factor);
  if (over->op != Op::Recip || over->src(0)->op != Op::Sqrt) return nullptr;
  const UOp sum = over->src(0)->src(0);
  return sum->op == Op::Add ? constant_of(sum->src(1).get()) : nullptr;
}

// A tensor of these extents that a value repeats.
std::optional<UOp> repeated(const UOp& u, const ir::Shape& shape) {
  const UOp x = narrow(u);
  if (!unit_map(x->shape, shape)) return std::nullopt;
  return ir::reshape(x, shape);
}

std::optional<Exporter::Plan> layer_norm(Exporter& e, const UOp& u) {
  const UOp scaled = u->op == Op::Add ? u->src(0) : u;
  if (u->dtype != DType::F32 || scaled->op != Op::Mul || scaled->src(0)->op != Op::Mul)
    return std::nullopt;
  const UOp off = scaled->src(0)->src(0);
  const Scalar* epsilon = epsilon_of(scaled->src(0)->src(1));
  if (!epsilon || off->op != Op::Sub) return std::nullopt;
  const UOp x = off->src(0), mean = narrow(off->src(1));
  if (mean->op != Op::Mul || mean->src(0)->op != Op::Reduce) return std::nullopt;
  const size_t axes = mean->src(0)->get<ir::ReduceArg>().axes.size();
  const ir::Shape normalized(x->shape.end() - std::ptrdiff_t(axes), x->shape.end());
  const auto weight = repeated(scaled->src(1), normalized);
  const auto bias = scaled == u ? weight : repeated(u->src(1), normalized);
  if (!weight || !bias) return std::nullopt;
  const Tensor again =
      wrapped(x).layernorm(detail::sizes_of(normalized), wrapped(*weight),
                           scaled == u ? Tensor() : wrapped(*bias), epsilon->as_double());
  if (!e.is(again, u)) return std::nullopt;
  std::vector<UOp> needed{x, *weight};
  if (scaled != u) needed.push_back(*bias);
  const AttributeList attributes{attribute("axis", -int64_t(axes)),
                                 attribute("epsilon", float(epsilon->as_double()))};
  return Exporter::Plan{needed, [&e, needed, attributes](Given from) {
                          std::vector<std::string> names;
                          for (size_t i = 0; i < from.size(); i++)
                            names.push_back(e.exact(from[i], needed[i]->shape));
                          const ir::Shape& made = needed[0]->shape;
                          return Exported{e.node("LayerNormalization", names, attributes), made,
                                          made};
                        }};
}

// ---- logarithms and exponentials: to base 2 here, to base e there

bool is_about(const UOp& u, double v) {
  const Scalar* s = constant_of(u.get());
  return s && is_float(s->dtype) && s->as_double() == Scalar::of_double(s->dtype, v).as_double();
}

std::optional<Exporter::Plan> natural(Exporter& e, const UOp& u) {
  const auto named = [&](const UOp& x, const char* op) {
    return Exporter::Plan{{x}, [&e, op](Given from) { return e.elementwise(op, from); }};
  };
  if (u->op == Op::Mul && u->src(0)->op == Op::Log2 && is_about(u->src(1), std::numbers::ln2))
    return named(u->src(0)->src(0), "Log");
  const bool base_2 = u->op == Op::Exp2 && u->arg != ir::Arg(ir::kNaturalBase);
  if (base_2 && u->src(0)->op == Op::Mul && is_about(u->src(0)->src(1), std::numbers::log2e))
    return named(u->src(0)->src(0), "Exp");
  return std::nullopt;
}

// Memory in the shape that it is seen in.
std::optional<Exporter::Plan> memory(Exporter& e, const UOp& u) {
  if (u->op != Op::Reshape || u->src(0)->op != Op::Buffer || ir::is_symbolic(u->shape))
    return std::nullopt;
  return Exporter::Plan{{}, [&e, u](Given) { return e.memory(*u->src(0), u->shape); }};
}

}  // namespace

std::optional<Exporter::Plan> function_plan(Exporter& e, const UOp& u) {
  for (const auto pattern : {memory, closed_form, joined, softmax, layer_norm, natural, function})
    if (auto found = pattern(e, u)) return found;
  return std::nullopt;
}

std::optional<Exporter::Plan> pattern_plan(Exporter& e, const UOp& u) {
  for (const auto pattern :
       {function_plan, bits_plan, window_plan, order_plan, loop_plan, pick_plan, product_plan})
    if (auto found = pattern(e, u)) return found;
  return std::nullopt;
}

}  // namespace tuff::onnx
