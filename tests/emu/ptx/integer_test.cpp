// Integer arithmetic, bits and comparisons of PTX against the host's.
#include <algorithm>

#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;
using S16 = int16_t;
using S32 = int32_t;
using S64 = int64_t;
using Wide = __int128;

template <class T>
std::string type_suffix() {
  return fmt::format("{}{}", std::is_signed_v<T> ? "s" : "u", sizeof(T) * 8);
}

template <class T>
void expect_arithmetic() {
  const std::string t = "." + type_suffix<T>();
  const auto low = [](Wide value) { return T(value); };
  expect_op<T, T, T>("add" + t, [&](T a, T b) { return low(Wide(a) + b); });
  expect_op<T, T, T>("sub" + t, [&](T a, T b) { return low(Wide(a) - b); });
  expect_op<T, T, T>("mul.lo" + t, [&](T a, T b) { return T(U64(a) * U64(b)); });
  expect_op<T, T, T, T>("mad.lo" + t, [&](T a, T b, T c) { return T(U64(a) * U64(b) + U64(c)); });
  expect_op<T, T, T>("min" + t, [](T a, T b) { return b < a ? b : a; });
  expect_op<T, T, T>("max" + t, [](T a, T b) { return b > a ? b : a; });
  expect_op<T, T, T, T>(
      "sad" + t, [&](T a, T b, T c) { return low(Wide(c) + (a > b ? Wide(a) - b : Wide(b) - a)); });
  // The upper half of 64 x 64 bits is put together from 32 x 32.
  const auto high = [](T a, T b) {
    if constexpr (sizeof(T) < 8) return T((Wide(a) * Wide(b)) >> (8 * sizeof(T)));
    const U64 al = U32(a), bl = U32(b), ah = U64(a) >> 32, bh = U64(b) >> 32;
    const U64 middle = (al * bl >> 32) + U32(ah * bl) + U32(al * bh);
    U64 out = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32);
    if (std::is_signed_v<T>) out -= (a < 0 ? U64(b) : 0) + (b < 0 ? U64(a) : 0);
    return T(out);
  };
  expect_op<T, T, T>("mul.hi" + t, high);
  expect_op<T, T, T, T>("mad.hi" + t, [&](T a, T b, T c) { return T(U64(high(a, b)) + U64(c)); });
}

// By zero PTX leaves open; that it is what it is here nobody may rely on.
template <class T>
void expect_division() {
  const std::string t = "." + type_suffix<T>();
  expect_op<T, T, T>("div" + t, [](T a, T b) {
    if (b == 0) return T(~T(0));
    return T(Wide(a) / Wide(b));
  });
  expect_op<T, T, T>("rem" + t, [](T a, T b) {
    if (b == 0) return a;
    return T(Wide(a) % Wide(b));
  });
}

TEST(PtxInteger, AddsMultipliesAndCompares) {
  expect_arithmetic<U16>();
  expect_arithmetic<S16>();
  expect_arithmetic<U32>();
  expect_arithmetic<S32>();
  expect_arithmetic<U64>();
  expect_arithmetic<S64>();
}

TEST(PtxInteger, Divides) {
  expect_division<U16>();
  expect_division<S16>();
  expect_division<U32>();
  expect_division<S32>();
  expect_division<U64>();
  expect_division<S64>();
}

TEST(PtxInteger, WideProducts) {
  expect_op<U32, U16, U16>("mul.wide.u16", [](U16 a, U16 b) { return U32(a) * b; });
  expect_op<S32, S16, S16>("mul.wide.s16", [](S16 a, S16 b) { return S32(a) * b; });
  expect_op<U64, U32, U32>("mul.wide.u32", [](U32 a, U32 b) { return U64(a) * b; });
  expect_op<S64, S32, S32>("mul.wide.s32", [](S32 a, S32 b) { return S64(a) * b; });
  expect_op<U64, U32, U32, U64>("mad.wide.u32", [](U32 a, U32 b, U64 c) { return U64(a) * b + c; });
  expect_op<S64, S32, S32, S64>("mad.wide.s32",
                                [](S32 a, S32 b, S64 c) { return S64(U64(S64(a) * b) + U64(c)); });
}

