#include "emu/profile/profiler.h"

#include "base/arith.h"

namespace tuff::emu::profile {
namespace {

// COMPUTE_PGM_RSRC1: GRANULATED_WORKITEM_VGPR_COUNT in eights for waves of 32, WGP_MODE (LLVM,
// "User Guide for AMDGPU Backend").
uint32_t vgprs_of(const rdna::Launch& launch) { return ((launch.rsrc1 & 63) + 1) * 8; }
bool is_wgp_mode(const rdna::Launch& launch) { return launch.rsrc1 >> 29 & 1; }

Grid grid_of(const rdna::Launch& launch) {
  const auto [x, y, z] = launch.group_size;
  const auto [a, b, c] = launch.groups;
  return {{vgprs_of(launch), launch.lds_bytes, ceil_div(x * y * z, 32u), is_wgp_mode(launch)},
          uint64_t(a) * b * c};
}

emu_api::KernelProfile shape_of(const Chip& chip, const rdna::Launch& launch, const Grid& grid) {
  emu_api::KernelProfile out;
  out.kernel = launch.kernel;
  out.chip = chip.name;
  out.workgroups = grid.groups;
  out.vgprs = grid.residency.vgprs;
  out.lds_bytes = launch.lds_bytes;
  out.scratch_bytes = launch.scratch_bytes;
  out.waves_per_simd = uint32_t(grid.residency.waves_per_simd(chip));
  return out;
}

void put_counts(emu_api::KernelProfile& out, const rdna::DispatchCounts& counts) {
  out.waves = counts.waves;
  for (size_t k = 0; k < counts.classes.size(); ++k) {
    out.classes.push_back({name(rdna::StepClass(k)), counts.classes[k].instructions,
                           double(counts.classes[k].issue_cycles)});
  }
  out.mad_instructions = counts.mad_instructions;
  out.bytes_loaded = counts.loaded.bytes;
  out.bytes_stored = counts.stored.bytes;
  out.lines_loaded = counts.loaded.lines;
  out.least_lines_loaded = counts.loaded.least_lines;
  out.lines_stored = counts.stored.lines;
  out.least_lines_stored = counts.stored.least_lines;
  out.lines64 = counts.loaded.lines64 + counts.stored.lines64;
  out.least_lines64 = counts.loaded.least_lines64 + counts.stored.least_lines64;
  out.lds_cycles = counts.lds_cycles;
  out.lds_conflict_cycles = counts.conflict_cycles;
  out.least_dram_bytes = counts.distinct_bytes;
  for (const uint64_t flops : counts.flops) out.flops += double(flops);
}

void put_caches(emu_api::KernelProfile& out, const CacheCounts& counts) {
  out.l0_hits = counts.l0_hits;
  out.l0_misses = counts.l0_misses;
  out.l1_hits = counts.l1_hits;
  out.l1_misses = counts.l1_misses;
  out.l2_hits = counts.l2_hits;
  out.l2_misses = counts.l2_misses;
  out.mall_hits = counts.mall_hits;
  out.mall_misses = counts.mall_misses;
  out.dram_bytes_read = counts.dram_lines_read * rdna::kLineBytes;
  out.dram_bytes_written = counts.dram_lines_written * rdna::kLineBytes;
}

void put_times(emu_api::KernelProfile& out, const TimeParts& t) {
  out.issue_us = t.issue;
  out.lds_us = t.lds;
  out.l0_us = t.l0;
  out.l2_us = t.l2;
  out.mall_us = t.mall;
  out.dram_us = t.dram;
  out.latency_us = t.latency;
  out.launch_us = t.launch;
  out.time_us = t.total();
  out.limit = t.limit();
}

}  // namespace

Recording::Recording(const Chip& chip, SharedCaches& shared, const rdna::Launch& launch)
    : chip_(chip),
      grid_(grid_of(launch)),
      caches_(chip, shared, grid_.residency.wgp_mode),
      counters_(chip.latencies(), caches_) {
  shape_ = shape_of(chip, launch, grid_);
}

emu_api::KernelProfile Recording::profile(bool instructions) const {
  emu_api::KernelProfile out = shape_;
  const rdna::DispatchCounts counts = counters_.counts();
  put_counts(out, counts);
  put_caches(out, caches_.counts());
  put_times(out, time_of(chip_, grid_, counts, caches_.counts()));
  out.roofline_us = roofline_us(chip_, counts, caches_.counts());
  if (!instructions) return out;
  for (const auto& [address, row] : counters_.by_address()) {
    out.instructions.push_back({address, row.text, row.executed, row.lanes, row.memory.bytes,
                                row.memory.lines, row.memory.least_lines, row.lds_cycles,
                                row.conflict_cycles});
  }
  return out;
}

Profiler::Profiler(emu_api::ProfileOptions options)
    : options_(std::move(options)), chip_(chip(options_.chip)), shared_(chip_) {}

std::unique_ptr<Recording> Profiler::record(const rdna::Launch& launch) {
  return std::make_unique<Recording>(chip_, shared_, launch);
}

void Profiler::report(const Recording& recording) const {
  if (options_.report) options_.report(recording.profile(options_.instructions));
}

}  // namespace tuff::emu::profile
