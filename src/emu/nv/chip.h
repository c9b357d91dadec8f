// The GPUs that are emulated, as their driver tells of them and as their engines take methods and
// launches. Read by everything in nv/. Where classes and bits come from: devices/nv/encode.
#pragma once

#include <cstdint>
#include <string>

namespace tuff::emu::nv {

// Where constant bank 0 has what a launch says; 0xffff: nowhere.
struct BankPlaces {
  uint32_t block, grid, shared_window, local_window, stack, parameters;
};

// What a QMD's numbers are multiplied with.
struct QmdUnits {
  uint32_t program, shared, local, bank;
};

struct ChipKind {
  uint32_t sm;  // 86 for sm_86
  const char* name;
  uint32_t gpfifo_class, compute_class, copy_class, usermode_class;
  uint32_t first_driver;  // the branch that knows it
  uint32_t qmd_major, qmd_bytes;
  QmdUnits units;
  uint32_t sass_version;
  uint32_t gpcs, tpcs_per_gpc, sms_per_tpc, warps_per_sm;
  uint32_t shared_kib;  // of an SM, at most
  uint64_t l2_bytes;
  BankPlaces bank;
};

inline constexpr ChipKind kChips[] = {
    {86, "NVIDIA RTX A6000", 0xc56f, 0xc7c0, 0xc7b5, 0xc561, 535, 3, 256, {1, 1, 1, 1}, 0x86, 7, 6,
     2, 48, 100, 6u << 20, {0x0, 0xc, 0x18, 0x20, 0x28, 0x160}},
    {90, "NVIDIA H100 80GB HBM3", 0xc86f, 0xcbc0, 0xc8b5, 0xc661, 535, 4, 384, {1, 1, 1, 64}, 0x90,
     8, 9, 2, 64, 228, 50u << 20, {0x0, 0xc, 0xffff, 0x20, 0x28, 0x210}},
    {120, "NVIDIA GeForce RTX 5090", 0xc96f, 0xcec0, 0xcab5, 0xc661, 570, 5, 384, {16, 128, 16, 64},
     0xa4, 11, 8, 2, 48, 100, 96u << 20, {0x360, 0x370, 0x2f0, 0x2f8, 0x37c, 0x380}},
};

// Null: none such.
inline const ChipKind* find_chip(uint64_t sm) {
  for (const ChipKind& c : kChips)
    if (c.sm == sm) return &c;
  return nullptr;
}

}  // namespace tuff::emu::nv
