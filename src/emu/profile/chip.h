// The chips that the time model knows: sizes, rates and latencies from chips.def, and what follows
// from them for a kernel's registers and LDS. Called by cache_model.cpp and time_model.cpp.
// Common to RDNA 3: 2 SIMDs per CU, 2 CUs per WGP, 16 waves per SIMD, L0 of 32 KB per CU, scalar
// cache of 16 KB per WGP, 128 KB of LDS per WGP (AMD, "RDNA3 Instruction Set Architecture", 1.1 and
// 12.1; Chips and Cheese, "Microbenchmarking AMD's RDNA 3 Graphics Architecture").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emu/rdna/timeline.h"

namespace tuff::emu::profile {

inline constexpr uint32_t kSimdsPerCu = 2, kCusPerWgp = 2, kWavesPerSimd = 16;
inline constexpr uint32_t kLdsBytesPerWgp = 128 * 1024, kLdsGranule = 1024;  // Mesa, ac_gpu_info.c
inline constexpr uint32_t kL0Kb = 32, kScalarKb = 16;

struct MemoryNs {
  double l0, l1, l2, mall, dram;
};

struct Chip {
  const char* name;
  const char* text;
  uint32_t cus, engines, arrays;
  double mhz;
  uint32_t vgprs_per_simd, vgpr_granule;
  uint32_t l1_kb, l2_kb, mall_kb;  // mall_kb 0: none
  double l2_bytes_per_clock, mall_gb_s, dram_gb_s;
  MemoryNs vector_ns, scalar_ns;

  rdna::MemoryLatencies latencies() const;
  double us(double cycles) const { return cycles / mhz; }
  // Floats per microsecond: of vector instructions (two multiply-adds at once), matrices, f64.
  double peak_flops_per_us(rdna::FloatKind kind) const;
};

// The chip of a name, "" for the first. InvalidArgument naming those that there are.
const Chip& chip(const std::string& name);
std::vector<std::string> chip_names();

// What a kernel asks for, and how its workgroups lie on the chip.
struct Residency {
  uint32_t vgprs = 0, lds_bytes = 0;
  uint32_t waves_per_group = 1;
  bool wgp_mode = true;  // a workgroup has a whole WGP, else one CU
  uint32_t units(const Chip& chip) const;  // WGPs or CUs
  uint32_t simds_per_unit() const { return wgp_mode ? kSimdsPerCu * kCusPerWgp : kSimdsPerCu; }
  // At once, at most, by registers and LDS; at least what one workgroup needs.
  uint32_t groups_per_unit(const Chip& chip) const;
  double waves_per_simd(const Chip& chip) const;
};

}  // namespace tuff::emu::profile
