// What the lanes of a warp do together: they have come to the instruction before it executes
// (control.cpp), grouped by the mask that each names. Source: PTX ISA 7.8, 9.7.8.5 (shfl.sync),
// 9.7.12 (vote.sync, match.sync, redux.sync, bar.warp.sync).
#include <algorithm>

#include "emu/ptx/lanes.h"
#include "emu/ptx/machine.h"
#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

// Calls f(members) for each set of executing lanes that name the same mask, the last source.
template <class F>
void for_each_mask(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  const Lanes& masks = w.value(i.s(i.sources - 1u));
  for (uint32_t left = lanes; left;) {
    const auto mask = uint32_t(masks[uint32_t(std::countr_zero(left))]);
    uint32_t members = 0;
    for_each_set(left, [&](uint32_t k) { members |= uint32_t(uint32_t(masks[k]) == mask) << k; });
    left &= ~members;
    f(members);
  }
}

enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };

struct ShuffleSource {
  uint32_t lane = 0;
  bool in_range = false;
};

// 9.7.8.5: c has the last lane of a segment, and the bits of the lane's number that stay.
ShuffleSource shuffle_source(Shuffle mode, uint32_t lane, uint32_t b, uint32_t c) {
  b &= 31;
  const uint32_t clamp = c & 31, mask = c >> 8 & 31;
  const uint32_t most = (lane & mask) | (clamp & ~mask), least = lane & mask;
  int64_t from = 0;
  bool in_range = false;
  switch (mode) {
    case Shuffle::Up:
      from = int64_t(lane) - b;
      in_range = from >= int64_t(most);
      break;
    case Shuffle::Down:
      from = lane + b;
      in_range = from <= int64_t(most);
      break;
    case Shuffle::Butterfly:
      from = lane ^ b;
      in_range = from <= int64_t(most);
      break;
    case Shuffle::Index:
      from = least | (b & ~mask);
      in_range = from <= int64_t(most);
      break;
  }
  return {in_range ? uint32_t(from) : lane, in_range};
}

void shuffle_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Machine& machine = *w.machine;
  machine.require(w, i.s(1), lanes, "the lane of a shuffle");
  const Lanes a = w.value(i.s(0)), b = w.value(i.s(1)), c = w.value(i.s(2));
  const uint32_t known = w.frame->defined[i.s(0)];
  uint32_t defined = 0, predicate = 0;
  for_each_mask(w, i, lanes, [&](uint32_t members) {
    for_each_set(members, [&](uint32_t k) {
      const auto [from, in_range] =
          shuffle_source(Shuffle(i.variant), k, uint32_t(b[k]), uint32_t(c[k]));
      // What a lane has that does not execute it is undefined.
      const bool there = members >> from & 1;
      w.value(i.d())[k] = there ? a[from] : 0;
      defined |= uint32_t(there && (known >> from & 1)) << k;
      predicate |= uint32_t(in_range) << k;
    });
  });
  w.define(i.d(), lanes, defined);
  if (i.predicate_destinations[0] == kNone) return;
  w.set_predicate(i.predicate_destinations[0], lanes, predicate);
  w.define_predicate(i.predicate_destinations[0], lanes, ~0u);
}

enum class Vote : uint8_t { All, Any, Uniform, Ballot };

void vote_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  w.machine->require_predicate(w, i.predicate_sources[0], lanes, "a vote");
  const uint32_t votes = w.predicate(i);
  uint32_t out = 0;
  for_each_mask(w, i, lanes, [&](uint32_t members) {
    const uint32_t yes = votes & members;
    const bool holds = i.variant == uint8_t(Vote::All)   ? yes == members
                       : i.variant == uint8_t(Vote::Any) ? yes != 0
                                                         : yes == 0 || yes == members;
    out |= holds ? members : 0;
    if (i.variant == uint8_t(Vote::Ballot))
      for_each_set(members, [&](uint32_t k) { w.value(i.d())[k] = yes; });
  });
  if (i.variant == uint8_t(Vote::Ballot)) {
    w.define(i.d(), lanes, ~0u);
  } else {
    w.set_predicate(i.predicate_destinations[0], lanes, out);
    w.define_predicate(i.predicate_destinations[0], lanes, ~0u);
  }
}

