// What runs packets of a GPU of RDNA3: the compute engine (MEC), whose queue is put into its
// registers (HQD) without a scheduler's firmware, and the copy engine (SDMA0). For the start by
// PCI, after the PSP has loaded their firmware. Knows no packets. Sources: Linux,
// drivers/gpu/drm/amd/amdgpu/gfx_v11_0.c @0116307 (the wait for RLC, MEC's start, SH_MEM_*),
// sdma_v6_0.c, nbio_v4_3.c and soc21.c (doorbells), amdkfd/kfd_mqd_manager_v11.c and
// include/v11_structs.h (what a queue is told, where in its descriptor); tinygrad @a9069c1,
// runtime/support/am/ip.py (registers of a queue straight from its descriptor).
#pragma once

#include <array>
#include <cstdint>

#include "devices/amd/pci/registers.h"

namespace tuff::devices::amd {

// Numbers of doorbells, of 64 bits each in BAR 2.
inline constexpr uint32_t kComputeDoorbell = 3, kCopyDoorbell = 0x100;

struct EngineQueue {
  uint64_t ring_address = 0;
  uint32_t ring_bytes = 0;  // a power of two
  uint64_t read_pointer_address = 0, write_pointer_address = 0;
  // Of compute queues.
  uint64_t end_of_pipe_address = 0;
  uint32_t end_of_pipe_bytes = 0;   // a power of two
  uint64_t descriptor_address = 0;  // of its MQD, as the GPU's processors have it
};

// A compute queue's descriptor (MQD): what its registers are told, and more, in dwords.
using QueueDescriptor = std::array<uint32_t, 512>;
// InvalidArgument where sizes are no powers of two, or addresses are not aligned.
QueueDescriptor queue_descriptor(const EngineQueue& queue);

class ComputeEngine {
 public:
  explicit ComputeEngine(const GpuRegisters& registers) : registers_(registers) {}
  // Until the firmware of all of the graphics block is there.
  void wait_for_firmware() const;
  // `first_instruction`: of MEC's firmware, an address.
  void start(uint64_t first_instruction) const;
  // The descriptor lies in memory already.
  void activate(const QueueDescriptor& descriptor) const;
  // Ends what runs. DeviceLost where the queue stays.
  void deactivate() const;

 private:
  void select_queue(bool selected) const;
  const GpuRegisters& registers_;
};

class CopyEngine {
 public:
  explicit CopyEngine(const GpuRegisters& registers) : registers_(registers) {}
  void start() const;
  void activate(const EngineQueue& queue) const;
  // No packet is taken any more, and what runs is dropped.
  void deactivate() const;

 private:
  void write_pair(const GpuRegister& low, uint64_t value) const;
  void write_reversed(const GpuRegister& high, uint64_t value) const;
  const GpuRegisters& registers_;
};

}  // namespace tuff::devices::amd
