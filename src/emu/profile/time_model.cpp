#include "emu/profile/time_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/arith.h"

namespace tuff::emu::profile {
namespace {

// From a packet to the first wave and from the last one to the next packet. An estimate.
constexpr double kDispatchUs = 2;
constexpr double kBytesPerUsOfGbs = 1000;

// What lies on the busiest part of the chip: workgroups go round its units.
struct Busiest {
  double waves_of_simd, waves_of_cu, rounds;
};

Busiest busiest(const Chip& chip, const Grid& grid) {
  const Residency& r = grid.residency;
  const uint64_t groups = ceil_div(grid.groups, uint64_t(r.units(chip)));
  const uint64_t waves = groups * r.waves_per_group;
  return {double(ceil_div(waves, uint64_t(r.simds_per_unit(chip)))),
          double(ceil_div(waves, uint64_t(r.cus_per_unit(chip)))),
          double(ceil_div(groups, uint64_t(r.groups_per_unit(chip))))};
}

// Cycles of the port that is used most, all waves together. Each SIMD issues an instruction of each
// kind per cycle, of different waves (AMD, "RDNA Architecture" whitepaper, 2019).
double amd_issue_cycles(const DispatchCounts& counts) {
  const auto cycles = [&](StepClass c) { return counts.classes[size_t(c)].issue_cycles; };
  const auto steps = [&](StepClass c) { return counts.classes[size_t(c)].instructions; };
  const uint64_t vector = cycles(StepClass::Valu) + cycles(StepClass::ValuF64) +
                          cycles(StepClass::Dual) + cycles(StepClass::Wmma) +
                          steps(StepClass::ValuTrans);
  const uint64_t scalar = cycles(StepClass::Salu) + cycles(StepClass::Smem);
  const uint64_t memory = steps(StepClass::VmemLoad) + steps(StepClass::VmemStore) +
                          steps(StepClass::Atomic);
  return double(std::max({vector, cycles(StepClass::ValuTrans), scalar, memory,
                          cycles(StepClass::Branch), steps(StepClass::Lds)}));
}

// A scheduler issues one instruction per cycle, to whichever pipeline (NVIDIA, "Nsight Compute",
// Kernel Profiling Guide, Hardware Model).
double nvidia_issue_cycles(const DispatchCounts& counts) {
  const auto cycles = [&](StepClass c) { return counts.classes[size_t(c)].issue_cycles; };
  return double(std::max({counts.slots, cycles(StepClass::Fma), cycles(StepClass::Alu),
                          cycles(StepClass::Half), cycles(StepClass::Fp64), cycles(StepClass::Xu),
                          cycles(StepClass::Tensor), cycles(StepClass::Branch)}));
}

double issue_cycles(const Chip& chip, const DispatchCounts& counts) {
  return chip.core.vendor == Vendor::Amd ? amd_issue_cycles(counts) : nvidia_issue_cycles(counts);
}

std::array<std::pair<const char*, double>, 8> parts_of(const TimeParts& t) {
  return {{{"dram", t.dram},
           {"mall", t.mall},
           {"l2", t.l2},
           {"l0", t.l0},
           {"issue", t.issue},
           {"lds", t.lds},
           {"latency", t.latency},
           {"launch", t.launch}}};
}

}  // namespace

double TimeParts::shared() const {
  return std::sqrt(issue * issue + lds * lds + l0 * l0 + l2 * l2);
}

double TimeParts::total() const { return launch + std::max({shared(), mall, dram, latency}); }

const char* TimeParts::limit() const {
  const auto parts = parts_of(*this);
  return std::ranges::max_element(parts, {}, &std::pair<const char*, double>::second)->first;
}

TimeParts time_of(const Chip& chip, const Grid& grid, const DispatchCounts& counts,
                  const CacheCounts& caches) {
  TimeParts t;
  // NVIDIA's GPCs start blocks.
  const uint64_t started = chip.core.vendor == Vendor::Amd ? counts.waves : grid.groups;
  t.launch = kDispatchUs + chip.us(double(started) / chip.engines);
  if (counts.waves == 0) return t;
  const Busiest most = busiest(chip, grid);
  const double waves = double(counts.waves);
  t.issue = chip.us(issue_cycles(chip, counts) / waves * most.waves_of_simd);
  t.lds = chip.us(double(counts.lds_cycles) / waves * most.waves_of_cu);
  const double fill = double(caches.l0_fill_bytes) / chip.core.l0_fill_bytes_per_clock;
  t.l0 = chip.us(std::max(double(caches.l0_lookups), fill) / waves * most.waves_of_cu);
  t.l2 = chip.us(double(caches.l2_bytes) / chip.l2_bytes_per_clock);
  if (chip.mall_kb) t.mall = double(caches.mall_bytes) / (chip.mall_gb_s * kBytesPerUsOfGbs);
  t.dram = double(caches.dram_bytes_read + caches.dram_bytes_written) /
           (chip.dram_gb_s * kBytesPerUsOfGbs);
  t.latency = chip.us(std::max(double(counts.alone_cycles) / waves * most.rounds,
                               double(counts.longest_cycles)));
  return t;
}

double roofline_us(const Chip& chip, const DispatchCounts& counts, const CacheCounts& caches) {
  double compute = 0;
  for (size_t k = 0; k < counts.flops.size(); ++k) {
    compute += double(counts.flops[k]) / chip.peak_flops_per_us(FloatKind(k));
  }
  const uint64_t moved = caches.dram_bytes_read + caches.dram_bytes_written;
  const double bytes = double(std::min(uint64_t(counts.distinct_bytes), moved));
  return std::max(compute, bytes / (chip.dram_gb_s * kBytesPerUsOfGbs));
}

}  // namespace tuff::emu::profile