template <bool all>
void match_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const Lanes a = w.value(i.s(0));
  uint32_t predicate = 0;
  for_each_mask(w, i, lanes, [&](uint32_t members) {
    for_each_set(members, [&](uint32_t k) {
      uint32_t same = 0;
      for_each_set(members, [&](uint32_t other) { same |= uint32_t(a[other] == a[k]) << other; });
      const bool whole = same == members;
      w.value(i.d())[k] = !all || whole ? same : 0;
      predicate |= uint32_t(whole) << k;
    });
  });
  if (i.predicate_destinations[0] != kNone)
    w.set_predicate(i.predicate_destinations[0], lanes, predicate);
}

template <class T, class F>
Execute redux_row_of(F) {
  return [](Warp& w, const Instruction& i, uint32_t lanes) {
    const Lanes a = w.value(i.s(0));
    for_each_mask(w, i, lanes, [&](uint32_t members) {
      T sum = from_bits<T>(a[uint32_t(std::countr_zero(members))]);
      for_each_set(members & (members - 1),
                   [&](uint32_t k) { sum = F{}(sum, from_bits<T>(a[k])); });
      for_each_set(members, [&](uint32_t k) { w.value(i.d())[k] = to_bits<T>(sum); });
    });
  };
}

template <class T>
Execute redux_row(const Form& f) {
  if (f.has("add")) return redux_row_of<T>([](T a, T b) { return T(uint32_t(a) + uint32_t(b)); });
  if (f.has("min")) return redux_row_of<T>([](T a, T b) { return std::min(a, b); });
  if (f.has("max")) return redux_row_of<T>([](T a, T b) { return std::max(a, b); });
  if (f.has("and")) return redux_row_of<T>([](T a, T b) { return T(a & b); });
  if (f.has("or")) return redux_row_of<T>([](T a, T b) { return T(a | b); });
  return redux_row_of<T>([](T a, T b) { return T(a ^ b); });
}

// It orders the memory of the lanes that take part, too (9.7.12.2).
void warp_barrier_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  for_each_mask(w, i, lanes, [&](uint32_t members) {
    if (w.block->shared_races) w.block->shared_races->pass_warp_barrier(w.number, members);
    if (w.block->global_races) w.block->global_races->pass_warp_barrier(w.number, members);
  });
}

}  // namespace

void make_shuffle(const Form& f, Instruction& i) {
  i.own_definedness = true;
  i.variant = uint8_t(f.has("up")     ? Shuffle::Up
                      : f.has("down") ? Shuffle::Down
                      : f.has("bfly") ? Shuffle::Butterfly
                                      : Shuffle::Index);
  i.execute = shuffle_rows;
}

void make_vote(const Form& f, Instruction& i) {
  i.own_definedness = true;
  i.variant = uint8_t(f.has("all")   ? Vote::All
                      : f.has("any") ? Vote::Any
                      : f.has("uni") ? Vote::Uniform
                                     : Vote::Ballot);
  i.execute = vote_rows;
}

void make_match(const Form& f, Instruction& i) {
  i.execute = f.has("all") ? match_rows<true> : match_rows<false>;
}

void make_redux(const Form& f, Instruction& i) {
  i.execute = f.type() == Type::S32 ? redux_row<int32_t>(f) : redux_row<uint32_t>(f);
}

void make_active_mask(const Form&, Instruction& i) {
  i.execute = [](Warp& w, const Instruction& own, uint32_t lanes) {
    for_each_set(lanes, [&](uint32_t k) { w.value(own.d())[k] = lanes; });
  };
}

void make_warp_barrier(const Form&, Instruction& i) { i.execute = warp_barrier_rows; }

}  // namespace tuff::emu::ptx
