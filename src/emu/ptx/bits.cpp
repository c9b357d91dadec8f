// Bits, bytes and shifts. Source: PTX ISA 7.8, 9.7.1.14 and on, 9.7.7, 9.7.8.7 (prmt).
#include <algorithm>
#include <type_traits>

#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

template <class T>
constexpr uint32_t kBits = 8 * sizeof(T);

// Amounts beyond the width shift everything out (9.7.7.7, 9.7.7.8).
template <class T>
T shift_left(T a, uint32_t by) {
  return by >= kBits<T> ? T(0) : T(uint64_t(a) << by);
}
template <class T>
T shift_right(T a, uint32_t by) {
  return T(a >> std::min(by, kBits<T> - 1)) & T(std::is_signed_v<T> || by < kBits<T> ? ~T(0) : 0);
}

template <class T>
T reversed(T a) {
  T out = 0;
  for (uint32_t k = 0; k < kBits<T>; ++k) out = T(out << 1 | (a >> k & 1));
  return out;
}

// The highest bit that differs from the sign; ~0 where there is none (9.7.1.16).
template <class T>
uint32_t highest_bit(T a) {
  using U = std::make_unsigned_t<T>;
  const U bits = U(a < 0 ? ~a : a);
  return bits == 0 ? ~0u : kBits<T> - 1 - uint32_t(std::countl_zero(bits));
}

// 9.7.1.18: position and length count modulo 256; what lies above the value is its sign.
template <class T>
T extracted(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  position &= 255;
  length &= 255;
  if (length == 0) return 0;
  const bool sign =
      std::is_signed_v<T> && (U(a) >> std::min(position + length - 1, kBits<T> - 1) & 1);
  U out = 0;
  const uint32_t there = position < kBits<T> ? std::min(length, kBits<T> - position) : 0;
  if (there) out = U(U(a) >> position) & U(there == kBits<T> ? ~U(0) : (U(1) << there) - 1);
  if (sign && there < kBits<T>) out |= U(~U(0) << there);
  return T(out);
}

template <class T>
T inserted(T a, T b, uint32_t position, uint32_t length) {
  position &= 255;
  length &= 255;
  if (position >= kBits<T> || length == 0) return b;
  const T ones = length >= kBits<T> ? T(~T(0)) : T((T(1) << length) - 1);
  const T mask = T(ones << position);
  return T((b & ~mask) | (T(a << position) & mask));
}

uint32_t lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t out = 0;
  for (uint32_t k = 0; k < 8; ++k) {
    if (table >> k & 1) out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  }
  return out;
}

// 9.7.7.9: the pair b:a, shifted by c; wrap: c modulo 32, clamp: at most 32.
uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t by) {
  return uint32_t((uint64_t(b) << 32 | a) << by >> 32);
}
uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t by) {
  return uint32_t((uint64_t(b) << 32 | a) >> by);
}

// A byte of b:a, or eight times its sign.
uint32_t permuted_byte(uint64_t bytes, uint32_t selector) {
  const uint32_t byte = uint32_t(bytes >> (8 * (selector & 7))) & 255;
  return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}
uint32_t permuted(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t out = 0;
  for (uint32_t k = 0; k < 4; ++k)
    out |= permuted_byte(bytes, selectors >> (4 * k) & 15) << (8 * k);
  return out;
}

// The selectors of the special modes, by the two low bits of c (9.7.8.7, table of modes).
uint32_t permuted_by(const std::array<uint32_t, 4>& selectors, uint32_t a, uint32_t b, uint32_t c) {
  return permuted(a, b, selectors[c & 3]);
}

void permute_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1)), &c = w.value(i.s(2));
  for_each_set(lanes, [&](uint32_t k) {
    d[k] = permuted(uint32_t(a[k]), uint32_t(b[k]), uint32_t(c[k]));
  });
}

Execute permutation(const Form& f) {
  using T = uint32_t;
#define TUFF_MODE(name, s0, s1, s2, s3) \
  if (f.has(name))                      \
    return rows<T, T, T, T>([](T a, T b, T c) { return permuted_by({s0, s1, s2, s3}, a, b, c); });
  TUFF_MODE("f4e", 0x3210, 0x4321, 0x5432, 0x6543)
  TUFF_MODE("b4e", 0x5670, 0x6701, 0x7012, 0x0123)
  TUFF_MODE("rc8", 0x0000, 0x1111, 0x2222, 0x3333)
  TUFF_MODE("ecl", 0x3210, 0x3211, 0x3222, 0x3333)
  TUFF_MODE("ecr", 0x0000, 0x1110, 0x2210, 0x3210)
  TUFF_MODE("rc16", 0x1010, 0x3232, 0x1010, 0x3232)
#undef TUFF_MODE
  return permute_rows;
}

template <class A, class B>
uint32_t dot_of_bytes(uint32_t a, uint32_t b, uint32_t c) {
  for (uint32_t k = 0; k < 32; k += 8) c += uint32_t(int32_t(A(a >> k)) * int32_t(B(b >> k)));
  return c;
}
// Of a's halves with the lower or the upper two bytes of b.
template <class A, class B, uint32_t first>
uint32_t dot_of_halves(uint32_t a, uint32_t b, uint32_t c) {
  for (uint32_t k = 0; k < 2; ++k)
    c += uint32_t(int32_t(A(a >> (16 * k))) * int32_t(B(b >> (first + 8 * k))));
  return c;
}

