// VOP3P: two 16-bit values in a register, mixed precision, dot products.
#include <algorithm>

#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

void fetch_words(const Wave& w, const Instruction& i, const Operand& o, bool halves, Words& out) {
  if (o.kind == OperandKind::Vector) {
    out = w.v[o.index];
    if (i.dpp.kind != DppKind::None && o.field == '0') fetch_dpp(w, i, o.index, out);
  } else if (o.kind == OperandKind::Scalar) {
    out.fill(read_scalar(w, o.index));
  } else if (halves && o.index >= source::Float0 && o.index <= 248) {
    out.fill(uint32_t(constant_bits<F16>(o)));
  } else {
    out.fill(uint32_t(constant_bits<uint32_t>(o)));
  }
}

// Halves as the instruction chooses them, for the low or the high result.
template <class T>
void fetch_half(const Wave& w, const Instruction& i, const Operand& o, bool high, Lanes<T>& out) {
  Words words;
  fetch_words(w, i, o, is_float<T>, words);
  const int source = o.field - '0';
  const int shift = (high ? i.op_sel_hi : i.op_sel) >> source & 1 ? 16 : 0;
  const bool negate = (high ? i.neg_hi : i.neg) >> source & 1;
  for (int k = 0; k < kLanes; ++k) out[k] = from_bits<T>(words[k] >> shift & 0xFFFF);
  if constexpr (is_float<T>) {
    if (negate) {
      for (auto& value : out) value = -value;
    }
    flush_inputs<T>(w, out);
  }
}

template <class T>
uint32_t half_bits(const Wave& w, typename Computed<T>::type value) {
  if constexpr (std::is_same_v<T, F16>)
    return f16_rounded(value, w.mode);
  else
    return uint16_t(value);
}

template <class T, int sources, class F>
void packed(Wave& w, const Instruction& i, F f) {
  Words out{};
  for (const bool high : {false, true}) {
    std::array<Lanes<T>, 3> s{};
    for (int k = 0; k < sources; ++k) {
      fetch_half<T>(w, i, *i.find(char('0' + k)), high, s[size_t(k)]);
    }
    Lanes<T> r;
    for (int k = 0; k < kLanes; ++k) r[k] = f(s[0][k], s[1][k], s[2][k]);
    apply_output<T>(w, i, r);
    for (int k = 0; k < kLanes; ++k) out[k] |= half_bits<T>(w, r[k]) << (high ? 16 : 0);
  }
  blend(w.v[i.find('D')->index], out, active_lanes(w, i));
}

// A source of mixed precision: 32 bits, or the half that op_sel names.
void fetch_mixed(const Wave& w, const Instruction& i, const Operand& o, Lanes<float>& out) {
  const int source = o.field - '0';
  const bool narrow_source = i.op_sel_hi >> source & 1;
  Words words;
  fetch_words(w, i, o, narrow_source, words);
  const int shift = i.op_sel >> source & 1 ? 16 : 0;
  for (int k = 0; k < kLanes; ++k) {
    out[k] = narrow_source ? narrow::f16_to_f32(uint16_t(words[k] >> shift))
                           : std::bit_cast<float>(words[k]);
    if (o.absolute) out[k] = std::fabs(out[k]);
    if (o.negate) out[k] = -out[k];
  }
  if (!narrow_source) return flush_inputs<float>(w, out);
  if (!keeps_input_denormals<2>(w.mode)) {
    for (auto& value : out) value = flush_denormal<2>(value);
  }
}

enum class Result { Whole, Low, High };
template <Result result>
void mixed(Wave& w, const Instruction& i) {
  Lanes<float> a, b, c;
  fetch_mixed(w, i, *i.find('0'), a);
  fetch_mixed(w, i, *i.find('1'), b);
  fetch_mixed(w, i, *i.find('2'), c);
  for (int k = 0; k < kLanes; ++k) a[k] = std::fma(a[k], b[k], c[k]);
  apply_output<float>(w, i, a);
  const bool flushes = !keeps_output_denormals<2>(w.mode);
  Words& to = w.v[i.find('D')->index];
  Words out = to;
  for (int k = 0; k < kLanes; ++k) {
    uint32_t half = f16_rounded(a[k], w.mode);
    if (flushes && (half & 0x7C00) == 0) half &= 0x8000;
    out[k] = result == Result::Whole ? std::bit_cast<uint32_t>(a[k])
             : result == Result::Low ? (to[k] & 0xFFFF0000) | half
                                     : (to[k] & 0xFFFF) | half << 16;
  }
  blend(to, out, active_lanes(w, i));
}

