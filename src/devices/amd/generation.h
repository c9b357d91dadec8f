// Generation: how AMD's GPUs differ, as numbers, in one table.
// Read by kfd (queue sizes), encode (packets and registers) and load (descriptor fields). Knows no
// device that is open. Code decides by a field of this table, never by a GPU's name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tuff::devices::amd {

enum class Family : uint8_t { CDNA3, RDNA2, RDNA3, RDNA4 };
enum class SdmaVersion : uint8_t { SDMA_4_4_2, SDMA_5_2, SDMA_6_0, SDMA_6_1, SDMA_7_0 };
// ACQUIRE_MEM and RELEASE_MEM name caches in CP_COHER_CNTL's terms, or in GCR_CNTL's (gfx10+).
enum class CacheControl : uint8_t { CoherCntl, GcrCntl };
// Where a kernel finds its workgroup's ids.
enum class WorkgroupIds : uint8_t { Sgpr, PaddedSgpr, Ttmp };

struct Generation {
  std::string_view name;    // "gfx1100", as LLVM's -mcpu
  uint32_t target_version;  // gfx_target_version of the topology: 110000
  uint32_t elf_machine;     // of its code objects: EF_AMDGPU_MACH
  Family family;
  uint8_t wave_size;    // what kernels are compiled for
  bool can_wave32;      // CS_W32_EN exists
  bool can_be_several;  // a device may consist of several XCCs: its queues are AQL then
  CacheControl caches;  //
  uint16_t rsrc3;       // register COMPUTE_PGM_RSRC3, from COMPUTE_DISPATCH_INITIATOR's base
  WorkgroupIds ids;     //
  bool rsrc1_priv;      // kernels need PRIV for context save (see load)
  uint32_t lds_granularity_bytes;  // of LDS_SIZE in COMPUTE_PGM_RSRC2
  // Scratch. Architected: DISPATCH_SCRATCH_BASE tells it; else it comes in user SGPRs.
  bool architected_scratch;
  uint32_t scratch_unit_bytes;    // of WAVESIZE in COMPUTE_TMPRING_SIZE
  uint8_t scratch_wavesize_bits;  // width of that field, from bit 12
  bool scratch_waves_per_engine;  // WAVES counts those of one shader engine
  // Copies.
  SdmaVersion sdma;
  uint32_t copy_max_bytes;  // of one COPY_LINEAR
  bool sdma_caches;         // SDMA goes through L2: it has GCR_REQ, and FENCE an MTYPE
  // Context save and restore.
  uint32_t vgpr_bytes_per_cu;
  uint8_t control_stack_bytes_per_wave;
  uint32_t control_stack_cap_bytes;  // 0: none
};

std::span<const Generation> generations();
// Null: not supported.
const Generation* find_generation(uint32_t target_version);
const Generation* find_generation(std::string_view name);

// What the topology says of a GPU (properties of its node in sysfs).
struct Topology {
  uint32_t simd_count = 0, simd_per_cu = 0, max_waves_per_simd = 0;
  uint32_t array_count = 0, simd_arrays_per_engine = 0;
  uint32_t max_slots_scratch_cu = 0;
  uint32_t xccs = 1;
  uint32_t cus() const { return simd_count / simd_per_cu; }
  uint32_t engines() const { return array_count / simd_arrays_per_engine; }
};

// What CREATE_QUEUE of a compute queue has to be given. The control stack's size is compared for
// equality by the kernel, the save area has to be at least as large; for all XCCs together it is
// mapped with exactly mapping_bytes. Source: Linux amdkfd/kfd_queue.c.
struct QueueSizes {
  uint32_t eop_bytes;
  uint32_t control_stack_bytes;
  uint32_t save_area_bytes;  // of one XCC, control stack included
  uint32_t debug_bytes;      // of one XCC
  uint64_t mapping_bytes;
};
QueueSizes queue_sizes(const Generation& generation, const Topology& topology);

// Scratch for all waves that a GPU can have in flight, if each lane takes `bytes_per_lane`.
struct ScratchSize {
  uint64_t size_bytes = 0;      // of all XCCs together
  uint32_t bytes_per_lane = 0;  // what that gives each lane, rounded up
  uint32_t tmpring = 0;         // COMPUTE_TMPRING_SIZE
};
// Throws Unsupported where the register's field is too narrow.
ScratchSize scratch_size(const Generation& generation, const Topology& topology,
                         uint32_t bytes_per_lane);

}  // namespace tuff::devices::amd
