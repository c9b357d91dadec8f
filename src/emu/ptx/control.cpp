#include "emu/ptx/control.h"

#include <algorithm>

#include <fmt/format.h>

#include "emu/ptx/counters.h"
#include "emu/ptx/known_bits.h"

namespace tuff::emu::ptx {
namespace {

// The group in the deepest call, and there the one farthest back, comes first.
bool comes_before(const Group& a, const Group& b) {
  return a.frame->depth != b.frame->depth ? a.frame->depth > b.frame->depth : a.pc < b.pc;
}

bool may_meet(const Group& a, const Group& b) {
  return a.frame == b.frame && a.pc == b.pc && a.state != Group::State::AtBarrier &&
         b.state != Group::State::AtBarrier;
}

}  // namespace

void Control::start(Warp& w) {
  w.frames.clear();
  w.groups = {{w.present, 0, new_frame(w, *machine_.launch().kernel, nullptr, w.present)}};
}

bool Control::can_go_on(const Warp& w) {
  return std::ranges::any_of(w.groups,
                             [](const Group& g) { return g.state == Group::State::Ready; });
}

size_t Control::choose(const Warp& w, bool at_random) {
  size_t best = kNoGroup, seen = 0;
  for (size_t k = 0; k < w.groups.size(); ++k) {
    const Group& g = w.groups[k];
    if (g.state != Group::State::Ready) continue;
    ++seen;
    const bool better = best == kNoGroup ||
                        (at_random ? random_.below(seen) == 0 : comes_before(g, w.groups[best]));
    if (better) best = k;
  }
  return best;
}

// After a step: the group that executed has met another, or another is to come first.
size_t Control::next_group(Warp& w, bool stays) {
  if (current_ != kNoGroup) {
    for (size_t k = 0; k < w.groups.size(); ++k) {
      if (k == current_ || !may_meet(w.groups[k], w.groups[current_])) continue;
      w.groups[k].lanes |= w.groups[current_].lanes;
      w.groups[k].state = Group::State::Ready;
      w.groups[k].forced = false;
      w.groups.erase(w.groups.begin() + ptrdiff_t(current_));
      current_ = k > current_ ? k - 1 : k;
      k = size_t(-1);  // it may meet one more
    }
    if (stays && w.groups[current_].state == Group::State::Ready) return current_;
  }
  return choose(w, false);
}

void Control::run(Warp& w, uint32_t steps) {
  constexpr uint32_t kOneIn = 4;
  const bool stays = w.groups.size() > 1 && random_.below(kOneIn) == 0;
  current_ = choose(w, stays);
  for (; steps > 0 && current_ != kNoGroup && !machine_.stopped(); --steps) {
    const Group& group = w.groups[current_];
    w.frame = group.frame;
    const Instruction& i = group.frame->function->code[group.pc];
    machine_.current = &i;
    ++machine_.clock;
    ++executed_[i.spelling];
    step(w, i);
    if (w.groups.size() != 1 || current_ == kNoGroup || w.groups[0].state != Group::State::Ready)
      current_ = next_group(w, stays);
  }
}

void Control::step(Warp& w, const Instruction& i) {
  uint32_t lanes = w.groups[current_].lanes;
  if (i.guard != kNone) {
    machine_.require_predicate(w, i.guard, lanes, "the predicate of an instruction");
    const uint32_t p = w.frame->predicates[i.guard];
    lanes &= i.guard_negated ? ~p : p;
  }
  const bool executes =
      i.kind == Kind::Plain || i.kind == Kind::WarpSync || i.kind == Kind::WarpAligned;
  if (machine_.counters && (!executes || lanes == 0)) [[unlikely]]
    count_alone(w, i, lanes);
  if (i.kind == Kind::Branch) return branch(w, i, lanes);
  if (lanes == 0) {
    ++w.groups[current_].pc;
    return;
  }
  switch (i.kind) {
    case Kind::Plain: ++w.groups[current_].pc; return execute(w, i, lanes);
    case Kind::BranchIndexed: return branch_indexed(w, i, lanes);
    case Kind::Call: return call(w, i, lanes);
    case Kind::Return: return give_back(w, lanes);
    case Kind::Exit: return end(w, lanes);
    case Kind::Trap:
      machine_.report(w, FindingKind::Trap, uint32_t(std::countr_zero(lanes)), 0, "");
      return machine_.stop();
    case Kind::Barrier: return arrive(w, i, lanes);
    default: return meet(w, i, lanes);
  }
}

// What touches no memory and has no results: control flow, and what no lane executes.
void Control::count_alone(const Warp& w, const Instruction& i, uint32_t lanes) {
  machine_.counters->begin(w, i, lanes);
  machine_.counters->end(w, i);
}

void Control::execute(Warp& w, const Instruction& i, uint32_t lanes) {
  if (!machine_.counters) return run_rows(w, i, lanes);
  machine_.counters->begin(w, i, lanes);
  run_rows(w, i, lanes);
  machine_.counters->end(w, i);
}

// Results are worth what sources are, unless the instruction knows better.
void Control::run_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  if (i.own_definedness) return i.execute(w, i, lanes);
  uint32_t known = ~0u;
  for (uint32_t k = 0; k < i.sources; ++k) known &= w.frame->defined[i.s(k)];
  for (const uint32_t p : i.predicate_sources) {
    if (p != kNone) known &= w.frame->predicates_defined[p];
  }
  if (i.bit_sources && (lanes & ~known)) return execute_by_bits(w, i, lanes);
  if (i.by_halves && (lanes & ~known)) return execute_by_halves(w, i, lanes, known);
  i.execute(w, i, lanes);
  for (uint32_t k = 0; k < i.destinations; ++k)
    if (i.d(k) != kNone) w.define(i.d(k), lanes, known);
  for (const uint32_t p : i.predicate_destinations) {
    if (p != kNone) w.define_predicate(p, lanes, known);
  }
}

