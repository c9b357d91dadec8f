// Integer arithmetic. Source: PTX ISA 7.8, 9.7.1 and 9.7.2.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>>;

// Promotion to int would overflow where 16 bits are multiplied.
template <class T>
T wrapped_add(T a, T b) {
  return T(Unsigned<T>(a) + Unsigned<T>(b));
}
template <class T>
T wrapped_sub(T a, T b) {
  return T(Unsigned<T>(a) - Unsigned<T>(b));
}
template <class T>
T low_product(T a, T b) {
  return T(uint64_t(a) * uint64_t(b));
}
template <class T>
T high_product(T a, T b) {
  return T((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
}

int32_t saturated(int64_t value) {
  return int32_t(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

// Division by zero gives an unspecified value (9.7.1.8): all ones, as its callers may not rely on
// it. The least integer by -1 wraps.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return T(~T(0));
  if (std::is_signed_v<T> && b == T(-1)) return wrapped_sub(T(0), a);
  return T(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == T(-1)) return 0;
  return T(a % b);
}

template <class T>
T distance(T a, T b) {
  return a < b ? wrapped_sub(b, a) : wrapped_sub(a, b);
}

// The lower 24 bits, with sign.
template <class T>
int64_t low_24(T a) {
  return std::is_signed_v<T> ? int64_t(int32_t(uint32_t(a) << 8) >> 8)
                             : int64_t(uint32_t(a) & 0xFFFFFF);
}

template <class T>
Execute two_sources(const Form& f) {
  if (f.base == "add") return rows<T, T, T>([](T a, T b) { return wrapped_add(a, b); });
  if (f.base == "sub") return rows<T, T, T>([](T a, T b) { return wrapped_sub(a, b); });
  if (f.base == "div") return rows<T, T, T>([](T a, T b) { return quotient(a, b); });
  if (f.base == "rem") return rows<T, T, T>([](T a, T b) { return remainder(a, b); });
  if (f.base == "min") return rows<T, T, T>([](T a, T b) { return std::min(a, b); });
  if (f.base == "max") return rows<T, T, T>([](T a, T b) { return std::max(a, b); });
  if (f.base == "mul" && f.has("hi"))
    return rows<T, T, T>([](T a, T b) { return high_product(a, b); });
  if (f.base == "mul") return rows<T, T, T>([](T a, T b) { return low_product(a, b); });
  return nullptr;
}

template <class T>
Execute one_source(const Form& f) {
  if (f.base == "abs") return rows<T, T>([](T a) { return a < 0 ? wrapped_sub(T(0), a) : a; });
  if (f.base == "neg") return rows<T, T>([](T a) { return wrapped_sub(T(0), a); });
  return nullptr;
}

template <class T>
Execute three_sources(const Form& f) {
  if (f.base == "sad")
    return rows<T, T, T, T>([](T a, T b, T c) { return wrapped_add(c, distance(a, b)); });
  if (f.base == "mad" && f.has("hi"))
    return rows<T, T, T, T>([](T a, T b, T c) { return wrapped_add(high_product(a, b), c); });
  if (f.base == "mad")
    return rows<T, T, T, T>([](T a, T b, T c) { return wrapped_add(low_product(a, b), c); });
  return nullptr;
}

template <class T>
Execute wide_product(const Form& f) {
  using W = Wide<T>;
  if constexpr (sizeof(T) <= 4) {
    if (f.base == "mul") return rows<W, T, T>([](T a, T b) { return W(W(a) * W(b)); });
    return rows<W, T, T, W>([](T a, T b, W c) { return wrapped_add(W(W(a) * W(b)), c); });
  }
  return nullptr;
}

template <class T>
Execute product_24(const Form& f) {
  const bool high = f.has("hi"), add = f.base == "mad24";
  if (!high && !add) return rows<T, T, T>([](T a, T b) { return T(low_24(a) * low_24(b)); });
  if (!add) return rows<T, T, T>([](T a, T b) { return T((low_24(a) * low_24(b)) >> 16); });
  if (!high)
    return rows<T, T, T, T>([](T a, T b, T c) { return T(low_24(a) * low_24(b) + int64_t(c)); });
  return rows<T, T, T, T>(
      [](T a, T b, T c) { return T(((low_24(a) * low_24(b)) >> 16) + int64_t(c)); });
}

Execute saturating(const Form& f) {
  using T = int32_t;
  if (f.base == "add")
    return rows<T, T, T>([](T a, T b) { return saturated(int64_t(a) + int64_t(b)); });
  if (f.base == "sub")
    return rows<T, T, T>([](T a, T b) { return saturated(int64_t(a) - int64_t(b)); });
  return rows<T, T, T, T>(
      [](T a, T b, T c) { return saturated(int64_t(high_product(a, b)) + int64_t(c)); });
}

template <class T>
struct Pair {
  std::array<T, 2> of;
};
template <class T, class F>
Pair<T> each_half(Pair<T> a, Pair<T> b, F f) {
  return {{f(a.of[0], b.of[0]), f(a.of[1], b.of[1])}};
}

template <class T>
Execute pairs(const Form& f) {
  using P = Pair<T>;
  if (f.base == "add")
    return rows<P, P, P>(
        [](P a, P b) { return each_half(a, b, [](T x, T y) { return wrapped_add(x, y); }); });
  if (f.base == "min")
    return rows<P, P, P>(
        [](P a, P b) { return each_half(a, b, [](T x, T y) { return std::min(x, y); }); });
  return rows<P, P, P>(
      [](P a, P b) { return each_half(a, b, [](T x, T y) { return std::max(x, y); }); });
}

template <class T>
Execute integer_row(const Form& f) {
  if constexpr (sizeof(T) >= 2) {
    if (f.has("wide")) return wide_product<T>(f);
    if (f.base == "mul24" || f.base == "mad24") {
      if constexpr (sizeof(T) == 4) return product_24<T>(f);
      return nullptr;
    }
    if (f.base == "abs" || f.base == "neg") {
      if constexpr (std::is_signed_v<T>) return one_source<T>(f);
      return nullptr;
    }
    if (f.base == "mad" || f.base == "sad") return three_sources<T>(f);
    return two_sources<T>(f);
  }
  return nullptr;
}

// ---- with a carry: of each lane, in CC.CF

template <class T>
struct Sum {
  T value;
  bool carry;
};

template <class T, class F>
void with_carry(Warp& w, const Instruction& i, uint32_t lanes, bool writes, F f) {
  Lanes& d = w.value(i.d());
  uint32_t carry = w.carry;
  for_each_set(lanes, [&](uint32_t k) {
    const Sum<T> sum = f(k, bool(carry >> k & 1));
    d[k] = to_bits<T>(sum.value);
    if (writes) carry = (carry & ~(1u << k)) | uint32_t(sum.carry) << k;
  });
  w.carry = carry;
}

template <class T>
Sum<T> add_with(T a, T b, bool carry) {
  const unsigned __int128 sum = (unsigned __int128)(a) + b + carry;
  return {T(sum), bool(sum >> (8 * sizeof(T)) & 1)};
}
// A borrow is the carry of a difference (9.7.2.3).
template <class T>
Sum<T> sub_with(T a, T b, bool borrow) {
  const unsigned __int128 difference = (unsigned __int128)(a)-b - borrow;
  return {T(difference), bool(difference >> (8 * sizeof(T)) & 1)};
}

template <class T, bool subtracts, bool reads, bool writes>
void sum_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1));
  with_carry<T>(w, i, lanes, writes, [&](uint32_t k, bool carry) {
    const T x = T(a[k]), y = T(b[k]);
    return subtracts ? sub_with<T>(x, y, reads && carry) : add_with<T>(x, y, reads && carry);
  });
}