template <class A8, class A16, class B>
Execute dot_row(const Form& f) {
  using T = uint32_t;
  if (f.base == "dp4a")
    return rows<T, T, T, T>([](T a, T b, T c) { return dot_of_bytes<A8, B>(a, b, c); });
  if (f.has("lo"))
    return rows<T, T, T, T>([](T a, T b, T c) { return dot_of_halves<A16, B, 0>(a, b, c); });
  return rows<T, T, T, T>([](T a, T b, T c) { return dot_of_halves<A16, B, 16>(a, b, c); });
}

Execute dot(const Form& f) {
  const bool a = is_signed(f.type(0)), b = is_signed(f.type(1));
  if (a) return b ? dot_row<int8_t, int16_t, int8_t>(f) : dot_row<int8_t, int16_t, uint8_t>(f);
  return b ? dot_row<uint8_t, uint16_t, int8_t>(f) : dot_row<uint8_t, uint16_t, uint8_t>(f);
}

void insert_rows(Warp& w, const Instruction& i, uint32_t lanes, bool wide) {
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1)), &p = w.value(i.s(2)),
              &n = w.value(i.s(3));
  for_each_set(lanes, [&](uint32_t k) {
    d[k] = wide
               ? inserted<uint64_t>(a[k], b[k], uint32_t(p[k]), uint32_t(n[k]))
               : inserted<uint32_t>(uint32_t(a[k]), uint32_t(b[k]), uint32_t(p[k]), uint32_t(n[k]));
  });
}

void lookup_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1)), &c = w.value(i.s(2)),
              &t = w.value(i.s(3));
  for_lanes(lanes, [&](uint32_t k) {
    d[k] = lookup(uint32_t(a[k]), uint32_t(b[k]), uint32_t(c[k]), uint32_t(t[k]));
  });
}

template <class T>
Execute logic(const Form& f) {
  if (f.base == "and") return rows<T, T, T>([](T a, T b) { return T(a & b); });
  if (f.base == "or") return rows<T, T, T>([](T a, T b) { return T(a | b); });
  if (f.base == "xor") return rows<T, T, T>([](T a, T b) { return T(a ^ b); });
  if (f.base == "not") return rows<T, T>([](T a) { return T(~a); });
  if (f.base == "cnot") return rows<T, T>([](T a) { return T(a == 0); });
  return nullptr;
}

template <class T>
Execute counts(const Form& f) {
  using U = std::make_unsigned_t<T>;
  if (f.base == "popc") return rows<uint32_t, U>([](U a) { return uint32_t(std::popcount(a)); });
  if (f.base == "clz") return rows<uint32_t, U>([](U a) { return uint32_t(std::countl_zero(a)); });
  if (f.has("shiftamt"))
    return rows<uint32_t, T>([](T a) {
      const uint32_t at = highest_bit(a);
      return at == ~0u ? at : kBits<T> - 1 - at;
    });
  return rows<uint32_t, T>([](T a) { return highest_bit(a); });
}

template <class T>
Execute bits_row(const Form& f) {
  if (f.base == "shl")
    return rows<T, T, uint32_t>([](T a, uint32_t b) { return shift_left(a, b); });
  if (f.base == "shr")
    return rows<T, T, uint32_t>([](T a, uint32_t b) { return shift_right(a, b); });
  if (f.base == "popc" || f.base == "clz" || f.base == "bfind") return counts<T>(f);
  if (f.base == "brev") return rows<T, T>([](T a) { return reversed(a); });
  if constexpr (sizeof(T) >= 4) {
    if (f.base == "bfe")
      return rows<T, T, uint32_t, uint32_t>(
          [](T a, uint32_t b, uint32_t c) { return extracted(a, b, c); });
    if (f.base == "bfi") {
      if (sizeof(T) == 8)
        return
            [](Warp& w, const Instruction& i, uint32_t lanes) { insert_rows(w, i, lanes, true); };
      return [](Warp& w, const Instruction& i, uint32_t lanes) { insert_rows(w, i, lanes, false); };
    }
  }
  return logic<T>(f);
}

Execute funnel(const Form& f) {
  using T = uint32_t;
  if (f.has("l")) {
    if (f.has("wrap"))
      return rows<T, T, T, T>([](T a, T b, T c) { return funnel_left(a, b, c & 31); });
    return rows<T, T, T, T>([](T a, T b, T c) { return funnel_left(a, b, std::min(c, 32u)); });
  }
  if (f.has("wrap"))
    return rows<T, T, T, T>([](T a, T b, T c) { return funnel_right(a, b, c & 31); });
  return rows<T, T, T, T>([](T a, T b, T c) { return funnel_right(a, b, std::min(c, 32u)); });
}

// Bits of a and b; amounts, positions and selectors are wanted as a whole. Compilers name any
// register as the source that no selector of prmt chooses a byte of.
uint8_t bit_sources(const Form& f) {
  if (f.base == "and" || f.base == "or" || f.base == "xor" || f.base == "bfi" || f.base == "shf" ||
      f.base == "prmt")
    return 3;
  return f.base == "not" || f.base == "shl" || f.base == "shr" || f.base == "bfe" ||
         f.base == "brev";
}

}  // namespace

void make_bits(const Form& f, Instruction& i) {
  i.bit_sources = bit_sources(f);
  if (f.base == "lop3") {
    i.execute = lookup_rows;
  } else if (f.base == "shf") {
    i.execute = funnel(f);
  } else if (f.base == "prmt") {
    i.execute = permutation(f);
  } else if (f.base == "dp4a" || f.base == "dp2a") {
    i.execute = dot(f);
  } else {
    with_integer(f.type(), [&]<class T>() { i.execute = bits_row<T>(f); });
  }
}

}  // namespace tuff::emu::ptx
