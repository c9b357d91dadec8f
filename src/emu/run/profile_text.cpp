#include "emu/run/profile_text.h"

#include <fmt/format.h>

#include <iterator>

#include "emu/profile_json.h"

namespace tuff::emu {
namespace {

using emu_api::KernelProfile;

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string hit_rate(const char* cache, uint64_t hits, uint64_t misses) {
  return fmt::format("{} {} of {} ({:.1f}%)", cache, hits, hits + misses,
                     percent(double(hits), double(hits + misses)));
}

void instruction_rows(std::string& out, const KernelProfile& p) {
  fmt::format_to(std::back_inserter(out),
                 "{:>14} {:>10} {:>10} {:>12} {:>10} {:>10} {:>9} {:>9}  {}\n", "address",
                 "executed", "lanes", "bytes", "lines", "least", "lds", "conflict", "instruction");
  for (const auto& i : p.instructions) {
    fmt::format_to(std::back_inserter(out),
                   "{:>#14x} {:>10} {:>10} {:>12} {:>10} {:>10} {:>9} {:>9}  {}\n", i.address,
                   i.executed, i.lanes, i.bytes, i.lines, i.least_lines, i.lds_cycles,
                   i.conflict_cycles, i.text);
  }
}

void class_rows(std::string& out, const KernelProfile& p) {
  for (const auto& c : p.classes) {
    if (c.instructions == 0) continue;
    fmt::format_to(std::back_inserter(out), "  {:<12}{:>12} instructions {:>14.0f} cycles\n",
                   c.name, c.instructions, c.issue_cycles);
  }
}

void memory_rows(std::string& out, const KernelProfile& p) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "loaded   {} bytes in {} lines of 128 (least {})\n", p.bytes_loaded,
                 p.lines_loaded, p.least_lines_loaded);
  fmt::format_to(to, "stored   {} bytes in {} lines of 128 (least {})\n", p.bytes_stored,
                 p.lines_stored, p.least_lines_stored);
  if (p.lds_cycles) {
    fmt::format_to(to, "LDS      {} cycles, {} of them conflicts\n", p.lds_cycles,
                   p.lds_conflict_cycles);
  }
  fmt::format_to(to, "hits     {}, {}, {}, {}\n", hit_rate("L0", p.l0_hits, p.l0_misses),
                 hit_rate("L1", p.l1_hits, p.l1_misses), hit_rate("L2", p.l2_hits, p.l2_misses),
                 hit_rate("infinity cache", p.mall_hits, p.mall_misses));
  fmt::format_to(to, "memory   {} bytes read, {} written; {} distinct\n", p.dram_bytes_read,
                 p.dram_bytes_written, p.least_dram_bytes);
}

}  // namespace

std::string profile_text(const KernelProfile& p) {
  std::string out;
  if (!p.instructions.empty()) instruction_rows(out, p);
  const auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "{} on {}: {} workgroups, {} waves of {}; {} VGPRs{}, {} bytes of LDS, {} of "
                 "scratch: {} waves per SIMD\n",
                 p.kernel, p.chip, p.workgroups, p.waves, p.wave_size, p.vgprs,
                 p.registers_estimated ? " (estimated: no ptxas)" : "", p.lds_bytes,
                 p.scratch_bytes, p.waves_per_simd);
  class_rows(out, p);
  fmt::format_to(to, "  {} multiply-adds, {:.0f} floating-point operations\n", p.mad_instructions,
                 p.flops);
  memory_rows(out, p);
  fmt::format_to(to,
                 "time     {:.2f} us, limited by {}; issue {:.2f}, lds {:.2f}, l0 {:.2f}, "
                 "l2 {:.2f}, mall {:.2f}, dram {:.2f}, latency {:.2f}, launch {:.2f}\n",
                 p.time_us, p.limit, p.issue_us, p.lds_us, p.l0_us, p.l2_us, p.mall_us, p.dram_us,
                 p.latency_us, p.launch_us);
  fmt::format_to(to, "roofline {:.2f} us ({:.1f}% of it reached)\n", p.roofline_us,
                 percent(p.roofline_us, p.time_us));
  return out;
}

Json profile_json(const KernelProfile& p) {
  Json classes = Json::object();
  for (const auto& c : p.classes) {
    classes[c.name] = {{"instructions", c.instructions}, {"issue_cycles", c.issue_cycles}};
  }
  const auto hits = [](uint64_t hit, uint64_t missed) {
    return Json{{"hits", hit}, {"misses", missed}};
  };
  return {
      {"kernel", p.kernel}, {"chip", p.chip}, {"waves", p.waves}, {"workgroups", p.workgroups},
      {"vgprs", p.vgprs}, {"lds_bytes", p.lds_bytes}, {"scratch_bytes", p.scratch_bytes},
      {"wave_size", p.wave_size}, {"waves_per_simd", p.waves_per_simd}, {"classes", classes},
      {"mad_instructions", p.mad_instructions},
      {"bytes", {{"loaded", p.bytes_loaded}, {"stored", p.bytes_stored}}},
      {"lines", {{"loaded", p.lines_loaded}, {"stored", p.lines_stored}}},
      {"least_lines", {{"loaded", p.least_lines_loaded}, {"stored", p.least_lines_stored}}},
      {"lines64", p.lines64}, {"least_lines64", p.least_lines64},
      {"sectors", p.sectors}, {"least_sectors", p.least_sectors},
      {"registers_estimated", p.registers_estimated},
      {"lds", {{"cycles", p.lds_cycles}, {"conflict_cycles", p.lds_conflict_cycles}}},
      {"caches", {{"l0", hits(p.l0_hits, p.l0_misses)}, {"l1", hits(p.l1_hits, p.l1_misses)},
                  {"l2", hits(p.l2_hits, p.l2_misses)},
                  {"mall", hits(p.mall_hits, p.mall_misses)}}},
      {"dram_bytes", {{"read", p.dram_bytes_read}, {"written", p.dram_bytes_written},
                      {"least", p.least_dram_bytes}}},
      {"flops", p.flops}, {"time_us", p.time_us}, {"limit", p.limit},
      {"parts_us", emu_api::parts_json(p)},
      {"roofline_us", p.roofline_us}, {"instructions", emu_api::instructions_json(p)}};
}

}  // namespace tuff::emu