TEST(PtxInteger, SaturatesAndNegates) {
  const auto clamped = [](S64 v) { return S32(std::clamp<S64>(v, INT32_MIN, INT32_MAX)); };
  expect_op<S32, S32, S32>("add.sat.s32", [&](S32 a, S32 b) { return clamped(S64(a) + b); });
  expect_op<S32, S32, S32>("sub.sat.s32", [&](S32 a, S32 b) { return clamped(S64(a) - b); });
  expect_op<S32, S32, S32, S32>(
      "mad.hi.sat.s32", [&](S32 a, S32 b, S32 c) { return clamped((S64(a) * b >> 32) + c); });
  expect_op<S16, S16>("neg.s16", [](S16 a) { return S16(-S32(a)); });
  expect_op<S32, S32>("neg.s32", [](S32 a) { return S32(-S64(a)); });
  expect_op<S64, S64>("neg.s64", [](S64 a) { return S64(0 - U64(a)); });
  expect_op<S32, S32>("abs.s32", [](S32 a) { return a < 0 ? S32(-S64(a)) : a; });
  expect_op<S64, S64>("abs.s64", [](S64 a) { return a < 0 ? S64(0 - U64(a)) : a; });
}

TEST(PtxInteger, Products24) {
  const auto u = [](U32 a) { return U64(a & 0xFFFFFF); };
  const auto s = [](S32 a) { return S64(S32(U32(a) << 8)) / 256; };
  expect_op<U32, U32, U32>("mul24.lo.u32", [&](U32 a, U32 b) { return U32(u(a) * u(b)); });
  expect_op<U32, U32, U32>("mul24.hi.u32", [&](U32 a, U32 b) { return U32(u(a) * u(b) >> 16); });
  expect_op<S32, S32, S32>("mul24.hi.s32", [&](S32 a, S32 b) { return S32((s(a) * s(b)) >> 16); });
  expect_op<S32, S32, S32, S32>(
      "mad24.lo.s32", [&](S32 a, S32 b, S32 c) { return S32(U32(U64(s(a) * s(b))) + U32(c)); });
}

