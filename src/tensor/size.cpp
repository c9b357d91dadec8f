// Extents: arithmetic and comparisons of symbolic integers, decided by their bounds.
#include <tuff/size.h>

#include <limits>
#include <tuple>

#include "base/check.h"
#include "ir/symbolic.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff {

using detail::dim_of;
using detail::size_of;
using ir::UOp;

namespace {

UOp expression_of(const Size& s) { return dim_of(s).uop(); }

std::string bounds_text(const UOp& u) {
  std::string out;
  for (const ir::Node* n : ir::toposort(u)) {
    if (n->op != ir::Op::Variable) continue;
    const auto& v = n->get<ir::VariableArg>();
    out += fmt::format("{}{} in {}..{}", out.empty() ? "" : ", ", v.name, v.min, v.max);
  }
  return out;
}

// Where the difference of two extents lies.
struct Difference {
  int64_t min, max;
  Difference(const Size& a, const Size& b) {
    std::tie(min, max) = ir::tight_bounds(ir::simplify(expression_of(a) - expression_of(b)));
  }
};

[[noreturn]] void undecided(const Size& a, const char* relation, const Size& b) {
  fail<InvalidArgument>("whether {} {} {} depends on its value ({})", a.str(), relation, b.str(),
                        bounds_text(expression_of(a) + expression_of(b)));
}

void require_division(const Size& a, const Size& b) {
  if (a.min() < 0 || b.min() < 1)
    fail<InvalidArgument>("{}: extents that vary are divided where neither is negative ({})",
                          ir::expression(ir::floordiv(expression_of(a), expression_of(b))),
                          bounds_text(expression_of(a) + expression_of(b)));
}

// Of two numbers; the least by -1 has no quotient that int64 holds.
void require_quotient(const Size& a, const Size& b) {
  const int64_t x = a, y = b;
  if (y == 0 || (y == -1 && x == std::numeric_limits<int64_t>::min()))
    fail<InvalidArgument>("the extent {} divided by {}", x, y);
}

bool numbers(const Size& a, const Size& b) { return a.is_number() && b.is_number(); }
int64_t value(const Size& s) { return s; }

}  // namespace

namespace detail {

ir::Dim dim_of(const Size& s) {
  return s.is_number() ? ir::Dim(value(s)) : ir::Dim(UOp(s.expression()));
}
Size size_of(const ir::Dim& d) { return d.is_const() ? Size(d.value()) : Size(d.uop().get()); }
Sizes sizes_of(const ir::Shape& shape) {
  Sizes out;
  out.reserve(shape.size());
  for (const ir::Dim& d : shape) out.push_back(size_of(d));
  return out;
}

bool same(const Size& a, const Size& b) {
  if (numbers(a, b)) return value(a) == value(b);
  const Difference d(a, b);
  return d.min == 0 && d.max == 0;
}
bool same(const Sizes& a, const Sizes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Size& x, const Size& y) { return same(x, y); });
}

std::string varying_text(const Sizes& sizes) {
  UOp sum = ir::index_const(0);
  for (const Size& s : sizes) sum = sum + expression_of(s);
  return bounds_text(sum);
}

void require_numbers(const char* what, const Sizes& sizes) {
  for (const Size& s : sizes) {
    if (!s.is_number())
      fail<Unsupported>("{}: the shape {} varies ({}), and {} takes numbers alone", what,
                        text(sizes), varying_text(sizes), what);
  }
}

}  // namespace detail

Size::Size(const ir::Node* expression) {
  TUFF_CHECK(expression != nullptr, "an extent without an expression");
  if (expression->is_const()) {
    number_ = expression->const_int();
  } else {
    expression_ = expression;
    retain();
  }
}
void Size::retain() const { expression_->refs.fetch_add(1, std::memory_order_relaxed); }
void Size::release() const { UOp::adopt(expression_); }
void Size::refuse_number() const {
  fail<InvalidArgument>("the extent {} varies ({}) where a number is needed", str(),
                        bounds_text(UOp(expression_)));
}
int64_t Size::min() const {
  return expression_ ? ir::tight_bounds(UOp(expression_)).first : number_;
}
int64_t Size::max() const {
  return expression_ ? ir::tight_bounds(UOp(expression_)).second : number_;
}
std::string Size::str() const {
  return expression_ ? ir::expression(UOp(expression_)) : std::to_string(number_);
}

Size operator+(const Size& a, const Size& b) {
  return numbers(a, b) ? Size(value(a) + value(b)) : size_of(dim_of(a) + dim_of(b));
}
Size operator-(const Size& a, const Size& b) {
  return numbers(a, b) ? Size(value(a) - value(b)) : size_of(dim_of(a) - dim_of(b));
}
Size operator*(const Size& a, const Size& b) {
  return numbers(a, b) ? Size(value(a) * value(b)) : size_of(dim_of(a) * dim_of(b));
}
Size operator/(const Size& a, const Size& b) {
  if (numbers(a, b)) {
    require_quotient(a, b);
    return value(a) / value(b);
  }
  require_division(a, b);
  return size_of(ir::simplify(ir::floordiv(expression_of(a), expression_of(b))));
}
Size operator%(const Size& a, const Size& b) {
  if (numbers(a, b)) {
    require_quotient(a, b);
    return value(a) % value(b);
  }
  require_division(a, b);
  return size_of(ir::simplify(ir::floormod(expression_of(a), expression_of(b))));
}
Size& Size::operator+=(const Size& o) { return *this = *this + o; }
Size& Size::operator-=(const Size& o) { return *this = *this - o; }
Size& Size::operator*=(const Size& o) { return *this = *this * o; }

bool operator==(const Size& a, const Size& b) {
  if (numbers(a, b)) return value(a) == value(b);
  const Difference d(a, b);
  if (d.min == 0 && d.max == 0) return true;
  if (d.min > 0 || d.max < 0) return false;
  undecided(a, "==", b);
}
bool operator!=(const Size& a, const Size& b) { return !(a == b); }
bool operator<(const Size& a, const Size& b) {
  if (numbers(a, b)) return value(a) < value(b);
  const Difference d(a, b);
  if (d.max < 0) return true;
  if (d.min >= 0) return false;
  undecided(a, "<", b);
}
bool operator>(const Size& a, const Size& b) { return b < a; }
bool operator<=(const Size& a, const Size& b) { return !(b < a); }
bool operator>=(const Size& a, const Size& b) { return !(a < b); }

}  // namespace tuff
