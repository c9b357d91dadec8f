#include "emu/rdna/execute.h"

#include <bit>
#include <optional>
#include <span>

#include "base/check.h"

namespace tuff::emu::rdna {
namespace {

using Ranges = std::span<const RegisterRange>;

// The first register of a range that a load is on its way to in one of these lanes: what returns
// touches the lanes that asked alone, so the others may be written meanwhile.
std::optional<uint32_t> pending(const Wave& w, const RegisterRange& range, uint32_t lanes) {
  const auto late = [&](const auto& loads, Counter counter, uint32_t at) {
    return loads[at] > w.completed[size_t(counter)];
  };
  for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
    if (!range.vector) {
      if (at < 128 && late(w.s_load, Counter::Scalar, at)) return at;
    } else if ((w.v_load_lanes[at & 255] & lanes) &&
               (late(w.v_vector_load, Counter::Vector, at & 255) ||
                late(w.v_lds_load, Counter::Lds, at & 255))) {
      return at;
    }
  }
  return std::nullopt;
}

void check_ready(Machine& machine, Wave& w, Ranges ranges, uint32_t lanes, const char* problem) {
  for (const RegisterRange& range : ranges) {
    if (const auto at = pending(w, range, lanes)) {
      machine.report(w, FindingKind::MissingWait, 0, 0,
                     fmt::format("{}{} {}", range.vector ? "v" : "s", *at, problem));
    }
  }
}

uint32_t written_lanes(const Wave& w, bool vector, uint32_t at) {
  if (vector) return w.v_written[at & 255];
  return at < 128 && !w.s_written[at] ? 0 : ~0u;
}

// Lanes of which all words are defined.
uint32_t defined_lanes(const Wave& w, Ranges ranges) {
  uint32_t lanes = ~0u;
  for (const RegisterRange& range : ranges) {
    for (uint32_t k = 0; k < range.count; ++k) {
      lanes &= written_lanes(w, range.vector, range.first + k);
    }
  }
  return lanes;
}

uint32_t defined_lanes_without(const Wave& w, Ranges ranges, const RegisterRange& left_out) {
  uint32_t lanes = ~0u;
  for (const RegisterRange& range : ranges) {
    for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
      const bool skipped = at == left_out.first && range.vector == left_out.vector;
      if (!skipped) lanes &= written_lanes(w, range.vector, at);
    }
  }
  return lanes;
}

// Lanes in which what an instruction reads is defined, before it writes. The halves of a dual issue
// are apart, and so is the lowest word of a result that does not depend on all.
struct Definedness {
  uint32_t all = ~0u, lowest = ~0u, second = ~0u;
};

Definedness definedness(const Wave& w, const Step& step) {
  if (step.reads.empty()) return {};
  if (step.execute_second) {
    const Ranges reads = step.reads;
    const uint32_t first = defined_lanes(w, reads.first(step.first_reads));
    return {first, first, defined_lanes(w, reads.subspan(step.first_reads))};
  }
  const uint32_t all = defined_lanes(w, step.reads);
  if (!step.upper_word.count || all == ~0u) return {all, all, all};
  return {all, defined_lanes_without(w, step.reads, step.upper_word), all};
}

void define(Wave& w, Ranges writes, uint32_t lowest, uint32_t others) {
  const uint32_t lanes = w.exec();
  for (const RegisterRange& range : writes) {
    for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
      const uint32_t defined = range.vector && at == range.first ? lowest : others;
      uint32_t& written = w.v_written[at & 255];
      if (range.vector)
        written = (written & ~lanes) | (defined & lanes);
      else if (at < 106)
        w.s_written[at] = defined != 0;
    }
  }
}

void follow_definedness(Wave& w, const Step& step, const Definedness& d) {
  if (is_vector_memory(step.instruction.encoding())) return;  // loads say so themselves
  if (step.instruction.op() == Op::V_WRITELANE_B32) return;
  const Ranges writes = step.writes;
  if (!step.execute_second) return define(w, writes, d.lowest, d.all);
  define(w, writes.first(step.first_writes), d.all, d.all);
  define(w, writes.subspan(step.first_writes), d.second, d.second);
}

// Both halves read before either writes.
void execute_dual(Wave& w, const Step& step) {
  const auto& [first, second] = *step.halves;
  const uint16_t target = first.find('D')->index;
  const Words before = w.v[target];
  step.execute(w, first);
  const Words after = w.v[target];
  w.v[target] = before;
  step.execute_second(w, second);
  w.v[target] = after;
}

// The lanes that an instruction reads or writes may be others than the active ones.
bool crosses_lanes(const Step& step) {
  if (!step.instruction.row) return true;
  switch (step.instruction.op()) {
    case Op::V_READLANE_B32:
    case Op::V_WRITELANE_B32:
    case Op::V_PERMLANE16_B32:
    case Op::V_PERMLANEX16_B32:
    case Op::V_PERMLANE64_B32: return true;
    default: return step.instruction.dpp.kind != DppKind::None;
  }
}

}  // namespace

void execute(Machine& machine, Wave& w, const Step& step) {
  machine.current = &step;
  if (!step.execute) {
    machine.report(w, FindingKind::UnknownInstruction, 0, 0, "not known to the interpreter");
    machine.stop();
    return;
  }
  if (w.outstanding) {
    const uint32_t lanes = crosses_lanes(step) ? ~0u : w.exec();
    check_ready(machine, w, step.reads, lanes, "is read while its load is on its way");
    const Encoding e = step.instruction.encoding();
    if (e != Encoding::SMEM && !is_vector_memory(e))  // loads are in order among themselves
      check_ready(machine, w, step.writes, lanes, "is written while a load to it is on its way");
  }
  const Definedness defined = definedness(w, step);
  if (step.strict && (~defined.all & w.exec())) {
    machine.report(w, FindingKind::UninitializedRegister,
                   uint32_t(std::countr_zero(~defined.all & w.exec())), 0,
                   "a value that nobody wrote is used");
  }
  if ((w.mode & kFloatBits) != kDefaultMode && !is_emulated(step.rounded_by, w.mode)) [[unlikely]] {
    machine.report(w, FindingKind::ModeNotEmulated, 0, 0,
                   fmt::format("what it does in MODE {:#x} is not known", w.mode));
    machine.stop();
    return;
  }
  std::optional<HostRounding> rounding;
  if (w.mode & kRoundingBits) [[unlikely]]
    rounding.emplace(step.rounded_by, w.mode);
  if (step.execute_second)
    execute_dual(w, step);
  else
    step.execute(w, step.instruction);
  follow_definedness(w, step, defined);
}

}  // namespace tuff::emu::rdna
