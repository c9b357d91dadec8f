#include "emu/rdna/counters.h"

#include <algorithm>
#include <bit>

#include "base/arith.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint32_t kBanks = 32, kBankBytes = 4;
// Scratch lies in memory dword by dword, the lanes side by side (LLVM, "User Guide for AMDGPU
// Backend", Private). Where is nobody's business; here above all addresses of a process.
constexpr uint64_t kScratchMemory = 1ull << 60;
// How many waves of a workgroup there may be, at most.
constexpr uint64_t kWavesOfGroup = 32;

struct LdsPasses {
  uint64_t cycles = 0, conflicts = 0;
};

// The lanes of one pass: as many dwords as there are banks. Lanes that read the same dword share
// it; those that change it come one by one.
class BankUse {
 public:
  void add(uint64_t address, uint32_t bytes, bool atomic) {
    const uint64_t last = (address + bytes - 1) / kBankBytes;
    for (uint64_t word = address / kBankBytes; word <= last; ++word) {
      const size_t bank = word % kBanks;
      const auto begin = words_[bank].begin(), end = begin + counts_[bank];
      if (!atomic && std::find(begin, end, word) != end) continue;
      if (counts_[bank] < words_[bank].size()) *end = word;
      most_ = std::max<uint64_t>(most_, ++counts_[bank]);
    }
  }
  uint64_t cycles() const { return most_; }

 private:
  std::array<std::array<uint64_t, 2 * kMostLanes>, kBanks> words_;
  std::array<uint32_t, kBanks> counts_{};
  uint64_t most_ = 0;
};

// What 32 banks give in a cycle: 32 lanes of a dword, 16 of two, 8 of four.
LdsPasses lds_passes(const Addresses& at, uint32_t lanes, uint32_t bytes, bool atomic) {
  const uint32_t together = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  LdsPasses out;
  for (uint32_t first = 0; first < kMostLanes; first += together) {
    BankUse use;
    for (uint32_t lane = first; lane < first + together; ++lane) {
      if (lanes >> lane & 1) use.add(at[lane], bytes, atomic);
    }
    out.cycles += use.cycles();
    out.conflicts += use.cycles() > 1 ? use.cycles() - 1 : 0;
  }
  return out;
}

}  // namespace

void MemoryCounts::add(const MemoryCounts& other) {
  bytes += other.bytes;
  lines += other.lines;
  least_lines += other.least_lines;
  lines64 += other.lines64;
  least_lines64 += other.least_lines64;
}

// ---- waves and steps

void Counters::start(const Wave& w) {
  ++waves_;
  auto& own = timelines_[&w];
  if (!own) own = std::make_unique<Timeline>();
  own->start();
}

InstructionCounts& Counters::row_of(const Step& step) {
  InstructionCounts*& found = found_[step.address];
  if (!found) {
    found = &rows_[step.address];
    found->text = text_of(step);
    found->cost = cost_of(step);
  }
  return *found;
}

void Counters::begin(const Wave& w, const Step& step) {
  current_ = &row_of(step);
  InstructionCounts& row = *current_;
  const StepCost& cost = row.cost;
  ++row.executed;
  const bool vector =
      is_valu(cost.kind) || is_vector_memory(cost.kind) || cost.kind == StepClass::Lds;
  const uint64_t lanes = uint64_t(std::popcount(w.exec()));
  if (vector) row.lanes += lanes;
  row.flops += cost.floats == FloatKind::Matrix ? cost.flops : cost.flops * lanes;
  ranges_.clear();
  is_private_ = false;
  lds_cycles_ = lds_conflicts_ = 0;
  timeline(w).issue(step, cost);
}

// Lines go to the caches in the order of the run; a load waits for the farthest of its own.
MemoryLevel Counters::touch_lines(const Wave& w, MemoryCounts& counts) {
  std::ranges::sort(ranges_, {}, &Range::begin);
  uint64_t distinct = 0, end = 0;
  lines_.clear();
  uint64_t half_lines = 0, last_half = ~0ull;
  for (const Range& r : ranges_) {
    counts.bytes += r.bytes;
    const uint64_t behind = r.begin + r.bytes, from = std::max(r.begin, end);
    if (behind > from) distinct += behind - from;
    end = std::max(end, behind);
    for (uint64_t line = r.begin / kLineBytes; line <= (behind - 1) / kLineBytes; ++line) {
      if (lines_.empty() || lines_.back() < line) lines_.push_back(line);
    }
    for (uint64_t half = r.begin / 64; half <= (behind - 1) / 64; ++half) {
      if (last_half != ~0ull && half <= last_half) continue;
      last_half = half;
      ++half_lines;
    }
    if (!is_private_) remember_bytes(r);
  }
  counts.lines += lines_.size();
  counts.least_lines += ceil_div(distinct, uint64_t(kLineBytes));
  counts.lines64 += half_lines;
  counts.least_lines64 += ceil_div(distinct, uint64_t(64));
  MemoryLevel farthest = MemoryLevel::L0;
  for (const uint64_t line : lines_) {
    const LineAccess access{line, kind_, device_scope_, w.group->number, w.number};
    farthest = std::max(farthest, sink_.access(access));
  }
  return farthest;
}