// A half of each pair, with the signs of VOP3P. Other encodings choose no halves.
struct PairChoice {
  explicit PairChoice(const Instruction& i)
      : low(i.encoding() == Encoding::VOP3P ? i.op_sel : 0),
        high(i.encoding() == Encoding::VOP3P ? i.op_sel_hi : 3),
        negate(i.encoding() == Encoding::VOP3P ? i.neg : 0),
        negate_high(i.encoding() == Encoding::VOP3P ? i.neg_hi : 0) {}
  float pick(uint32_t word, const Operand& o, bool upper, bool brain) const {
    const int source = o.field - '0';
    const bool from_high = (upper ? high : low) >> source & 1;
    const float value = widened(word >> (from_high ? 16 : 0), brain);
    const float magnitude = o.absolute ? std::fabs(value) : value;
    return ((upper ? negate_high : negate) >> source & 1) != o.negate ? -magnitude : magnitude;
  }
  uint8_t low, high, negate, negate_high;
};

// The two products of each lane, the upper one first.
void fetch_products(const Wave& w, const Instruction& i, bool brain,
                    std::array<std::array<Lanes<float>, 2>, 2>& out) {
  const PairChoice choice(i);
  for (size_t source = 0; source < 2; ++source) {
    const Operand& o = *i.find(char('0' + source));
    Words words;
    fetch_words(w, i, o, true, words);
    for (size_t k = 0; k < kLanes; ++k) {
      out[0][source][k] = choice.pick(words[k], o, true, brain);
      out[1][source][k] = choice.pick(words[k], o, false, brain);
    }
  }
}

// Two products into a 32-bit sum, low halves last; each step rounds once. Of halves the unit knows
// no denormals of 32 bits, whatever MODE says (LLVM, SIISelLowering, performFMACombine).
template <bool brain, char sum = '2'>
void dot2(Wave& w, const Instruction& i) {
  std::array<std::array<Lanes<float>, 2>, 2> products;
  Lanes<float> c;
  fetch_products(w, i, brain, products);
  fetch<float>(w, i, *i.find(sum), c);
  const auto held = [](float value) { return brain ? value : flush_denormal(value); };
  for (size_t k = 0; k < kLanes; ++k) {
    c[k] = held(c[k]);
    for (const auto& [a, b] : products) c[k] = std::fma(a[k], b[k], c[k]);
    c[k] = held(c[k]);
  }
  apply_output<float>(w, i, c);
  store<float>(w, i, *i.find('D'), c, active_lanes(w, i));
}

// The same into a sum of 16 bits, rounded once.
template <bool brain>
void dot2_narrow(Wave& w, const Instruction& i) {
  std::array<std::array<Lanes<float>, 2>, 2> products;
  Lanes<uint16_t> c;
  fetch_products(w, i, brain, products);
  fetch<uint16_t>(w, i, *i.find('2'), c);
  for (size_t k = 0; k < kLanes; ++k) {
    double total = widened(c[k], brain);
    for (const auto& [a, b] : products) total += double(a[k]) * double(b[k]);
    c[k] = brain ? narrow::bf16_from_f32(float(total)) : f16_from_f64(total);
  }
  store<uint16_t>(w, i, *i.find('D'), c, active_lanes(w, i));
}

