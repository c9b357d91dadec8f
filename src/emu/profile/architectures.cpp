// RDNA 3: two CUs of two SIMDs each in a WGP, 16 waves to a SIMD, 32 KB of L0 per CU and 16 KB of
// scalar cache per WGP, 128 KB of LDS per WGP (AMD, "RDNA3 Instruction Set Architecture", 1.1 and
// 12.1; Chips and Cheese, "Microbenchmarking AMD's RDNA 3 Graphics Architecture"); LDS in granules
// of 1 KB (Mesa, ac_gpu_info.c), its latency an estimate after RDNA 2's 20 ns (Chips and Cheese,
// "AMD's RDNA 2", 2021). 6144 bytes per clock between the 96 L0s and the L1s of Navi 31 (AMD's
// slides of 2022).
// NVIDIA: NVIDIA, "CUDA C++ Programming Guide" 12, 16.1, 16.4 to 16.7 and 8.4.1: warps and blocks of
// an SM, registers, shared memory and its unified 128 or 256 KB with the L1, 1 KB of it that the
// system takes of each block, results per clock; sectors of 32 bytes: "Nsight Compute", Memory
// Tables; latency of shared memory: Luo and others, "Dissecting the NVIDIA Hopper Architecture
// through Microbenchmarking", 2025 (arXiv:2501.12084), Ampere's: Abdelkhalik and others,
// "Demystifying the Nvidia Ampere Architecture", 2022 (arXiv:2208.11174). 64 bytes per clock from
// the L2 to an SM: NVIDIA, "A100 Tensor Core GPU Architecture", 2020; for the others an assumption.
// Matrices: NVIDIA's whitepapers of GA102 (59.5 TFLOPS of f16 with sums of f32), Ada (165.2) and H100
// (989.4 at 1830 MHz).
#include "emu/profile/chip.h"

namespace tuff::emu::profile {

const Architecture kRdna3{.vendor = Vendor::Amd,
                          .target = "gfx1100",
                          .simds_per_cu = 2,
                          .cus_per_wgp = 2,
                          .waves_per_simd = 16,
                          .groups_per_cu = 32,
                          .lds_kb = 64,
                          .lds_granule = 1024,
                          .lds_taken = 0,
                          .lds_latency = 50,
                          .l0_kb = 32,
                          .scalar_kb = 16,
                          .l0_has_lds = false,
                          .sector_bytes = kLineBytes,
                          .l0_fill_bytes_per_clock = 64,
                          .vector_flops = 128,
                          .half_flops = 128,
                          .matrix_flops = 256,
                          .double_flops = 4};

const Architecture kAmpere{.vendor = Vendor::Nvidia,
                           .target = "sm_86",
                           .simds_per_cu = 4,
                           .cus_per_wgp = 1,
                           .waves_per_simd = 12,
                           .groups_per_cu = 16,
                           .lds_kb = 100,
                           .lds_granule = 128,
                           .lds_taken = 1024,
                           .lds_latency = 23,
                           .l0_kb = 128,
                           .scalar_kb = 2,
                           .l0_has_lds = true,
                           .sector_bytes = kSectorBytes,
                           .l0_fill_bytes_per_clock = 64,
                           .vector_flops = 64,
                           .half_flops = 64,
                           .matrix_flops = 128,
                           .double_flops = 1};

const Architecture kAda = [] {
  Architecture ada = kAmpere;
  ada.target = "sm_89";
  ada.groups_per_cu = 24;
  ada.lds_latency = 30;
  return ada;
}();

const Architecture kHopper = [] {
  Architecture hopper = kAmpere;
  hopper.target = "sm_90";
  hopper.waves_per_simd = 16;
  hopper.groups_per_cu = 32;
  hopper.lds_kb = 228;
  hopper.lds_latency = 29;
  hopper.l0_kb = 256;
  hopper.half_flops = 128;
  hopper.matrix_flops = 1024;
  hopper.double_flops = 32;
  return hopper;
}();

}  // namespace tuff::emu::profile
