#include "devices/amd/pci/pci_queue.h"

#include <cstring>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr size_t kDoorbellBar = 2, kPage = 4096;
constexpr size_t kReadPointer = 0, kWritePointer = 64;
constexpr uint32_t kEndOfPipeBytes = 4096;  // as the kernel's driver has it: amdkfd/kfd_queue.c

std::atomic_flag* take_engine(const HardwareQueueSetup& setup, std::atomic_flag& engine) {
  if (setup.type == QueueType::Aql)
    fail<Unsupported>("AMD: by PCI there are no queues of AQL packets: leave AMD_AQL unset");
  if (engine.test_and_set())
    fail<Unsupported>("AMD: by PCI an engine has one queue, and that is in use");
  return &engine;
}

}  // namespace

PciQueue::PciQueue(PciGpu& gpu, const HardwareQueueSetup& setup, std::atomic_flag& engine)
    : gpu_(gpu), type_(setup.type), engine_(take_engine(setup, engine)) {
  ring_memory_.emplace(gpu, setup.ring_bytes, MemoryDomain::Uncached);
  pointers_.emplace(gpu, kPage, MemoryDomain::Uncached);
  if (type_ == QueueType::Pm4) end_of_pipe_.emplace(gpu, kEndOfPipeBytes, MemoryDomain::Vram);
  doorbells_ = gpu.device().map(kDoorbellBar, 0, kPage);
  const uint32_t number = type_ == QueueType::Pm4 ? kComputeDoorbell : kCopyDoorbell;
  RingMemory memory;
  memory.dwords = reinterpret_cast<uint32_t*>(ring_memory_->host());
  memory.dword_count = setup.ring_bytes / sizeof(uint32_t);
  memory.read_pointer = reinterpret_cast<uint64_t*>(pointers_->host() + kReadPointer);
  memory.write_pointer = reinterpret_cast<uint64_t*>(pointers_->host() + kWritePointer);
  memory.doorbell = reinterpret_cast<uint64_t*>(doorbells_) + number;
  try {
    ring_ = std::make_unique<Ring>(type_, memory);
    active_ = true;  // in part, should a register fail
    activate();
  } catch (...) {
    stop();
    gpu.device().unmap(doorbells_, kPage);
    throw;
  }
}

void PciQueue::activate() {
  EngineQueue q;
  q.ring_address = ring_memory_->address();
  q.ring_bytes = uint32_t(ring_memory_->size_bytes());
  q.read_pointer_address = pointers_->address() + kReadPointer;
  q.write_pointer_address = pointers_->address() + kWritePointer;
  if (type_ == QueueType::Sdma) return gpu_.copies().activate(q);
  const VramWindow window = gpu_.descriptor_memory();
  q.end_of_pipe_address = end_of_pipe_->address();
  q.end_of_pipe_bytes = kEndOfPipeBytes;
  q.descriptor_address = window.address;
  const QueueDescriptor descriptor = queue_descriptor(q);
  std::memcpy(window.host, descriptor.data(), sizeof descriptor);
  gpu_.compute().activate(descriptor);
}

PciQueue::~PciQueue() {
  stop();
  gpu_.device().unmap(doorbells_, kPage);
}

void PciQueue::stop() noexcept {
  std::lock_guard lock(mutex_);
  if (!std::exchange(active_, false) || gpu_.was_reset()) return;
  try {
    if (type_ == QueueType::Sdma) gpu_.copies().deactivate();
    else gpu_.compute().deactivate();
  } catch (const Error& e) {
    gpu_.reset(e.what());
  }
}

// Lists of PM4 packets name theirs themselves.
void PciQueue::set_scratch(const ScratchArea&) {
  fail<Unsupported>("AMD: a queue of PM4 packets has no scratch of its own");
}

}  // namespace tuff::devices::amd
