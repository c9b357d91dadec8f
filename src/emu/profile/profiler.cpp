#include "emu/profile/profiler.h"

#include "base/arith.h"
#include "emu/ptx/launch.h"

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

Grid grid_of(const ptx::Launch& launch, const Resources& resources, uint32_t shared_bytes) {
  return {{resources.registers, shared_bytes, ceil_div(launch.threads(), 32u), false},
          launch.blocks()};
}

emu_api::KernelProfile shape_of(const Chip& chip, const std::string& kernel, const Grid& grid) {
  emu_api::KernelProfile out;
  out.kernel = kernel;
  out.chip = chip.name;
  out.workgroups = grid.groups;
  out.vgprs = grid.residency.vgprs;
  out.lds_bytes = grid.residency.lds_bytes;
  out.waves_per_simd = uint32_t(grid.residency.waves_per_simd(chip));
  return out;
}

emu_api::KernelProfile rdna_shape(const Chip& chip, const rdna::Launch& launch) {
  emu_api::KernelProfile out = shape_of(chip, launch.kernel, grid_of(launch));
  out.scratch_bytes = launch.scratch_bytes;
  return out;
}

uint32_t shared_bytes(const ptx::Launch& launch) {
  return launch.module->shared_layout(*launch.kernel).dynamic_offset + launch.dynamic_shared_bytes;
}

emu_api::KernelProfile ptx_shape(const Chip& chip, const ptx::Launch& launch,
                                 const Resources& resources) {
  const Grid grid = grid_of(launch, resources, shared_bytes(launch));
  emu_api::KernelProfile out = shape_of(chip, launch.kernel->name, grid);
  out.scratch_bytes = resources.spill_bytes;
  out.registers_estimated = resources.estimated;
  return out;
}

void put_counts(emu_api::KernelProfile& out, const DispatchCounts& counts, Vendor vendor) {
  out.waves = counts.waves;
  for (size_t k = 0; k < counts.classes.size(); ++k) {
    if (!has_class(vendor, StepClass(k))) continue;
    out.classes.push_back({name(StepClass(k)), counts.classes[k].instructions,
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
  out.sectors = counts.loaded.sectors + counts.stored.sectors;
  out.least_sectors = counts.loaded.least_sectors + counts.stored.least_sectors;
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
  out.dram_bytes_read = counts.dram_bytes_read;
  out.dram_bytes_written = counts.dram_bytes_written;
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

Recording::Recording(const Chip& chip, SharedCaches& shared, emu_api::KernelProfile shape,
                     const Grid& grid)
    : chip_(chip),
      shape_(std::move(shape)),
      grid_(grid),
      caches_(chip, shared, grid.residency) {}

RdnaRecording::RdnaRecording(const Chip& chip, SharedCaches& shared, const rdna::Launch& launch)
    : Recording(chip, shared, rdna_shape(chip, launch), grid_of(launch)),
      counters_(chip.latencies(), caches()) {}

PtxRecording::PtxRecording(const Chip& chip, SharedCaches& shared, const ptx::Launch& launch,
                           const Resources& resources)
    : Recording(chip, shared, ptx_shape(chip, launch, resources),
                grid_of(launch, resources, shared_bytes(launch))),
      counters_(chip.latencies(), caches(), *launch.module, chip.core.target) {}

emu_api::KernelProfile Recording::profile(bool instructions) const {
  emu_api::KernelProfile out = shape_;
  const DispatchCounts counts = launch_counts().counts();
  put_counts(out, counts, chip_.core.vendor);
  put_caches(out, caches_.counts());
  put_times(out, time_of(chip_, grid_, counts, caches_.counts()));
  out.roofline_us = roofline_us(chip_, counts, caches_.counts());
  if (!instructions) return out;
  for (const auto& [address, row] : launch_counts().by_address()) {
    out.instructions.push_back({address, row.text, row.executed, row.lanes, row.memory.bytes,
                                row.memory.lines, row.memory.least_lines, row.lds_cycles,
                                row.conflict_cycles});
  }
  return out;
}

Profiler::Profiler(emu_api::ProfileOptions options, Vendor vendor)
    : options_(std::move(options)), chip_(chip(options_.chip, vendor)), shared_(chip_) {}

std::unique_ptr<RdnaRecording> Profiler::record(const rdna::Launch& launch) {
  return std::make_unique<RdnaRecording>(chip_, shared_, launch);
}

std::unique_ptr<PtxRecording> Profiler::record(const ptx::Launch& launch) {
  const Resources resources =
      resources_of(*launch.module, *launch.kernel, chip_.core.target);
  return std::make_unique<PtxRecording>(chip_, shared_, launch, resources);
}

ptx::Outcome Profiler::execute(const emu_api::PtxLaunchRequest& request, RangeMemory& memory) {
  const ptx::Launch launch = ptx::prepare(request, memory);
  const auto recording = record(launch);
  ptx::Outcome outcome = ptx::run(launch, memory, &recording->counters());
  report(*recording);
  return outcome;
}

void Profiler::report(const Recording& recording) const {
  if (options_.report) options_.report(recording.profile(options_.instructions));
}

}  // namespace tuff::emu::profile
