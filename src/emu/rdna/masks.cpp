// Instructions that read or write a bit per lane beside their values, or move values between lanes.
#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {

std::array<uint8_t, kLanes> dpp_lanes(const Dpp& dpp) {
  std::array<uint8_t, kLanes> from;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane & ~15, in_row = lane & 15, n = dpp.control & 15;
    int source = 255;
    if (dpp.kind == DppKind::Dpp8) {
      source = (lane & ~7) | dpp.lanes[lane & 7];
    } else if (dpp.control < 0x100) {
      source = (lane & ~3) | (dpp.control >> (2 * (lane & 3)) & 3);
    } else if (dpp.control >> 4 == 0x10) {
      source = in_row + n < 16 ? lane + n : 255;
    } else if (dpp.control >> 4 == 0x11) {
      source = in_row >= n ? lane - n : 255;
    } else if (dpp.control >> 4 == 0x12) {
      source = row | ((in_row - n) & 15);
    } else if (dpp.control == 0x140) {
      source = row | (15 - in_row);
    } else if (dpp.control == 0x141) {
      source = (lane & ~7) | (7 - (lane & 7));
    } else if (dpp.control >> 4 == 0x15) {
      source = row | n;
    } else if (dpp.control >> 4 == 0x16) {
      source = row | (in_row ^ n);
    }
    from[size_t(lane)] = uint8_t(source);
  }
  return from;
}

uint32_t dpp_active_lanes(const Wave& w, const Instruction& i) {
  uint32_t lanes = w.exec();
  const auto from = dpp_lanes(i.dpp);
  for (int k = 0; k < kLanes; ++k) {
    const bool row = i.dpp.row_mask >> (k / 16) & 1, bank = i.dpp.bank_mask >> (k % 16 / 4) & 1;
    const bool reachable = from[k] != 255 && (i.dpp.fetch_inactive || w.exec() >> from[k] & 1);
    if (!row || !bank || (!reachable && !i.dpp.bound_control)) lanes &= ~(1u << k);
  }
  return lanes;
}

void fetch_dpp(const Wave& w, const Instruction& i, uint32_t index, Words& out) {
  const auto from = dpp_lanes(i.dpp);
  for (int k = 0; k < kLanes; ++k) {
    const bool there = from[k] != 255 && (i.dpp.fetch_inactive || w.exec() >> from[k] & 1);
    out[k] = there ? w.v[index][from[k]] : 0;
  }
}