// Four or eight integers per register; neg says which side is signed.
template <int width, bool may_be_signed>
void dot_integers(Wave& w, const Instruction& i) {
  Words a, b, c;
  fetch_words(w, i, *i.find('0'), false, a);
  fetch_words(w, i, *i.find('1'), false, b);
  fetch_words(w, i, *i.find('2'), false, c);
  const auto part = [&](uint32_t word, int at, int source) {
    const int32_t top = int32_t(word << (32 - width - at));
    const bool is_signed = may_be_signed && (i.neg >> source & 1);
    return is_signed ? int64_t(top >> (32 - width)) : int64_t(uint32_t(top) >> (32 - width));
  };
  for (int k = 0; k < kLanes; ++k) {
    int64_t sum = may_be_signed ? int64_t(int32_t(c[k])) : int64_t(c[k]);
    for (int at = 0; at < 32; at += width) sum += part(a[k], at, 0) * part(b[k], at, 1);
    if (i.clamp) {
      sum = may_be_signed ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX)
                          : std::clamp<int64_t>(sum, 0, UINT32_MAX);
    }
    c[k] = uint32_t(sum);
  }
  blend(w.v[i.find('D')->index], c, active_lanes(w, i));
}

#define PACKED(op, T, sources, expr)                                                               \
  TUFF_RDNA_LANES(                                                                                 \
      op, (packed<T, sources>(w, i, [](auto a, [[maybe_unused]] auto b, [[maybe_unused]] auto c) { \
        return Computed<T>::type(expr);                                                            \
      })))

constexpr Handler kRows[] = {
    PACKED(V_PK_ADD_F16, F16, 2, a + b),
    PACKED(V_PK_MUL_F16, F16, 2, a* b),
    PACKED(V_PK_FMA_F16, F16, 3, half_fma(a, b, c)),
    PACKED(V_PK_MIN_F16, F16, 2, Order().min(a, b)),
    PACKED(V_PK_MAX_F16, F16, 2, Order().max(a, b)),
    PACKED(V_PK_ADD_U16, uint16_t, 2, a + b),
    PACKED(V_PK_SUB_U16, uint16_t, 2, a - b),
    PACKED(V_PK_ADD_I16, uint16_t, 2, a + b),
    PACKED(V_PK_SUB_I16, uint16_t, 2, a - b),
    PACKED(V_PK_MUL_LO_U16, uint16_t, 2, uint32_t(a) * b),
    PACKED(V_PK_MAD_U16, uint16_t, 3, uint32_t(a) * b + c),
    PACKED(V_PK_MAD_I16, uint16_t, 3, uint32_t(a) * b + c),
    PACKED(V_PK_MIN_I16, int16_t, 2, std::min(a, b)),
    PACKED(V_PK_MAX_I16, int16_t, 2, std::max(a, b)),
    PACKED(V_PK_MIN_U16, uint16_t, 2, std::min(a, b)),
    PACKED(V_PK_MAX_U16, uint16_t, 2, std::max(a, b)),
    PACKED(V_PK_LSHLREV_B16, uint16_t, 2, b << (a & 15)),
    PACKED(V_PK_LSHRREV_B16, uint16_t, 2, b >> (a & 15)),
    PACKED(V_PK_ASHRREV_I16, int16_t, 2, b >> (a & 15)),
    {Op::V_FMA_MIX_F32, mixed<Result::Whole>},
    {Op::V_FMA_MIXLO_F16, mixed<Result::Low>},
    {Op::V_FMA_MIXHI_F16, mixed<Result::High>},
    {Op::V_DOT2_F32_F16, dot2<false>},
    {Op::V_DOT2_F32_BF16, dot2<true>},
    {Op::V_DOT2ACC_F32_F16, dot2<false, 'D'>},
    {Op::V_DOT2_F16_F16, dot2_narrow<false>},
    {Op::V_DOT2_BF16_BF16, dot2_narrow<true>},
    {Op::V_DOT4_I32_IU8, dot_integers<8, true>},
    {Op::V_DOT4_U32_U8, dot_integers<8, false>},
    {Op::V_DOT8_I32_IU4, dot_integers<4, true>},
    {Op::V_DOT8_U32_U4, dot_integers<4, false>},
};

}  // namespace

std::span<const Handler> packed_handlers() { return kRows; }

}  // namespace tuff::emu::rdna