// ---- branches

// The lanes stay the current group; the group's others go on behind the instruction.
void Control::split_off_rest(Warp& w, uint32_t lanes) {
  Group& group = w.groups[current_];
  if (group.lanes == lanes) return;
  Group rest = group;
  rest.lanes &= ~lanes;
  ++rest.pc;
  group.lanes = lanes;
  w.groups.push_back(rest);
}

void Control::remove_if_empty(Warp& w) {
  if (w.groups[current_].lanes) return;
  w.groups.erase(w.groups.begin() + ptrdiff_t(current_));
  current_ = kNoGroup;
}

void Control::branch(Warp& w, const Instruction& i, uint32_t lanes) {
  if (lanes == 0) {
    ++w.groups[current_].pc;
    return;
  }
  split_off_rest(w, lanes);
  w.groups[current_].pc = i.target;
}

void Control::branch_indexed(Warp& w, const Instruction& i, uint32_t lanes) {
  const auto& table = w.frame->function->branch_tables[i.target];
  machine_.require(w, i.s(0), lanes, "the index of a branch");
  const Lanes& index = w.value(i.s(0));
  split_off_rest(w, lanes);
  for (uint32_t left = lanes; left;) {
    const auto first = uint32_t(std::countr_zero(left));
    const auto at = uint32_t(index[first]);
    uint32_t same = 0;
    for_each_set(left, [&](uint32_t k) { same |= uint32_t(uint32_t(index[k]) == at) << k; });
    left &= ~same;
    if (at >= table.size()) {
      machine_.report(w, FindingKind::Undefined, first, 0,
                      fmt::format("index {} of {} branch targets", at, table.size()));
      return machine_.stop();
    }
    if (left) {
      Group one = w.groups[current_];
      one.lanes = same;
      one.pc = table[at];
      w.groups[current_].lanes = left;
      w.groups.push_back(one);
    } else {
      w.groups[current_].pc = table[at];
    }
  }
}

// ---- instructions of the whole warp

// Those that have not ended, of the masks that the lanes name.
uint32_t Control::named_lanes(const Warp& w, const Instruction& i, uint32_t lanes) const {
  if (i.kind == Kind::WarpAligned) return w.live();
  const Lanes& masks = w.value(i.s(i.sources - 1u));
  uint32_t named = 0;
  for_each_set(lanes, [&](uint32_t k) { named |= uint32_t(masks[k]); });
  return named & w.live();
}

void Control::check_named(Warp& w, const Instruction& i, uint32_t lanes, uint32_t missing) {
  const auto first = uint32_t(std::countr_zero(lanes));
  if (i.kind == Kind::WarpAligned) {
    missing = ~lanes;
  } else {
    const Lanes& masks = w.value(i.s(i.sources - 1u));
    for_each_set(lanes, [&](uint32_t k) {
      if (!(masks[k] >> k & 1))
        machine_.report(w, FindingKind::SyncMask, k, 0,
                        fmt::format("mask {:#010x} does not name lane {}, which executes it",
                                    uint32_t(masks[k]), k));
    });
  }
  if (missing)
    machine_.report(w, FindingKind::SyncMask, first, 0,
                    fmt::format("lanes {:#010x} are named and do not come", missing));
}

void Control::meet(Warp& w, const Instruction& i, uint32_t lanes) {
  Group& group = w.groups[current_];
  if (i.kind == Kind::WarpSync)
    machine_.require(w, i.s(i.sources - 1u), lanes, "the mask of lanes");
  const uint32_t missing = named_lanes(w, i, lanes) & ~lanes;
  if (missing && !group.forced) {
    // Those that have not come to it yet may come.
    group.state = Group::State::AtWarpSync;
    return;
  }
  check_named(w, i, lanes, missing);
  group.forced = false;
  ++group.pc;
  execute(w, i, lanes);
}

bool Control::force(Warp& w) {
  for (Group& group : w.groups) {
    if (group.state != Group::State::AtWarpSync) continue;
    group.state = Group::State::Ready;
    group.forced = true;
    return true;
  }
  return false;
}

std::string Control::places(const Warp& w) const {
  std::string text;
  for (const Group& g : w.groups) {
    const Instruction& i =
        g.at && g.state == Group::State::AtBarrier ? *g.at : g.frame->function->code[g.pc];
    text += fmt::format("{}block {} warp {} line {} `{}` ({} lanes)", text.empty() ? "" : ", ",
                        w.block->number, w.number, i.line,
                        machine_.launch().module->spellings[i.spelling], std::popcount(g.lanes));
  }
  return text;
}

}  // namespace tuff::emu::ptx