namespace {

// The mask operand of selections and carries: field V, the third source, or VCC where it is
// implied.
uint32_t mask_in(const Wave& w, const Instruction& i) {
  for (int k = i.operand_count - 1; k >= 0; --k) {
    const Operand& o = i.operands[k];
    if (o.field == '2') return o.kind == OperandKind::Scalar ? read_scalar(w, o.index) : o.value;
  }
  return w.vcc();
}

void mask_out(Wave& w, const Instruction& i, uint32_t mask) {
  const Operand* d = i.find('S');
  write_scalar(w, d ? d->index : source::VccLo, mask & w.exec());
}

template <class T>
void select(Wave& w, const Instruction& i) {
  Lanes<T> a, b;
  const uint32_t mask = mask_in(w, i);
  fetch<T>(w, i, *i.find('0'), a);
  fetch<T>(w, i, *i.find('1'), b);
  for (int k = 0; k < kLanes; ++k) a[k] = mask >> k & 1 ? b[k] : a[k];
  store<T>(w, i, *i.find('D'), a, active_lanes(w, i));
}

// sum of a, b and the carry in, or difference; the carry or borrow comes out.
enum class Carry { Add, Subtract, Reversed };
template <Carry kind, bool with_input>
void carry(Wave& w, const Instruction& i) {
  Lanes<uint32_t> a, b, r;
  const uint32_t in = with_input ? mask_in(w, i) : 0;
  fetch<uint32_t>(w, i, *i.find('0'), a);
  fetch<uint32_t>(w, i, *i.find('1'), b);
  if (kind == Carry::Reversed) std::swap(a, b);
  Words carried;
  for (int k = 0; k < kLanes; ++k) {
    const uint32_t one = (in & kLaneBit[k]) != 0 ? 1 : 0;
    const uint32_t first = kind == Carry::Add ? a[k] + b[k] : a[k] - b[k];
    r[k] = kind == Carry::Add ? first + one : first - one;
    const bool out_of_first = kind == Carry::Add ? first < a[k] : first > a[k];
    const bool out_of_second = kind == Carry::Add ? r[k] < first : r[k] > first;
    carried[k] = (out_of_first | out_of_second) ? kLaneBit[k] : 0;
  }
  uint32_t out = 0;
  for (const uint32_t bit : carried) out |= bit;
  store<uint32_t>(w, i, *i.find('D'), r, active_lanes(w, i));
  mask_out(w, i, out);
}

template <class T, class Wide>
void mad64(Wave& w, const Instruction& i) {
  Lanes<T> a, b;
  Lanes<Wide> c;
  fetch<T>(w, i, *i.find('0'), a);
  fetch<T>(w, i, *i.find('1'), b);
  fetch<Wide>(w, i, *i.find('2'), c);
  uint32_t out = 0;
  for (int k = 0; k < kLanes; ++k) {
    Wide sum;
    out |= uint32_t(__builtin_add_overflow(Wide(Wide(a[k]) * Wide(b[k])), c[k], &sum)) << k;
    c[k] = sum;
  }
  store<Wide>(w, i, *i.find('D'), c, active_lanes(w, i));
  mask_out(w, i, out);
}

uint32_t first_lane(const Wave& w) { return w.exec() ? uint32_t(std::countr_zero(w.exec())) : 0; }

void read_first_lane(Wave& w, const Instruction& i) {
  const Operand& o = *i.find('0');
  const uint32_t value = o.kind == OperandKind::Vector   ? w.v[o.index][first_lane(w)]
                         : o.kind == OperandKind::Scalar ? read_scalar(w, o.index)
                                                         : o.value;
  write_scalar(w, i.find('D')->index, value);
}

uint32_t uniform(const Wave& w, const Instruction& i, char field) {
  return uint32_t(uniform_bits<uint32_t>(w, i, *i.find(field)));
}

void read_lane(Wave& w, const Instruction& i) {
  const uint32_t lane = uniform(w, i, '1') & 31;
  write_scalar(w, i.find('D')->index, w.v[i.find('0')->index][lane]);
}

void write_lane(Wave& w, const Instruction& i) {
  const uint32_t value = uniform(w, i, '0'), lane = uniform(w, i, '1') & 31;
  const Operand& d = *i.find('D');
  w.v[d.index][lane] = value;
  w.v_written[d.index] |= 1u << lane;
}

void swap_registers(Wave& w, const Instruction& i) {
  Words &a = w.v[i.find('D')->index], &b = w.v[i.find('0')->index];
  const Words old = a;
  const Words other = b;
  blend(a, other, w.exec());
  blend(b, old, w.exec());
}

void swap_halves(Wave& w, const Instruction& i) {
  const Operand &d = *i.find('D'), &from = *i.find('0');
  Lanes<uint16_t> a, b;
  fetch<uint16_t>(w, i, d, a);
  fetch<uint16_t>(w, i, from, b);
  store_half(w, i, d, w.exec(), [&](int k) { return uint32_t(b[k]); });
  store_half(w, i, from, w.exec(), [&](int k) { return uint32_t(a[k]); });
}

// Any lane of a row (or of the other row) chosen by four bits of two scalars.
template <bool exchange>
void permute_row(Wave& w, const Instruction& i) {
  const uint64_t choice = uniform(w, i, '1') | uint64_t(uniform(w, i, '2')) << 32;
  const Words from = w.v[i.find('0')->index];
  Words out;
  uint32_t lanes = w.exec();
  const bool fetch_inactive = i.op_sel & 1, bound_control = i.op_sel & 2;
  for (int k = 0; k < kLanes; ++k) {
    const int row = (k & 16) ^ (exchange ? 16 : 0);
    const int source = row | int(choice >> (4 * (k & 15)) & 15);
    const bool there = fetch_inactive || (w.exec() >> source & 1);
    out[k] = there ? from[source] : 0;
    if (!there && !bound_control) lanes &= ~(1u << k);
  }
  blend(w.v[i.find('D')->index], out, lanes);
}

template <bool high>
void count_bits_below(Wave& w, const Instruction& i) {
  Lanes<uint32_t> mask, base;
  fetch<uint32_t>(w, i, *i.find('0'), mask);
  fetch<uint32_t>(w, i, *i.find('1'), base);
  for (int k = 0; k < kLanes; ++k) {
    const uint32_t below = high ? 0 : (1u << k) - 1;  // a wave of 32 has no upper half
    base[k] += uint32_t(std::popcount(mask[k] & below));
  }
  store<uint32_t>(w, i, *i.find('D'), base, active_lanes(w, i));
}

constexpr Handler kRows[] = {
    TUFF_RDNA_LANES(V_CNDMASK_B32, (select<float>(w, i))),
    {Op::V_CNDMASK_B16, select<uint16_t>},
    TUFF_RDNA_LANES(V_ADD_CO_U32, (carry<Carry::Add, false>(w, i))),
    TUFF_RDNA_LANES(V_SUB_CO_U32, (carry<Carry::Subtract, false>(w, i))),
    TUFF_RDNA_LANES(V_SUBREV_CO_U32, (carry<Carry::Reversed, false>(w, i))),
    TUFF_RDNA_LANES(V_ADD_CO_CI_U32, (carry<Carry::Add, true>(w, i))),
    TUFF_RDNA_LANES(V_SUB_CO_CI_U32, (carry<Carry::Subtract, true>(w, i))),
    TUFF_RDNA_LANES(V_SUBREV_CO_CI_U32, (carry<Carry::Reversed, true>(w, i))),
    TUFF_RDNA_LANES(V_MAD_U64_U32, (mad64<uint32_t, uint64_t>(w, i))),
    TUFF_RDNA_LANES(V_MAD_I64_I32, (mad64<int32_t, int64_t>(w, i))),
    {Op::V_READFIRSTLANE_B32, read_first_lane},
    {Op::V_READLANE_B32, read_lane},
    {Op::V_WRITELANE_B32, write_lane},
    {Op::V_SWAP_B32, swap_registers},
    {Op::V_SWAP_B16, swap_halves},
    {Op::V_PERMLANE16_B32, permute_row<false>},
    {Op::V_PERMLANEX16_B32, permute_row<true>},
    {Op::V_MBCNT_LO_U32_B32, count_bits_below<false>},
    {Op::V_MBCNT_HI_U32_B32, count_bits_below<true>},
};

}  // namespace

std::span<const Handler> mask_handlers() { return kRows; }

}  // namespace tuff::emu::rdna
