// Gpu: the engines behind one emulated GPU's queues: command processors for PM4, AQL and SDMA, the
// caches (caches.h) and the kernels in flight (rdna/dispatch.h). Owned by the machine in kfd/,
// which announces queues and takes events. Knows no ioctls.
//
// Kernels run beside the packets that follow them, workgroup by workgroup, until something waits
// for them; queues interleave by choice of a seeded generator wherever waits leave it open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "emu/memory/address_space.h"
#include "emu/kernel/finding.h"
#include "emu/api.h"

namespace tuff::emu::amd {

enum class QueueKind : uint8_t { Pm4, Sdma, Aql };

// What CREATE_QUEUE was given, after the kernel's checks.
struct QueueSetup {
  uint32_t id = 0;
  QueueKind kind = QueueKind::Pm4;
  uint64_t ring_address = 0;  // mapped on this GPU, as are the pointers
  uint32_t ring_bytes = 0;
  uint64_t read_pointer_address = 0, write_pointer_address = 0;
  uint64_t eop_address = 0, eop_bytes = 0;  // of compute queues; RELEASE_MEM needs it
  const uint64_t* doorbell = nullptr;       // host memory; holds ~0 until it is first rung
};

// What a GPU tells its driver. Called while the GPU is locked: implementations must not call back.
class GpuEvents {
 public:
  virtual ~GpuEvents() = default;
  // An interrupt with the event id of the packet, if the fault options let it through.
  virtual void interrupt(uint32_t gpu, uint32_t event_id) = 0;
  virtual void memory_fault(uint32_t gpu, const MemoryFault& fault) = 0;
  // A packet that the processor does not take; the queue stands still from now on.
  virtual void queue_error(uint32_t gpu, uint32_t queue, const std::string& why) = 0;
  // Before each packet: false ends the engine's step without taking it (stopped, paused, reset).
  virtual bool may_take_packet(uint32_t gpu, uint32_t queue) = 0;
  virtual void report(Finding finding) = 0;
  // The name of the kernel that begins at this address, from the process's r_debug; else empty.
  virtual std::string kernel_at(uint64_t entry) = 0;
};

struct GpuStats {
  uint64_t packets = 0, dispatches = 0, instructions = 0;
};

class Gpu {
 public:
  // `seed` draws what is free to choose; it has to be given, threads or not. `profile` is told of
  // each kernel that has ended, while the GPU is locked. InvalidArgument for an unknown chip.
  Gpu(uint32_t index, AddressSpace& space, GpuEvents& events, uint64_t seed,
      const emu_api::ProfileOptions& profile = {});
  ~Gpu();  // no queue is attached any more
  void attach(const QueueSetup& queue);
  // From its return on the queue's memory is not touched. Kernels in flight are dropped.
  void detach(uint32_t queue);
  // What is in the caches of a mapping that ends: written back, then forgotten.
  void forget(uint64_t mapping_serial);
  // One piece of work of one queue: a packet, or some instructions of a kernel in flight. False if
  // nothing can be done before the host rings, signals or resumes. Thread-safe; one at a time.
  bool step();
  // A line for each queue that has packets and cannot go on, and why.
  std::string blocked() const;
  // The L2 drops its lines, dirty ones to memory, as it may at any time. Never done by itself.
  void evict();
  void reset();  // all queues are dead, caches empty, kernels gone
  GpuStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::emu::amd
