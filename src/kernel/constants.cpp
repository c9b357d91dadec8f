#include "kernel/constants.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/check.h"
#include "ir/walk.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Together with bounds that no extent has.
constexpr char kMark = '=';

// What renderers and compilers fold by, and what has no order.
bool is_plain(const Scalar& v) {
  if (!is_float(v.dtype)) return v.as_int() >= -1 && v.as_int() <= 2;
  const double x = std::abs(v.as_double());
  return !std::isfinite(x) || x == 0 || x == 0.5 || x == 1 || x == 2;
}

bool is_power_of_two(const Scalar& v) {
  int exponent = 0;
  return std::abs(std::frexp(v.as_double(), &exponent)) == 0.5;
}

bool fits_word(const Scalar& v) {
  const int64_t i = v.as_int();
  return i >= std::numeric_limits<int32_t>::min() && i <= std::numeric_limits<int32_t>::max() &&
         (is_signed(v.dtype) || int64_t(v.bits) >= 0);
}

// Two words of the block make one.
bool is_wide(const Scalar& v) {
  return v.dtype == DType::F64 || (size_bytes(v.dtype) == 8 && !fits_word(v));
}

bool has_argument_form(const Scalar& v, const Target& target) {
  if (v.dtype == DType::F64) return target.features.i64 && target.features.f64;
  if (is_float(v.dtype) ? is_weak(v.dtype) : !is_int(v.dtype)) return false;
  return !is_wide(v) || target.features.i64;
}

// A value that loop counters alone decide: what is compared with a number there is structure.
bool is_counted(const UOp& x) {
  const std::vector<const Node*> below = toposort(x);
  return std::ranges::any_of(below, [](const Node* n) { return n->op == Op::Range; }) &&
         std::ranges::none_of(below, [](const Node* n) { return n->op == Op::Load; });
}

// Whether n's code is the same whatever number its i-th source is.
bool takes_any_number(const Node& n, size_t i) {
  const Scalar& v = n.src(i)->get<Scalar>();
  if (n.op == Op::Store) return i > 0;
  switch (row(n.op).constants) {
    case OpConstants::None: return false;
    case OpConstants::All: return true;
    case OpConstants::Choices: return i > 0;
    case OpConstants::Quotient: return i == 0 || !is_power_of_two(v);
    case OpConstants::Compared: return !is_counted(n.src(1 - i));
  }
  return false;
}

UOp word(size_t number) {
  const UOp v = variable(fmt::format("{}{}", kMark, number), std::numeric_limits<int32_t>::min(),
                         std::numeric_limits<int32_t>::max());
  return cast(v, DType::I32);
}

UOp argument(const Scalar& v, size_t number) {
  const UOp low = word(2 * number);
  if (v.dtype == DType::F32) return bitcast(low, DType::F32);
  if (is_float(v.dtype) && size_bytes(v.dtype) < 4)
    return bitcast(cast(low, is_float8(v.dtype) ? DType::U8 : DType::U16), v.dtype);
  if (!is_wide(v)) return cast(low, v.dtype);
  const UOp high = cast(bitcast(word(2 * number + 1), DType::U32), DType::U64);
  const UOp shifted = alu(Op::Shl, {high, constant(Scalar::of_int(DType::U64, 32))});
  const UOp all = alu(Op::Or, {shifted, cast(bitcast(low, DType::U32), DType::U64)});
  return bitcast(all, v.dtype);
}

}  // namespace

std::vector<UOp> free_constants(const UOp& ast, const Target& target) {
  const std::vector<const Node*> nodes = toposort(ast);
  std::unordered_set<const Node*> found, kept;
  std::vector<UOp> offsets;
  for (const Node* n : nodes) {
    if (n->op == Op::Index) offsets.insert(offsets.end(), n->src().begin() + 1, n->src().end());
    for (size_t i = 0; i < n->src_count; i++) {
      const Node* c = n->src(i).get();
      if (!c->is_const() || c->dtype == DType::Index) continue;
      const Scalar& v = c->get<Scalar>();
      const bool free = has_argument_form(v, target) && !is_plain(v) && takes_any_number(*n, i);
      (free ? found : kept).insert(c);
    }
  }
  if (found.empty()) return {};
  for (const Node* n : toposort(offsets)) kept.insert(n);
  std::vector<UOp> out;
  for (const Node* n : nodes)
    if (found.count(n) && !kept.count(n)) out.emplace_back(n);
  return out;
}

UOp with_arguments(const UOp& ast, std::span<const UOp> constants, const std::vector<bool>& taken) {
  UOpMap<UOp> map;
  for (size_t i = 0; i < constants.size(); i++)
    if (taken[i]) map.emplace(constants[i], argument(constants[i]->get<Scalar>(), i));
  return substitute(ast, map);
}

std::vector<int32_t> constant_words(std::span<const UOp> constants) {
  std::vector<int32_t> out;
  for (const UOp& c : constants) {
    uint64_t bits = c->get<Scalar>().bits;
    if (is_float(c->dtype)) {
      std::byte memory[8] = {};
      store_scalar(c->get<Scalar>(), memory);
      bits = load_scalar(DType::U64, memory).bits;
    }
    out.push_back(int32_t(uint32_t(bits)));
    out.push_back(int32_t(uint32_t(bits >> 32)));
  }
  return out;
}

int32_t constant_word(const Node& variable) {
  const VariableArg& v = variable.get<VariableArg>();
  if (v.min >= 0 || v.name.empty() || v.name[0] != kMark) return -1;
  int32_t number = -1;
  std::from_chars(v.name.data() + 1, v.name.data() + v.name.size(), number);
  return number;
}

}  // namespace tuff::kernel
