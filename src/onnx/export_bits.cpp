// Functions of floats whose kernels look at bits: signs of zeros, random numbers, powers,
// remainders of divisions. What the last two were called with is near a test of a sign bit, a
// truncation or a quotient, and they are built again for a proof.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "onnx/exporter.h"
#include "tensor/impl.h"

namespace tuff::onnx {
namespace {

using ir::Op;
using ir::UOp;
using Given = std::span<const Exported>;

constexpr size_t kMostNodes = 400;  // below a function's result

// Whether x's sign bit is set: of zeros, but not of NaN, of which no operator tells.
std::optional<Exporter::Plan> sign_bit(Exporter& e, const UOp& u) {
  if (u->op != Op::CmpLt || u->src(0)->op != Op::Bitcast) return std::nullopt;
  const UOp x = u->src(0)->src(0);
  const Scalar* zero = constant_of(u->src(1).get());
  if (!is_float(x->dtype) || !is_int(u->src(0)->dtype) || is_unsigned(u->src(0)->dtype) || !zero ||
      zero->as_bool())
    return std::nullopt;
  return Exporter::Plan{{x}, [&e, t = x->dtype](Given from) {
                          const Exported none = e.number(Scalar::of_double(t, 0));
                          const Exported over = e.elementwise("Reciprocal", {from[0]});
                          return e.elementwise("Or", {e.elementwise("Less", {from[0], none}),
                                                      e.elementwise("Less", {over, none})});
                        }};
}

// The upper bits of random words as floats: high * (0 to below 1).
std::optional<Exporter::Plan> uniform(Exporter& e, const UOp& u) {
  if (u->op != Op::Mul || u->src(0)->op != Op::Cast || u->src(0)->src(0)->op != Op::Shr)
    return std::nullopt;
  const UOp shifted = u->src(0)->src(0);
  const Scalar *scale = constant_of(u->src(1).get()), *shift = constant_of(shifted->src(1).get());
  UOp word = shifted->src(0);
  while (word->op == Op::Reshape) word = word->src(0);
  if (word->op != Op::Threefry || !scale || !shift || !is_float(u->dtype)) return std::nullopt;
  const double high = std::ldexp(scale->as_double(), int(32 - shift->as_int()));
  return Exporter::Plan{{}, [&e, u, high](Given) { return random_uniform(e, u, u->dtype, high); }};
}

// What a function may have been called with.
struct Candidates {
  std::vector<UOp> signed_ones, truncated, numbers;
  std::vector<std::pair<UOp, UOp>> quotients;
  bool has_bits = false;
};

void put_once(std::vector<UOp>& list, const UOp& u) {
  if (std::ranges::find(list, u) == list.end()) list.push_back(u);
}

Candidates candidates_below(const UOp& u) {
  Candidates out;
  std::vector<UOp> queue{u};
  std::unordered_set<const ir::Node*> seen{u.get()};
  for (size_t i = 0; i < queue.size() && queue.size() < kMostNodes; i++) {
    const UOp n = queue[i];
    if (n->op == Op::CmpLt && n->src(0)->op == Op::Bitcast)
      put_once(out.signed_ones, n->src(0)->src(0));
    out.has_bits = out.has_bits || n->op == Op::Bitcast;
    if (n->op == Op::Trunc) put_once(out.truncated, n->src(0));
    if (n->op == Op::Div) out.quotients.emplace_back(n->src(0), n->src(1));
    if (n->is_const() && n->dtype == u->dtype) put_once(out.numbers, n);
    for (const UOp& s : n->src())
      if (seen.insert(s.get()).second) queue.push_back(s);
  }
  return out;
}

Exporter::Plan of_two(Exporter& e, const char* op, const UOp& x, const UOp& y) {
  return {{x, y}, [&e, op](Given from) { return e.elementwise(op, from); }};
}

// Whether operands broadcast to the node.
bool make_shape(const UOp& a, const UOp& b, const UOp& u) {
  const size_t rank = u->shape.size();
  if (std::max(a->shape.size(), b->shape.size()) != rank) return false;
  const auto extent = [&](const UOp& x, size_t i) {
    const size_t missing = rank - x->shape.size();
    return i < missing ? ir::Dim(1) : x->shape[i - missing];
  };
  for (size_t i = 0; i < rank; i++) {
    const ir::Dim own = u->shape[i], x = extent(a, i), y = extent(b, i);
    if (!(x == own || x == 1) || !(y == own || y == 1) || !(x == own || y == own)) return false;
  }
  return true;
}

Tensor wrapped(const UOp& u, const std::string& device) { return detail::wrap(u, device); }

std::optional<Exporter::Plan> power(Exporter& e, const UOp& u, const Candidates& c) {
  const std::string device = ir::device_of(u);
  for (const UOp& x : c.signed_ones) {
    if (x->dtype != u->dtype) continue;
    const Tensor base = wrapped(x, device);
    for (const UOp& y : c.truncated)
      if (y->dtype == u->dtype && make_shape(x, y, u) &&
          e.is(base.pow(wrapped(y, device)), u))
        return of_two(e, "Pow", x, y);
    for (const UOp& y : c.numbers)
      if (x->shape == u->shape && e.is(base.pow(Number(y->get<Scalar>().as_double())), u))
        return of_two(e, "Pow", x, y);
  }
  return std::nullopt;
}

// ---- remainders, which have the sign of the dividend in ONNX

Exported remainder(Exporter& e, Given from) {
  return e.elementwise("Mod", from, {attribute("fmod", int64_t{1})});
}
Exported floored(Exporter& e, Given from, DType t) {
  const Exported r = remainder(e, from), none = e.number(Scalar::of_double(t, 0));
  const Exported differ = e.elementwise(
      "Xor", {e.elementwise("Less", {r, none}), e.elementwise("Less", {from[1], none})});
  const Exported some = e.elementwise("Not", {e.elementwise("Equal", {r, none})});
  return e.elementwise("Where", {e.elementwise("And", {some, differ}),
                                 e.elementwise("Add", {r, from[1]}), r});
}
// From the remainder, so that both agree; by zero the quotient.
Exported floor_quotient(Exporter& e, Given from, DType t) {
  const Exported by_zero =
      e.elementwise("Equal", {from[1], e.number(Scalar::of_double(t, 0))});
  const Exported rest = e.elementwise("Sub", {from[0], floored(e, from, t)});
  const Exported whole = e.elementwise("Round", {e.elementwise("Div", {rest, from[1]})});
  return e.elementwise("Where", {by_zero, e.elementwise("Div", from), whole});
}

std::optional<Exporter::Plan> division(Exporter& e, const UOp& u, const Candidates& c) {
  const std::string device = ir::device_of(u);
  for (const auto& [dividend, divisor] : c.quotients) {
    if (dividend->dtype != u->dtype || !make_shape(dividend, divisor, u)) continue;
    const Tensor a = wrapped(dividend, device), b = wrapped(divisor, device);
    const std::vector<UOp> both{dividend, divisor};
    const auto of = [&](auto make) {
      return Exporter::Plan{both,
                            [&e, make, t = u->dtype](Given from) { return make(e, from, t); }};
    };
    if (e.is(a.fmod(b), u))
      return of([](Exporter& e, Given from, DType) { return remainder(e, from); });
    if (e.is(a.remainder(b), u)) return of(floored);
    if (e.is(a.floor_divide(b), u)) return of(floor_quotient);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Exporter::Plan> bits_plan(Exporter& e, const UOp& u) {
  if (auto found = sign_bit(e, u)) return found;
  if (auto found = uniform(e, u)) return found;
  if (u->op != Op::Where || (u->dtype != DType::F32 && u->dtype != DType::F64))
    return std::nullopt;
  const Candidates c = candidates_below(u);
  if (!c.has_bits) return std::nullopt;
  if (auto found = power(e, u, c)) return found;
  return division(e, u, c);
}

}  // namespace tuff::onnx
