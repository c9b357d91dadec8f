#include "emu/profile/launch_counts.h"

#include <algorithm>
#include <bit>

#include "base/arith.h"

namespace tuff::emu::profile {
namespace {

constexpr uint32_t kBanks = 32, kBankBytes = 4;
// Scratch lies in memory dword by dword, the lanes side by side (LLVM, "User Guide for AMDGPU
// Backend", Private; NVIDIA, "CUDA C++ Programming Guide", 8.3.2, Local Memory). Where is nobody's
// business; here above all addresses of a process.
constexpr uint64_t kPrivateMemory = 1ull << 60;

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

struct LdsAsk {
  const Addresses& at;
  uint32_t lanes, bytes;
  bool atomic;
  void add_to(BankUse& use, uint32_t first, uint32_t count) const {
    for (uint32_t lane = first; lane < first + count; ++lane) {
      if (lanes >> lane & 1) use.add(at[lane], bytes, atomic);
    }
  }
};

void finish_pass(LdsPasses& sum, const BankUse& pass) {
  sum.cycles += pass.cycles();
  sum.conflicts += pass.cycles() > 1 ? pass.cycles() - 1 : 0;
}

// What 32 banks give in a cycle: 32 lanes of a dword, 16 of two, 8 of four. Where parts are joined,
// those go together that take no longer so than the longer of them.
LdsPasses lds_passes(const LdsAsk& ask, bool joins) {
  const uint32_t together = ask.bytes <= 4 ? 32 : ask.bytes <= 8 ? 16 : 8;
  LdsPasses out;
  for (uint32_t first = 0; first < kMostLanes;) {
    BankUse pass;
    ask.add_to(pass, first, together);
    first += together;
    for (; joins && first < kMostLanes; first += together) {
      BankUse alone, joined = pass;
      ask.add_to(alone, first, together);
      ask.add_to(joined, first, together);
      if (joined.cycles() > std::max(pass.cycles(), alone.cycles())) break;
      pass = joined;
    }
    finish_pass(out, pass);
  }
  return out;
}

uint8_t sectors_between(uint64_t first, uint64_t last) {
  return uint8_t((2u << last) - (1u << first));
}

}  // namespace

InstructionCounts& LaunchCounts::row_at(uint64_t address) {
  InstructionCounts*& found = found_[address];
  if (!found) found = &rows_[address];
  return *found;
}

void LaunchCounts::begin_instruction(InstructionCounts& row) {
  current_ = &row;
  ++row.executed;
  ranges_.clear();
  is_private_ = false;
  lds_cycles_ = lds_conflicts_ = 0;
}

// ---- what an instruction touches

// Ranges come by their begin.
void LaunchCounts::add_lines(const Range& r) {
  const uint64_t last = r.begin + r.bytes - 1;
  for (uint64_t line = r.begin / kLineBytes; line <= last / kLineBytes; ++line) {
    const uint64_t at = line * kLineBytes;
    const uint64_t from = std::max(r.begin, at) - at, to = std::min(last - at, kLineBytes - 1ul);
    const uint8_t sectors = sectors_between(from / kSectorBytes, to / kSectorBytes);
    // The one before may reach into a line behind this one's first.
    const auto known = std::find_if(lines_.rbegin(), lines_.rend(),
                                    [&](const Line& own) { return own.line <= line; });
    if (known != lines_.rend() && known->line == line)
      known->sectors |= sectors;
    else
      lines_.push_back({line, sectors});
  }
}

// Lines go to the caches in the order of the run; a load waits for the farthest of its own.
MemoryLevel LaunchCounts::touch_lines(uint32_t workgroup, uint32_t wave, MemoryCounts& counts) {
  std::ranges::sort(ranges_, {}, &Range::begin);
  uint64_t distinct = 0, end = 0;
  lines_.clear();
  for (const Range& r : ranges_) {
    counts.bytes += r.bytes;
    const uint64_t behind = r.begin + r.bytes, from = std::max(r.begin, end);
    if (behind > from) distinct += behind - from;
    end = std::max(end, behind);
    add_lines(r);
    if (!is_private_) remember_bytes(r);
  }
  counts.lines += lines_.size();
  for (const Line& line : lines_) {
    counts.lines64 += ((line.sectors & 3) != 0) + ((line.sectors & 12) != 0);
    counts.sectors += uint64_t(std::popcount(line.sectors));
  }
  counts.least_lines += ceil_div(distinct, uint64_t(kLineBytes));
  counts.least_lines64 += ceil_div(distinct, uint64_t(64));
  counts.least_sectors += ceil_div(distinct, uint64_t(kSectorBytes));
  MemoryLevel farthest = MemoryLevel::L0;
  for (const Line& line : lines_) {
    farthest = std::max(farthest, sink_.access({line.line, kind_, device_scope_, workgroup, wave,
                                                line.sectors}));
  }
  return farthest;
}

void LaunchCounts::remember_bytes(const Range& r) {
  const bool reads = kind_ != AccessKind::Store, writes = kind_ == AccessKind::Store ||
                                                          kind_ == AccessKind::Atomic;
  if (reads) distinct_bytes_ += read_.add(r.begin, r.bytes, &written_);
  if (writes) distinct_bytes_ += written_.add(r.begin, r.bytes);
}

uint64_t LaunchCounts::end_instruction(uint32_t workgroup, uint32_t wave) {
  // Permutations go through the same port without touching a bank.
  const StepClass kind = current_->cost.kind;
  if ((kind == StepClass::Lds || kind == StepClass::Shuffle) && lds_cycles_ == 0) lds_cycles_ = 1;
  current_->lds_cycles += lds_cycles_;
  current_->conflict_cycles += lds_conflicts_;
  const uint64_t cycles = lds_cycles_ ? latencies_.lds + lds_cycles_ - 1 : 0;
  if (ranges_.empty()) return cycles;
  const MemoryLevel level = touch_lines(workgroup, wave, current_->memory);
  const auto& latency =
      kind_ == AccessKind::ScalarLoad ? latencies_.scalar : latencies_.vector;
  return std::max(cycles, latency[size_t(level)] + lines_.size() - 1);
}

void LaunchCounts::end_wave(uint64_t cycles) {
  alone_cycles_ += cycles;
  longest_cycles_ = std::max(longest_cycles_, cycles);
}

void LaunchCounts::range(const Access& access) {
  kind_ = access.kind;
  device_scope_ = access.device_scope;
  ranges_.push_back({access.address, access.bytes});
}

void LaunchCounts::global(const Addresses& at, uint32_t lanes, const Access& shape) {
  for_each_lane(lanes, [&](uint32_t lane) {
    Access access = shape;
    access.address = at[lane];
    range(access);
  });
}

void LaunchCounts::private_memory(uint64_t wave, uint64_t bytes_per_lane, const Addresses& at,
                                  uint32_t lanes, const Access& shape) {
  is_private_ = true;
  const uint64_t base = kPrivateMemory + wave * align_up(bytes_per_lane, uint64_t(4)) * kMostLanes;
  for_each_lane(lanes, [&](uint32_t lane) {
    for (uint64_t done = 0; done < shape.bytes;) {
      const uint64_t own = at[lane] + done, in_word = own % 4;
      const uint64_t bytes = std::min<uint64_t>(shape.bytes - done, 4 - in_word);
      range({base + own / 4 * 4 * kMostLanes + lane * 4 + in_word, uint32_t(bytes), shape.kind});
      done += bytes;
    }
  });
}

void LaunchCounts::lds(const Addresses& at, uint32_t lanes, uint32_t bytes, bool atomic) {
  const LdsPasses passes = lds_passes({at, lanes, bytes, atomic}, joins_parts_);
  lds_cycles_ += passes.cycles;
  lds_conflicts_ += passes.conflicts;
}

// ---- sums

DispatchCounts LaunchCounts::counts() const {
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
    out.slots += row.executed * row.cost.slots;
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

}  // namespace tuff::emu::profile