void Counters::remember_bytes(const Range& r) {
  const bool reads = kind_ != AccessKind::Store, writes = kind_ == AccessKind::Store ||
                                                          kind_ == AccessKind::Atomic;
  if (reads) distinct_bytes_ += read_.add(r.begin, r.bytes, &written_);
  if (writes) distinct_bytes_ += written_.add(r.begin, r.bytes);
}

uint64_t Counters::memory_cycles(const Wave& w) {
  uint64_t cycles = lds_cycles_ ? latencies_.lds + lds_cycles_ - 1 : 0;
  if (ranges_.empty()) return cycles;
  const MemoryLevel level = touch_lines(w, current_->memory);
  const auto& latency =
      kind_ == AccessKind::ScalarLoad ? latencies_.scalar : latencies_.vector;
  return std::max(cycles, latency[size_t(level)] + lines_.size() - 1);
}

void Counters::end(const Wave& w, const Step& step) {
  InstructionCounts& row = *current_;
  // Permutations go through the same port without touching a bank.
  if (row.cost.kind == StepClass::Lds && lds_cycles_ == 0) lds_cycles_ = 1;
  row.lds_cycles += lds_cycles_;
  row.conflict_cycles += lds_conflicts_;
  Timeline& t = timeline(w);
  t.settle(w, step, row.cost, memory_cycles(w));
  if (!w.ended) return;
  alone_cycles_ += t.end();
  longest_cycles_ = std::max(longest_cycles_, t.end());
}

void Counters::pass_barrier(std::span<const std::unique_ptr<Wave>> waves) {
  uint64_t last = 0;
  for (const auto& w : waves) {
    if (!w->ended) last = std::max(last, timeline(*w).now());
  }
  for (const auto& w : waves) timeline(*w).wait_until(last);
}

// ---- what an instruction touches

void Counters::range(const Access& access) {
  kind_ = access.kind;
  device_scope_ = access.device_scope;
  ranges_.push_back({access.address, access.bytes});
}

void Counters::global(const Addresses& at, uint32_t lanes, const Access& shape) {
  for_each_lane(lanes, [&](uint32_t lane) {
    Access access = shape;
    access.address = at[lane];
    range(access);
  });
}

void Counters::scratch(const Wave& w, const Addresses& at, uint32_t lanes, const Access& shape) {
  is_private_ = true;
  const uint64_t wave = w.group->number * kWavesOfGroup + w.number % kWavesOfGroup;
  const uint64_t base =
      kScratchMemory + wave * align_up(uint64_t(w.scratch_bytes), uint64_t(4)) * kMostLanes;
  for_each_lane(lanes, [&](uint32_t lane) {
    for (uint64_t done = 0; done < shape.bytes;) {
      const uint64_t own = at[lane] + done, in_word = own % 4;
      const uint64_t bytes = std::min<uint64_t>(shape.bytes - done, 4 - in_word);
      range({base + own / 4 * 4 * kMostLanes + lane * 4 + in_word, uint32_t(bytes), shape.kind});
      done += bytes;
    }
  });
}

void Counters::lds(const Addresses& at, uint32_t lanes, uint32_t bytes, bool atomic) {
  const LdsPasses passes = lds_passes(at, lanes, bytes, atomic);
  lds_cycles_ += passes.cycles;
  lds_conflicts_ += passes.conflicts;
}

// ---- sums

DispatchCounts Counters::counts() const {
  DispatchCounts out;
  out.waves = waves_;
  out.distinct_bytes = distinct_bytes_;
  out.alone_cycles = alone_cycles_;
  out.longest_cycles = longest_cycles_;
  for (const auto& [address, row] : rows_) {
    auto& sum = out.classes[size_t(row.cost.kind)];
    sum.instructions += row.executed;
    sum.issue_cycles += row.executed * row.cost.issue_cycles;
    out.instructions += row.executed;
    if (row.cost.is_mad) out.mad_instructions += row.executed;
    if (row.cost.kind == StepClass::VmemLoad) out.loaded.add(row.memory);
    if (row.cost.kind == StepClass::VmemStore || row.cost.kind == StepClass::Atomic)
      out.stored.add(row.memory);
    out.lds_cycles += row.lds_cycles;
    out.conflict_cycles += row.conflict_cycles;
    out.flops[size_t(row.cost.floats)] += row.flops;
  }
  return out;
}

}  // namespace tuff::emu::rdna
