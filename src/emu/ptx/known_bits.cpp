#include "emu/ptx/known_bits.h"

#include <vector>

namespace tuff::emu::ptx {
namespace {

uint64_t all_bits(const Frame& frame, uint32_t reg) {
  const uint32_t width = frame.function->register_bits[reg];
  return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

// Sources, with what nobody wrote filled in by turns.
class Trials {
 public:
  Trials(Warp& w, const Instruction& i, uint32_t lanes) : w_(w), i_(i), lanes_(lanes) {
    for (uint32_t s = 0; s < i.sources; ++s) {
      Lanes unknown{};
      for_each_set(lanes, [&](uint32_t k) {
        unknown[k] = all_bits(*w.frame, i.s(s)) & ~known_bits(*w.frame, i.s(s), k);
      });
      unknown_.push_back(unknown);
      original_.push_back(w.value(i.s(s)));
    }
  }
  // Bit s of `ones`: source s has ones where nobody wrote, else zeros.
  void run(uint32_t ones) {
    for (uint32_t s = 0; s < i_.sources; ++s) {
      Lanes& value = w_.value(i_.s(s));
      for_each_set(lanes_, [&](uint32_t k) {
        value[k] = (original_[s][k] & ~unknown_[s][k]) | (ones >> s & 1 ? unknown_[s][k] : 0);
      });
    }
    i_.execute(w_, i_, lanes_);
  }
  void restore() {
    for (uint32_t s = 0; s < i_.sources; ++s) w_.value(i_.s(s)) = original_[s];
  }

 private:
  Warp& w_;
  const Instruction& i_;
  const uint32_t lanes_;
  std::vector<Lanes> unknown_, original_;
};

}  // namespace

uint64_t known_bits(const Frame& frame, uint32_t reg, uint32_t lane) {
  if (frame.defined[reg] >> lane & 1) return all_bits(frame, reg);
  const auto found = frame.known_bits.find(reg);
  return found == frame.known_bits.end() ? 0 : found->second[lane];
}

void Frame::forget_bits(uint32_t reg, uint32_t lanes) {
  const auto found = known_bits.find(reg);
  if (found != known_bits.end()) for_each_set(lanes, [&](uint32_t k) { found->second[k] = 0; });
}

void set_known_bits(Frame& frame, uint32_t reg, uint32_t lane, uint64_t bits) {
  if (bits || frame.known_bits.contains(reg)) frame.known_bits[reg][lane] = bits;
}

// A half has a value where that half of every source has.
void execute_by_halves(Warp& w, const Instruction& i, uint32_t lanes, uint32_t known) {
  Lanes halves{};
  for_each_set(lanes & ~known, [&](uint32_t k) {
    for (const uint64_t half : {0xffffu, 0xffff0000u}) {
      bool whole = true;
      for (uint32_t s = 0; s < i.sources; ++s)
        whole = whole && (known_bits(*w.frame, i.s(s), k) & half) == half;
      if (whole) halves[k] |= half;
    }
  });
  i.execute(w, i, lanes);
  w.define(i.d(), lanes, known);
  for_each_set(lanes & ~known,
               [&](uint32_t k) { set_known_bits(*w.frame, i.d(), k, halves[k]); });
}

// A bit of a result takes at most one bit of each of two sources, so that zeros, ones and each
// source's ones alone are all there is; of more sources it takes a bit of one.
void execute_by_bits(Warp& w, const Instruction& i, uint32_t lanes) {
  uint32_t others = lanes;  // whose sources that are no bits are known
  for (uint32_t s = 0; s < i.sources; ++s)
    if (!(i.bit_sources >> s & 1)) others &= w.frame->defined[i.s(s)];
  std::vector<Lanes> first(i.destinations), differs(i.destinations);
  Trials trials(w, i, lanes);
  const auto note = [&](bool is_first) {
    for (uint32_t e = 0; e < i.destinations; ++e) {
      if (i.d(e) == kNone) continue;
      const Lanes& found = w.value(i.d(e));
      if (is_first) first[e] = found;
      for_each_set(lanes, [&](uint32_t k) { differs[e][k] |= first[e][k] ^ found[k]; });
    }
  };
  trials.run(0);
  note(true);
  trials.run(~0u);
  note(false);
  for (uint32_t s = 0; i.sources > 1 && s < i.sources; ++s) {
    trials.run(1u << s);
    note(false);
  }
  trials.restore();
  for (uint32_t e = 0; e < i.destinations; ++e) {
    const uint32_t d = i.d(e);
    if (d == kNone) continue;
    const uint64_t all = all_bits(*w.frame, d);
    uint32_t whole = 0;
    for_each_set(lanes, [&](uint32_t k) {
      w.value(d)[k] = first[e][k];
      whole |= uint32_t((others >> k & 1) && (differs[e][k] & all) == 0) << k;
    });
    w.define(d, lanes, whole);
    for_each_set(lanes & others & ~whole,
                 [&](uint32_t k) { set_known_bits(*w.frame, d, k, all & ~differs[e][k]); });
  }
}

}  // namespace tuff::emu::ptx
