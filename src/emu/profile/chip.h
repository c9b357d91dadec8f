// Chips of the time model: units, clock, caches, bandwidths, latencies; and how many waves fit.
// Read by everything in profile/. Its table is chips.def; what the cores of an architecture have
// in common, and where it comes from, is architectures.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/profile/counts.h"

namespace tuff::emu::profile {

inline constexpr uint32_t kKb = 1024;

struct MemoryNs {
  double l0, l1, l2, mall, dram;
};

// In AMD's terms: a CU is an SM, a SIMD one of its four partitions, a wave a warp, LDS shared
// memory, L0 the L1 of an SM.
struct Architecture {
  Vendor vendor;
  const char* target;  // what kernels are compiled for
  uint32_t simds_per_cu, cus_per_wgp, waves_per_simd, groups_per_cu;
  uint32_t lds_kb, lds_granule, lds_taken;  // of a CU; lds_taken: by the system, of a workgroup
  uint32_t lds_latency;                     // cycles
  uint32_t l0_kb, scalar_kb;
  bool l0_has_lds;                // LDS is a part of it, as large as the workgroups want it
  uint32_t sector_bytes;          // of a line, that is fetched alone
  double l0_fill_bytes_per_clock;
  double vector_flops, half_flops, matrix_flops, double_flops;  // of a SIMD and clock
};
extern const Architecture kRdna3, kAmpere, kAda, kHopper;

struct Chip {
  const char* name;
  const char* text;
  const Architecture& core;
  uint32_t cus, engines, arrays;
  double mhz;
  uint32_t vgprs_per_simd, vgpr_granule;
  uint32_t l1_kb, l2_kb, mall_kb;  // mall_kb, l1_kb 0: none
  double l2_bytes_per_clock, mall_gb_s, dram_gb_s;
  MemoryNs vector_ns, scalar_ns;

  MemoryLatencies latencies() const;
  double us(double cycles) const { return cycles / mhz; }
  // Floats per microsecond: of vector instructions (two multiply-adds at once), pairs of halves,
  // matrices, f64.
  double peak_flops_per_us(FloatKind kind) const;
};

// The chip of a name, "" for the vendor's first (AMD's, without one). InvalidArgument naming those
// that there are, of the vendor.
const Chip& chip(const std::string& name, std::optional<Vendor> vendor = std::nullopt);
std::vector<std::string> chip_names(std::optional<Vendor> vendor = std::nullopt);

// What a kernel asks for, and how its workgroups lie on the chip.
struct Residency {
  uint32_t vgprs = 0, lds_bytes = 0;
  uint32_t waves_per_group = 1;
  bool wgp_mode = true;  // a workgroup has a whole WGP, else one CU
  uint32_t cus_per_unit(const Chip& chip) const;
  uint32_t units(const Chip& chip) const { return chip.cus / cus_per_unit(chip); }
  uint32_t simds_per_unit(const Chip& chip) const;
  // At once, at most, by registers and LDS; at least what one workgroup needs.
  uint32_t groups_per_unit(const Chip& chip) const;
  double waves_per_simd(const Chip& chip) const;
  uint64_t l0_bytes(const Chip& chip) const;  // what LDS leaves of it
};

}  // namespace tuff::emu::profile
