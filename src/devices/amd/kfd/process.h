// Process: what this process has at /dev/kfd, once for all of its GPUs. The kernel keeps address
// spaces, event page and loaded-code list for a process and not for an open file, and gives each of
// them once; so a Process lives as long as the os::Kernel that it talks to.
// Used by the devices of one iface. Source: Linux amdkfd/kfd_chardev.c, kfd_events.c.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "devices/amd/kfd/calls.h"
#include "devices/amd/kfd/loaded_code.h"
#include "devices/amd/kfd/memory.h"
#include "devices/amd/kfd/topology.h"
#include "devices/amd/queue_table.h"

namespace tuff::devices::amd {

// A GPU whose address space is this process's.
struct Gpu {
  GpuNode node;
  KernelFile render;
  std::unique_ptr<AddressRange> doorbells;  // with the first queue
  bool ready = false;                       // has what the process shares
};

// "" where /dev/kfd can be used; else why not, with the remedy.
std::string why_no_kfd(os::Kernel& kernel);

class Process {
 public:
  explicit Process(std::shared_ptr<os::Kernel> kernel);
  ~Process();
  os::Kernel& kernel() const { return *kernel_; }
  int fd() const { return kfd_.fd(); }
  LoadedCode& loaded_code() { return loaded_code_; }
  QueueTable& queues() { return queues_; }
  // Opens its render node and takes its address space, at the first call.
  Gpu& attach(const GpuNode& node);

  std::unique_ptr<KfdBuffer> allocate(Gpu& gpu, const BufferRequest& request);
  void free(std::unique_ptr<KfdBuffer> buffer) noexcept;  // may be null
  // As KfdBuffer::map_to, for memory that others may be sharing at the same time.
  bool share(KfdBuffer& buffer, const Gpu& with);
  // ", 123 bytes are available" after ENOMEM where the kernel tells, else "".
  std::string available_text(const Gpu& gpu, int result) const;

  // 64 bytes each, on all GPUs of the process.
  uint64_t* allocate_signal(Gpu& gpu);
  void free_signal(uint64_t* slot) noexcept;

  // The mailbox of the event's interrupts is event_mailbox(slot).
  uapi::CreateEvent create_event(Gpu& gpu, uapi::EventType type);
  void destroy_event(uint32_t id) noexcept;
  uint64_t event_mailbox(uint32_t slot) const { return event_page_->address() + slot * 8ull; }

  uint64_t* doorbell(Gpu& gpu, uint64_t offset);  // offset: as CREATE_QUEUE gave it

 private:
  void enable_runtime();

  std::shared_ptr<os::Kernel> kernel_;
  KernelFile kfd_;
  uapi::GetVersion version_{};
  LoadedCode loaded_code_;
  QueueTable queues_;
  std::mutex mutex_, event_mutex_;
  std::map<uint32_t, Gpu> gpus_;  // by gpu id
  bool runtime_enabled_ = false, event_page_given_ = false;
  std::set<KfdBuffer*> everywhere_;
  std::unique_ptr<KfdBuffer> event_page_;
  std::vector<std::unique_ptr<KfdBuffer>> signal_pages_;
  std::vector<uint64_t*> free_signals_;
};

}  // namespace tuff::devices::amd
