// CpuPool: the worker threads that share the groups of one large dispatch.
// Called by the CPU queue's consumer, one dispatch at a time. Knows nothing of queues or lists.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/os.h"
#include "base/os_fork.h"
#include "render/binary.h"

namespace tuff::devices {

struct CpuGrid {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

class CpuPool {
 public:
  // `workers` besides the calling thread; each thread has scratch memory of so many bytes.
  CpuPool(uint32_t workers, size_t scratch_bytes);
  ~CpuPool();
  // In a child of fork(), which has no thread but the caller. New ones might get the numbers of a
  // driver's that were the parent's, and the driver would wait for their end at exit.
  void leave_workers();
  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }
  // Around a list: its next kernel comes soon, so that workers spin for longer before they sleep.
  // Waking one takes 3 to 30 us, a hand-over to one that spins 0.1 us.
  void expect_work(bool soon) { expecting_.store(soon, std::memory_order_relaxed); }
  void* scratch() const { return scratch_[0].get(); }  // the caller's
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
  // Pages that are there once they are touched: kernels that pack nothing cost none.
  struct Unmap {
    size_t size_bytes;
    void operator()(void* p) const noexcept { os::unmap_pages(p, size_bytes); }
  };
  using Scratch = std::unique_ptr<void, Unmap>;
  static void run_range(const Job& job, uint64_t begin, uint64_t end, void* scratch);
  uint64_t take_chunks(void* scratch);  // groups run by this thread
  void share(const Job& job, uint64_t first);
  void work(void* scratch);
  void wake_workers();

  std::vector<Scratch> scratch_;  // the caller's, then the workers'
  std::vector<std::thread> workers_;
  const uint32_t started_at_ = os::forks();    // of workers_
  uint32_t unwatched_ = 0;                     // small launches; the caller's alone
  Job job_;                                    // written only while closed and no worker is inside
  alignas(64) std::atomic<uint64_t> next_{0};  // next group of the job to be taken
  alignas(64) std::atomic<bool> open_{false};
  std::atomic<uint32_t> inside_{0};  // workers that may be looking at job_
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false}, expecting_{false};
  int rounds_expecting_;  // pauses before a worker sleeps in the middle of a list
};

}  // namespace tuff::devices
