// Space and what it makes: what addresses mean to one GPU, memory that is mapped there, queues,
// interrupts, exceptions and the clock; the seam below the AMD device. Linux's /dev/kfd is behind
// it (kfd/kfd_space.h). Called by AmdDevice, GpuState, AmdQueue, signals and programs, which know
// nothing of who keeps page tables and starts queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/amd/encode/encode.h"
#include "devices/amd/encode/ring.h"
#include "devices/amd/gpu_facts.h"
#include "devices/amd/queue_table.h"

namespace tuff::devices::amd {

class Space;

// Where memory lies and who sees what in it.
enum class MemoryDomain : uint8_t {
  Vram,         // without a host pointer
  PeerVram,     // likewise, where other GPUs reach it: they come through the bar, as the host does
  VisibleVram,  // the host writes through the bar; only with a large one
  Code,         // likewise, or host memory where there is none; instructions
  Host,         // host memory that GPUs read and write past their caches
  Shared,       // host memory in a GPU's caches, as where the GPU is part of the CPU
  Uncached,     // host memory for rings, their pointers and signals
  User,         // the caller's own pages
};

struct BufferRequest {
  size_t size_bytes = 0;  // rounded up to pages
  MemoryDomain domain = MemoryDomain::Vram;
  bool everywhere = false;  // on all GPUs of the process, those that come later too
  void* user = nullptr;     // of domain User: page-aligned, and stays until the Buffer is gone
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  virtual uint64_t address() const = 0;
  virtual size_t size_bytes() const = 0;
  virtual std::byte* host() const = 0;  // null: the host does not map it
  virtual uint64_t handle() const = 0;  // the driver's; 0: it has none

 protected:
  Buffer() = default;
};

// Of a queue, whose packets write id() to the mailbox and raise one. A missed one costs time and
// nothing else.
class Interrupt {
 public:
  virtual ~Interrupt() = default;
  Interrupt(const Interrupt&) = delete;
  virtual uint32_t id() const = 0;
  virtual uint64_t mailbox() const = 0;

 protected:
  Interrupt() = default;
};

// What has ended a GPU's work.
struct GpuError {
  std::string text;  // "memory access fault at 0x...: a page that is not mapped for this GPU"
  std::optional<uint64_t> address;
};

struct HardwareQueueSetup {
  QueueType type = QueueType::Pm4;
  uint32_t ring_bytes = 0;  // a power of two
};

// A queue of a GPU with the memory that it needs. Knows where packets go, not what they say.
class HardwareQueue {
 public:
  virtual ~HardwareQueue() = default;
  HardwareQueue(const HardwareQueue&) = delete;
  virtual Ring& ring() const = 0;
  // What runs is ended and nothing runs from here on; the memory stays. Any number of times.
  virtual void stop() noexcept = 0;
  // Tells an AQL queue where the scratch of its kernels is. Nothing may be in flight.
  virtual void set_scratch(const ScratchArea& area) = 0;

 protected:
  HardwareQueue() = default;
};

// One moment by the GPU's clock and by the host's monotonic one.
struct ClockPoint {
  uint64_t ticks = 0, host_ns = 0;
};

// Errors are those of the driver below: OutOfMemory, DeviceLost, Unsupported, IoError.
class Space {
 public:
  virtual ~Space() = default;
  Space(const Space&) = delete;
  virtual const GpuFacts& facts() const = 0;

  virtual std::unique_ptr<Buffer> allocate(const BufferRequest& request) = 0;
  virtual void free(std::unique_ptr<Buffer> buffer) noexcept = 0;  // may be null
  // Whether that GPU can be given memory of this one at the same address.
  virtual bool reaches(const Space& other) const = 0;
  // Memory of this one. False: it is mapped there already. Throws where the GPUs have no link.
  virtual bool share(Buffer& buffer, Space& to) = 0;

  // Words of 64 bytes each that the host and all GPUs that may name them share, and the queues that
  // may do so.
  virtual uint64_t* allocate_signal() = 0;
  virtual void free_signal(uint64_t* slot) noexcept = 0;
  virtual QueueTable& queues() = 0;

  // Shows an object's ELF bytes to debuggers, as long as what is given back is kept.
  virtual std::shared_ptr<const void> show_code(uint64_t address, std::vector<uint8_t> object) = 0;

  virtual std::unique_ptr<Interrupt> make_interrupt() = 0;
  virtual std::unique_ptr<HardwareQueue> make_queue(const HardwareQueueSetup& setup) = 0;
  // Until the interrupt, an error of this GPU, or the timeout; with null for errors and time alone.
  virtual std::optional<GpuError> wait(const Interrupt* interrupt, uint32_t timeout_ms) = 0;
  virtual ClockPoint read_clock() const = 0;

 protected:
  Space() = default;
};

}  // namespace tuff::devices::amd