// Sums of 96 bits by carries, as compilers make sums of 128.
TEST(PtxInteger, CarriesGoFromLaneToLaneNowhere) {
  std::vector<U32> a, b;
  SplitMix64 random(5);
  for (uint32_t k = 0; k < 3 * 64; ++k) {
    a.push_back(random.below(3u) == 0 ? ~0u : U32(random.next()));
    b.push_back(random.below(3u) == 0 ? ~0u : U32(random.next()));
  }
  std::vector<U32> sum(3 * 64), difference(3 * 64), product(2 * 64);
  Scene scene(kernel_of(R"(
  mul.wide.u32 %rd4, %r0, 12;
  add.u64 %rd5, %rd0, %rd4;
  add.u64 %rd6, %rd1, %rd4;
  add.u64 %rd7, %rd2, %rd4;
  add.u64 %rd8, %rd3, %rd4;
  ld.global.u32 %r10, [%rd5]; ld.global.u32 %r11, [%rd5+4]; ld.global.u32 %r12, [%rd5+8];
  ld.global.u32 %r20, [%rd6]; ld.global.u32 %r21, [%rd6+4]; ld.global.u32 %r22, [%rd6+8];
  add.cc.u32 %r30, %r10, %r20;
  addc.cc.u32 %r31, %r11, %r21;
  addc.u32 %r32, %r12, %r22;
  st.global.u32 [%rd7], %r30; st.global.u32 [%rd7+4], %r31; st.global.u32 [%rd7+8], %r32;
  sub.cc.u32 %r30, %r10, %r20;
  subc.cc.u32 %r31, %r11, %r21;
  subc.u32 %r32, %r12, %r22;
  st.global.u32 [%rd8], %r30; st.global.u32 [%rd8+4], %r31; st.global.u32 [%rd8+8], %r32;)"));
  scene.request.block = {64, 1, 1};
  scene.run_clean({scene.add(a), scene.add(b), scene.add(sum), scene.add(difference)});
  const auto number = [](const std::vector<U32>& v, uint32_t k) {
    return (unsigned __int128)(v[3 * k + 2]) << 64 | U64(v[3 * k + 1]) << 32 | v[3 * k];
  };
  const auto low96 = [](unsigned __int128 v) { return v << 32 >> 32; };
  for (uint32_t k = 0; k < 64; ++k) {
    EXPECT_TRUE(number(sum, k) == low96(number(a, k) + number(b, k))) << k;
    EXPECT_TRUE(number(difference, k) == low96(number(a, k) - number(b, k))) << k;
  }
}

// A product of 64 bits from 32: mad.lo.cc and madc.hi.
TEST(PtxInteger, ProductsWithCarries) {
  std::vector<U32> in(4 * 64);
  SplitMix64 random(6);
  for (U32& v : in) v = random.below(3u) == 0 ? ~0u : U32(random.next());
  std::vector<U64> out(64);
  Scene scene(kernel_of(R"(
  mul.wide.u32 %rd4, %r0, 16;
  add.u64 %rd5, %rd0, %rd4;
  ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd5];
  mad.lo.cc.u32 %r20, %r10, %r11, %r12;
  madc.hi.u32 %r21, %r10, %r11, %r13;
  mul.wide.u32 %rd4, %r0, 8;
  add.u64 %rd5, %rd1, %rd4;
  st.global.v2.u32 [%rd5], {%r20, %r21};)"));
  scene.request.block = {64, 1, 1};
  scene.run_clean({scene.add(in), scene.add(out)});
  for (uint32_t k = 0; k < 64; ++k) {
    const U64 addend = U64(in[4 * k + 3]) << 32 | in[4 * k + 2];
    EXPECT_EQ(out[k], U64(in[4 * k]) * in[4 * k + 1] + addend) << k;
  }
}

struct Pair16 {
  U16 low, high;
};

TEST(PtxInteger, Pairs) {
  expect_op<Pair16, Pair16, Pair16>("add.u16x2", [](Pair16 a, Pair16 b) {
    return Pair16{U16(a.low + b.low), U16(a.high + b.high)};
  });
  expect_op<Pair16, Pair16, Pair16>("max.s16x2", [](Pair16 a, Pair16 b) {
    return Pair16{S16(a.low) > S16(b.low) ? a.low : b.low,
                  S16(a.high) > S16(b.high) ? a.high : b.high};
  });
  expect_op<Pair16, Pair16, Pair16>("min.u16x2", [](Pair16 a, Pair16 b) {
    return Pair16{std::min(a.low, b.low), std::min(a.high, b.high)};
  });
}

// ---- bits

template <class T>
void expect_logic() {
  const std::string t = fmt::format(".b{}", sizeof(T) * 8);
  expect_op<T, T, T>("and" + t, [](T a, T b) { return T(a & b); });
  expect_op<T, T, T>("or" + t, [](T a, T b) { return T(a | b); });
  expect_op<T, T, T>("xor" + t, [](T a, T b) { return T(a ^ b); });
  expect_op<T, T>("not" + t, [](T a) { return T(~a); });
  expect_op<T, T>("cnot" + t, [](T a) { return T(a ? 0 : 1); });
  constexpr U32 kWidth = 8 * sizeof(T);
  // Amounts from memory are mostly far too large: what they leave is 0 or the sign.
  expect_op<T, T, U32>("shl" + t, [](T a, U32 n) { return n < kWidth ? T(U64(a) << n) : T(0); });
  for (const U32 n : {0u, 1u, 5u, kWidth - 1, kWidth, kWidth + 3, 255u}) {
    const std::string by = fmt::format(", {}", n);
    expect_op<T, T>("shl" + t, [&](T a) { return n < kWidth ? T(U64(a) << n) : T(0); }, by);
    expect_op<T, T>("shr" + t, [&](T a) { return n < kWidth ? T(a >> n) : T(0); }, by);
    using S = std::make_signed_t<T>;
    expect_op<S, S>(
        fmt::format("shr.s{}", kWidth),
        [&](S a) { return n < kWidth ? S(S64(a) >> n) : S(a < 0 ? -1 : 0); }, by);
  }
}

TEST(PtxBits, LogicAndShifts) {
  expect_logic<U16>();
  expect_logic<U32>();
  expect_logic<U64>();
}

TEST(PtxBits, Counts) {
  expect_op<U32, U32>("popc.b32", [](U32 a) { return U32(__builtin_popcount(a)); });
  expect_op<U32, U64>("popc.b64", [](U64 a) { return U32(__builtin_popcountll(a)); });
  expect_op<U32, U32>("clz.b32", [](U32 a) { return a ? U32(__builtin_clz(a)) : 32u; });
  expect_op<U32, U64>("clz.b64", [](U64 a) { return a ? U32(__builtin_clzll(a)) : 64u; });
  const auto top = [](U64 bits) { return bits ? 63 - U32(__builtin_clzll(bits)) : ~0u; };
  expect_op<U32, U32>("bfind.u32", [&](U32 a) { return top(a); });
  expect_op<U32, S32>("bfind.s32", [&](S32 a) { return top(U32(a < 0 ? ~a : a)); });
  expect_op<U32, U64>("bfind.u64", [&](U64 a) { return top(a); });
  expect_op<U32, S64>("bfind.s64", [&](S64 a) { return top(U64(a < 0 ? ~a : a)); });
  expect_op<U32, U32>("bfind.shiftamt.u32", [](U32 a) { return a ? U32(__builtin_clz(a)) : ~0u; });
  const auto reversed = [](U64 a, int width) {
    U64 out = 0;
    for (int k = 0; k < width; ++k) out |= (a >> k & 1) << (width - 1 - k);
    return out;
  };
  expect_op<U32, U32>("brev.b32", [&](U32 a) { return U32(reversed(a, 32)); });
  expect_op<U64, U64>("brev.b64", [&](U64 a) { return reversed(a, 64); });
}

// Bit by bit, as the specification writes it.
template <class T>
T field(T a, U32 position, U32 length) {
  constexpr U32 kTop = 8 * sizeof(T) - 1;
  const auto bit = [&](U32 k) { return U64(a) >> k & 1; };
  position &= 255;
  length &= 255;
  U64 sign = 0;
  if (std::is_signed_v<T> && length > 0) sign = bit(std::min(position + length - 1, kTop));
  U64 out = 0;
  for (U32 k = 0; k <= kTop; ++k)
    out |= (k < length && position + k <= kTop ? bit(position + k) : sign) << k;
  return T(out);
}

TEST(PtxBits, Fields) {
  for (const U32 position : {0u, 3u, 24u, 31u, 40u, 63u, 255u, 259u}) {
    for (const U32 length : {0u, 1u, 8u, 31u, 32u, 64u, 255u, 256u}) {
      const std::string at = fmt::format(", {}, {}", position, length);
      expect_op<U32, U32>("bfe.u32", [&](U32 a) { return field(a, position, length); }, at);
      expect_op<S32, S32>("bfe.s32", [&](S32 a) { return field(a, position, length); }, at);
      expect_op<U64, U64>("bfe.u64", [&](U64 a) { return field(a, position, length); }, at);
      expect_op<S64, S64>("bfe.s64", [&](S64 a) { return field(a, position, length); }, at);
      const auto inserted = [&](U64 a, U64 b, U32 width) {
        U64 out = b;
        for (U32 k = 0; k < (length & 255) && (position & 255) + k < width; ++k) {
          const U32 to = (position & 255) + k;
          out = (out & ~(U64(1) << to)) | (k < 64 ? (a >> k & 1) : 0) << to;
        }
        return out;
      };
      expect_op<U32, U32, U32>(
          "bfi.b32", [&](U32 a, U32 b) { return U32(inserted(a, b, 32)); }, at);
      expect_op<U64, U64, U64>("bfi.b64", [&](U64 a, U64 b) { return inserted(a, b, 64); }, at);
    }
  }
}

TEST(PtxBits, LookupsAndPermutations) {
  for (const U32 table : {0x80u, 0xFEu, 0x96u, 0xE8u, 0x1Bu}) {
    expect_op<U32, U32, U32, U32>(
        "lop3.b32",
        [&](U32 a, U32 b, U32 c) {
          U32 out = 0;
          for (int k = 0; k < 32; ++k) {
            const U32 row = (a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1);
            out |= (table >> row & 1) << k;
          }
          return out;
        },
        fmt::format(", {}", table));
  }
  const auto permuted = [](U32 a, U32 b, U32 selectors) {
    const U64 bytes = U64(b) << 32 | a;
    U32 out = 0;
    for (int k = 0; k < 4; ++k) {
      const U32 s = selectors >> (4 * k) & 15;
      U32 byte = U32(bytes >> (8 * (s % 8)) & 255);
      if (s >= 8) byte = byte >= 128 ? 255 : 0;
      out |= byte << (8 * k);
    }
    return out;
  };
  expect_op<U32, U32, U32, U32>("prmt.b32", permuted);
  const std::map<std::string, std::array<U32, 4>> modes{
      {"f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, {"b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
      {"rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, {"ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
      {"ecr", {0x0000, 0x1110, 0x2210, 0x3210}}, {"rc16", {0x1010, 0x3232, 0x1010, 0x3232}}};
  for (const auto& [mode, selectors] : modes) {
    expect_op<U32, U32, U32, U32>(
        "prmt.b32." + mode, [&](U32 a, U32 b, U32 c) { return permuted(a, b, selectors[c & 3]); });
  }
}

TEST(PtxBits, FunnelShifts) {
  for (const U32 n : {0u, 1u, 13u, 31u, 32u, 33u, 100u}) {
    const std::string by = fmt::format(", {}", n);
    const U32 wrapped = n % 32, clamped = std::min(n, 32u);
    const auto left = [](U32 a, U32 b, U32 k) {
      return k == 0 ? b : k == 32 ? a : b << k | a >> (32 - k);
    };
    const auto right = [](U32 a, U32 b, U32 k) {
      return k == 0 ? a : k == 32 ? b : a >> k | b << (32 - k);
    };
    expect_op<U32, U32, U32>(
        "shf.l.wrap.b32", [&](U32 a, U32 b) { return left(a, b, wrapped); }, by);
    expect_op<U32, U32, U32>(
        "shf.l.clamp.b32", [&](U32 a, U32 b) { return left(a, b, clamped); }, by);
    expect_op<U32, U32, U32>(
        "shf.r.wrap.b32", [&](U32 a, U32 b) { return right(a, b, wrapped); }, by);
    expect_op<U32, U32, U32>(
        "shf.r.clamp.b32", [&](U32 a, U32 b) { return right(a, b, clamped); }, by);
  }
}

TEST(PtxBits, Dots) {
  const auto dot = [](U32 a, U32 b, U32 c, bool sa, bool sb) {
    for (int k = 0; k < 4; ++k) {
      const S32 x = sa ? S32(int8_t(a >> 8 * k)) : S32(a >> 8 * k & 255);
      const S32 y = sb ? S32(int8_t(b >> 8 * k)) : S32(b >> 8 * k & 255);
      c += U32(x * y);
    }
    return c;
  };
  expect_op<U32, U32, U32, U32>("dp4a.u32.u32",
                                [&](U32 a, U32 b, U32 c) { return dot(a, b, c, false, false); });
  expect_op<U32, U32, U32, U32>("dp4a.s32.u32",
                                [&](U32 a, U32 b, U32 c) { return dot(a, b, c, true, false); });
  expect_op<U32, U32, U32, U32>("dp4a.s32.s32",
                                [&](U32 a, U32 b, U32 c) { return dot(a, b, c, true, true); });
  expect_op<U32, U32, U32, U32>("dp2a.hi.s32.u32", [](U32 a, U32 b, U32 c) {
    return c + U32(S32(S16(a)) * S32(b >> 16 & 255)) + U32(S32(S16(a >> 16)) * S32(b >> 24));
  });
  expect_op<U32, U32, U32, U32>("dp2a.lo.u32.s32", [](U32 a, U32 b, U32 c) {
    return c + U32(S32(U16(a)) * S32(int8_t(b))) + U32(S32(a >> 16) * S32(int8_t(b >> 8)));
  });
}

// ---- conversions between integers

TEST(PtxConvert, Integers) {
  expect_op<S32, S32>("cvt.s32.s8", [](S32 a) { return S32(int8_t(a)); });
  expect_op<U32, U32>("cvt.u32.u8", [](U32 a) { return a & 255; });
  expect_op<U64, U32>("cvt.u64.u32", [](U32 a) { return U64(a); });
  expect_op<S64, S32>("cvt.s64.s32", [](S32 a) { return S64(a); });
  expect_op<U32, U64>("cvt.u32.u64", [](U64 a) { return U32(a); });
  expect_op<S32, S16>("cvt.s32.s16", [](S16 a) { return S32(a); });
  expect_op<U16, U32>("cvt.u16.u32", [](U32 a) { return U16(a); });
  // Eight bits in a wider register: their sign, or zeros.
  expect_op<S32, S32>("cvt.s8.s32", [](S32 a) { return S32(int8_t(a)); });
  expect_op<U32, S32>("cvt.u8.s32", [](S32 a) { return U32(uint8_t(a)); });
  expect_op<S16, S32>("cvt.sat.s16.s32", [](S32 a) { return S16(std::clamp(a, -32768, 32767)); });
  expect_op<U16, S32>("cvt.sat.u16.s32", [](S32 a) { return U16(std::clamp(a, 0, 65535)); });
  expect_op<U32, S64>("cvt.sat.u32.s64",
                      [](S64 a) { return U32(std::clamp<S64>(a, 0, UINT32_MAX)); });
  expect_op<S32, U64>("cvt.sat.s32.u64", [](U64 a) { return S32(std::min<U64>(a, INT32_MAX)); });
  expect_op<U32, S32>("cvt.sat.u8.s32", [](S32 a) { return U32(std::clamp(a, 0, 255)); });
}

// ---- comparisons

// setp and selp in one: d = holds ? 1 : 0.
template <class T, class F>
void expect_comparison(const std::string& name, const std::string& type, F holds) {
  SplitMix64 random(99);
  auto a = testing::random_values(type_of_value<T>(), kThreads, random);
  auto b = testing::random_values(type_of_value<T>(), kThreads, random);
  std::copy_n(a.begin(), a.size() / 4, b.begin());  // some are equal
  std::vector<U32> out(kThreads);
  const char* reg = sizeof(T) == 2 ? "%rs" : sizeof(T) == 4 ? "%r" : "%rd";
  Scene scene(kernel_of(fmt::format(R"(
  mul.wide.u32 %rd20, %r0, {0};
  add.u64 %rd21, %rd1, %rd20;
  add.u64 %rd22, %rd2, %rd20;
  ld.global.b{1} {2}40, [%rd21];
  ld.global.b{1} {2}41, [%rd22];
  setp.{3}.{4} %p1|%p2, {2}40, {2}41;
  selp.u32 %r50, 1, 0, %p1;
  selp.u32 %r51, 0, 2, %p2;
  or.b32 %r50, %r50, %r51;
  mul.wide.u32 %rd20, %r0, 4;
  add.u64 %rd21, %rd0, %rd20;
  st.global.u32 [%rd21], %r50;)",
                                    sizeof(T), sizeof(T) * 8, reg, name, type)));
  scene.request.block = {kThreads, 1, 1};
  scene.run_clean({scene.add(out), scene.add(a), scene.add(b)});
  for (uint32_t k = 0; k < kThreads; ++k) {
    const bool wanted = holds(element_at<T>(a, k), element_at<T>(b, k));
    ASSERT_EQ(out[k], wanted ? 3u : 0u) << name << "." << type << " " << k;
  }
}

template <class T>
void expect_comparisons(const std::string& type) {
  expect_comparison<T>("eq", type, [](T a, T b) { return a == b; });
  expect_comparison<T>("lt", type, [](T a, T b) { return a < b; });
  expect_comparison<T>("le", type, [](T a, T b) { return a <= b; });
  expect_comparison<T>("gt", type, [](T a, T b) { return a > b; });
  expect_comparison<T>("ge", type, [](T a, T b) { return a >= b; });
}

TEST(PtxCompare, Integers) {
  expect_comparisons<U16>("u16");
  expect_comparisons<S16>("s16");
  expect_comparisons<U32>("u32");
  expect_comparisons<S32>("s32");
  expect_comparisons<U64>("u64");
  expect_comparisons<S64>("s64");
  expect_comparison<U32>("ne", "b32", [](U32 a, U32 b) { return a != b; });
  expect_comparison<U32>("lo", "u32", [](U32 a, U32 b) { return a < b; });
  expect_comparison<U64>("hs", "u64", [](U64 a, U64 b) { return a >= b; });
}

template <class T>
void expect_float_comparisons(const std::string& type) {
  expect_comparisons<T>(type);
  const auto nan = [](T a, T b) { return a != a || b != b; };
  expect_comparison<T>("ne", type, [&](T a, T b) { return !nan(a, b) && a != b; });
  expect_comparison<T>("num", type, [&](T a, T b) { return !nan(a, b); });
  expect_comparison<T>("nan", type, nan);
  expect_comparison<T>("equ", type, [&](T a, T b) { return nan(a, b) || a == b; });
  expect_comparison<T>("neu", type, [&](T a, T b) { return nan(a, b) || a != b; });
  expect_comparison<T>("ltu", type, [&](T a, T b) { return nan(a, b) || a < b; });
  expect_comparison<T>("geu", type, [&](T a, T b) { return nan(a, b) || a >= b; });
}

TEST(PtxCompare, Floats) {
  expect_float_comparisons<float>("f32");
  expect_float_comparisons<double>("f64");
  const auto half = [](const std::string& op, auto f) {
    expect_comparison<Half>(op, "f16", [&](Half a, Half b) { return f(float(a), float(b)); });
  };
  half("lt", [](float a, float b) { return a < b; });
  half("leu", [](float a, float b) { return !(a > b); });
  const auto flush = [](float a) { return std::abs(a) < 0x1p-126f ? 0.0f : a; };
  expect_comparison<float>("lt.ftz", "f32", [&](float a, float b) { return flush(a) < flush(b); });
}

TEST(PtxCompare, Sets) {
  expect_op<U32, S32, S32>("set.lt.u32.s32", [](S32 a, S32 b) { return a < b ? ~0u : 0u; });
  expect_op<float, float, float>("set.ge.f32.f32",
                                 [](float a, float b) { return a >= b ? 1.f : 0.f; });
  expect_op<U32, U32, U32, S32>("slct.u32.s32", [](U32 a, U32 b, S32 c) { return c >= 0 ? a : b; });
  expect_op<U64, U64, U64, float>("slct.b64.f32",
                                  [](U64 a, U64 b, float c) { return c >= 0 ? a : b; });
}

}  // namespace
}  // namespace tuff::emu::ptx