// P: the type of the product, of which the sign counts for the upper half.
template <class P, bool high, bool reads, bool writes>
void product_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  using T = Unsigned<P>;
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1)), &c = w.value(i.s(2));
  with_carry<T>(w, i, lanes, writes, [&](uint32_t k, bool carry) {
    const P x = P(a[k]), y = P(b[k]);
    const T product = T(high ? high_product(x, y) : low_product(x, y));
    return add_with<T>(product, T(c[k]), reads && carry);
  });
}

template <class T>
Execute carry_sums(const Form& f) {
  const bool writes = f.has("cc");
  if (f.base == "add") return sum_rows<T, false, false, true>;
  if (f.base == "sub") return sum_rows<T, true, false, true>;
  if (f.base == "addc")
    return writes ? sum_rows<T, false, true, true> : sum_rows<T, false, true, false>;
  return writes ? sum_rows<T, true, true, true> : sum_rows<T, true, true, false>;
}

template <class P>
Execute carry_products(const Form& f) {
  const bool high = f.has("hi"), writes = f.has("cc");
  if (f.base == "mad")
    return high ? product_rows<P, true, false, true> : product_rows<P, false, false, true>;
  if (high) return writes ? product_rows<P, true, true, true> : product_rows<P, true, true, false>;
  return writes ? product_rows<P, false, true, true> : product_rows<P, false, true, false>;
}

}  // namespace

void make_integer(const Form& f, Instruction& i) {
  if (f.has("sat")) {
    i.execute = saturating(f);
  } else if (f.type() == Type::U16x2) {
    i.execute = pairs<uint16_t>(f);
    i.by_halves = true;
  } else if (f.type() == Type::S16x2) {
    i.execute = pairs<int16_t>(f);
    i.by_halves = true;
  } else {
    with_integer(f.type(), [&]<class T>() { i.execute = integer_row<T>(f); });
  }
}

void make_carry(const Form& f, Instruction& i) {
  with_integer(f.type(), [&]<class T>() {
    if constexpr (sizeof(T) >= 4) {
      const bool product = f.base == "mad" || f.base == "madc";
      i.execute = product ? carry_products<T>(f) : carry_sums<Unsigned<T>>(f);
    }
  });
}

}  // namespace tuff::emu::ptx
