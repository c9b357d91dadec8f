// CpuPool: the worker threads that share the groups of one large dispatch.
// Called by the CPU queue's consumer, one dispatch at a time. Knows nothing of queues or lists.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "render/binary.h"

namespace tuff::devices {

struct CpuGrid {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

class CpuPool {
 public:
  explicit CpuPool(uint32_t workers);  // besides the calling thread
  ~CpuPool();
  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }
  // Runs every group once on the caller and the workers; returns when all are done.
  // `cost_ns` holds the learned time of one group (0: unknown) and is updated: work that is shorter
  // than waking a thread stays on the caller.
  void run(render::CpuKernelFn fn, const void* args, CpuGrid grid, std::atomic<uint32_t>& cost_ns);

 private:
  struct Job {
    render::CpuKernelFn fn = nullptr;
    const void* args = nullptr;
    CpuGrid grid;
    uint64_t total = 0, chunk = 1;
  };
  static void run_range(const Job& job, uint64_t begin, uint64_t end);
  uint64_t take_chunks();  // groups run by this thread
  void share(const Job& job, uint64_t first);
  void work();
  void wake_workers();

  std::vector<std::thread> workers_;
  uint32_t unwatched_ = 0;                     // small launches; the caller's alone
  Job job_;                                    // written only while closed and nobody is inside
  alignas(64) std::atomic<uint64_t> next_{0};  // next group of the job to be taken
  alignas(64) std::atomic<bool> open_{false};
  std::atomic<uint32_t> inside_{0};  // workers that may be looking at job_
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace tuff::devices
