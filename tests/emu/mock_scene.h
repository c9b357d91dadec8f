// A small driver for tests of the emulated kernel driver: opens the machine, allocates, maps, makes
// queues and events with the fewest words. What a test wants refused it asks of ioctl itself.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <vector>

#include "base/os_kfd.h"
#include "emu/amd/mock.h"
#include "emu/scripted_gpu.h"

namespace tuff::emu::amd {

inline constexpr int kComplete = int(os::kfd::WaitResult::Complete),
                     kTimeout = int(os::kfd::WaitResult::Timeout);

struct MockScene {
  explicit MockScene(MockOptions options = {});
  ~MockScene();
  MockScene(const MockScene&) = delete;

  template <class Argument>
  int call(unsigned long request, Argument& argument) {
    return machine->ioctl(kfd, request, &argument);
  }
  void acquire(uint32_t gpu = 0);
  uint32_t gpu_id(uint32_t gpu) const;

  struct Memory {
    uint64_t address = 0, size = 0, handle = 0, mmap_offset = 0;
  };
  // Address space of the host that nobody uses; kept to the end of the scene.
  uint64_t reserve(uint64_t size_bytes);
  os::kfd::AllocMemory request(uint64_t size_bytes, uint32_t flags, uint32_t gpu = 0);
  Memory allocate(uint64_t size_bytes, uint32_t flags, uint32_t gpu = 0);
  int map(const Memory& memory, uint32_t gpu = 0);
  int unmap(const Memory& memory, uint32_t gpu = 0);
  int free(const Memory& memory);
  std::byte* map_on_host(const Memory& memory, uint32_t gpu = 0);
  Memory mapped(uint64_t size_bytes, uint32_t flags, uint32_t gpu = 0);

  // A request that is taken, with all buffers it needs.
  os::kfd::CreateQueue queue_request(os::kfd::QueueType type, uint32_t gpu = 0);
  os::kfd::CreateQueue queue(os::kfd::QueueType type, uint32_t gpu = 0);
  int destroy_queue(uint32_t id);
  uint64_t* doorbell(const os::kfd::CreateQueue& queue);
  static void ring(uint64_t* doorbell, uint64_t value);

  uint64_t* make_event_page();  // and the first event, which is destroyed again
  uint32_t event(os::kfd::EventType type, bool auto_reset = true);
  // The result of the call, or wait_result if that is 0.
  int wait(std::vector<os::kfd::EventData>& events, uint32_t timeout_ms, bool all = false);
  int wait(uint32_t event, uint32_t timeout_ms);
  std::vector<Finding> take_findings();

  std::mutex mutex;
  std::vector<Finding> findings;
  std::unique_ptr<Mock> machine;
  int kfd = -1;
  std::vector<int> render;
  std::vector<std::pair<void*, size_t>> reserved;
};

inline constexpr uint32_t kSystemFlags = os::kfd::kGtt | os::kfd::kWritable | os::kfd::kExecutable |
                                         os::kfd::kNoSubstitute | os::kfd::kCoherent |
                                         os::kfd::kUncached;
inline constexpr uint32_t kVramFlags =
    os::kfd::kVram | os::kfd::kWritable | os::kfd::kExecutable | os::kfd::kNoSubstitute;

}  // namespace tuff::emu::amd
