#include "devices/cpu/cpu_pool.h"

#include <algorithm>

#include "base/check.h"
#include "base/os.h"
#include "base/os_file_mapping.h"
#include "devices/cpu_signal.h"

namespace tuff::devices {
namespace {
constexpr uint64_t kShareAboveNs = 10'000;  // about what it costs to wake a thread and wait for it
constexpr uint64_t kIdleNs = 1'000'000'000;
constexpr uint32_t kWatchEvery = 16;
constexpr int kSpinsInList = 50 * kSpinRounds;  // about a millisecond
}  // namespace

CpuPool::CpuPool(uint32_t workers, size_t scratch_bytes)
    : rounds_expecting_(workers < os::core_count() ? kSpinsInList : kSpinRounds) {
  for (uint32_t i = 0; i <= workers; ++i) {
    void* pages = scratch_bytes ? os::map_pages(scratch_bytes) : nullptr;
    if (scratch_bytes && !pages)
      fail<OutOfMemory>("CPU: no {} bytes of scratch memory for a thread", scratch_bytes);
    scratch_.emplace_back(pages, Unmap{scratch_bytes});
  }
  for (uint32_t i = 0; i < workers; ++i)
    workers_.emplace_back([this, own = scratch_[i + 1].get()] { work(own); });
}

void CpuPool::leave_workers() {
  for (std::thread& t : workers_) os::join_own(t, started_at_);
  workers_.clear();
}

CpuPool::~CpuPool() {
  stop_.store(true, std::memory_order_seq_cst);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(&epoch_, INT32_MAX);
  for (std::thread& t : workers_) os::join_own(t, started_at_);
}

void CpuPool::run_range(const Job& job, uint64_t begin, uint64_t end, void* scratch) {
  uint64_t row = begin / job.grid.x;
  auto x = static_cast<uint32_t>(begin % job.grid.x);
  auto y = static_cast<uint32_t>(row % job.grid.y);
  auto z = static_cast<uint32_t>(row / job.grid.y);
  for (uint64_t i = begin; i < end; ++i) {
    job.fn(job.args, x, y, z, scratch);
    if (++x < job.grid.x) continue;
    x = 0;
    if (++y < job.grid.y) continue;
    y = 0;
    ++z;
  }
}

uint64_t CpuPool::take_chunks(void* scratch) {
  uint64_t ran = 0;
  for (;;) {
    uint64_t begin = next_.fetch_add(job_.chunk, std::memory_order_relaxed);
    if (begin >= job_.total) return ran;
    uint64_t end = std::min(begin + job_.chunk, job_.total);
    run_range(job_, begin, end, scratch);
    ran += end - begin;
  }
}

void CpuPool::wake_workers() {
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) os::futex_wake(&epoch_, INT32_MAX);
}

// Workers enter by raising inside_ and look at the job only if it is open after that; the caller
// closes it and then waits until none is inside. So no worker ever sees a job being rewritten.
void CpuPool::share(const Job& job, uint64_t first) {
  job_ = job;
  next_.store(first, std::memory_order_relaxed);
  open_.store(true, std::memory_order_seq_cst);
  wake_workers();
  take_chunks(scratch());
  open_.store(false, std::memory_order_seq_cst);
  for (int i = 0; inside_.load(std::memory_order_seq_cst) != 0; ++i) {
    if (i < 4 * kSpinRounds)
      os::cpu_relax();
    else
      std::this_thread::yield();  // fewer cores than threads: let the worker finish
  }
}

void CpuPool::work(void* scratch) {
  os::unblock_bus_errors();
  uint32_t seen = epoch_.load(std::memory_order_seq_cst);
  while (!stop_.load(std::memory_order_seq_cst)) {
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst)) take_chunks(scratch);
    inside_.fetch_sub(1, std::memory_order_seq_cst);
    for (int i = 0; epoch_.load(std::memory_order_acquire) == seen; ++i) {
      if (i >= kSpinRounds &&
          (i >= rounds_expecting_ || !expecting_.load(std::memory_order_relaxed)))
        break;
      os::cpu_relax();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (epoch_.load(std::memory_order_seq_cst) == seen) os::futex_wait(&epoch_, seen, kIdleNs);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    seen = epoch_.load(std::memory_order_seq_cst);
  }
}

void CpuPool::run(render::CpuKernelFn fn, const void* args, CpuGrid grid,
                  std::atomic<uint32_t>& cost_ns) {
  Job job{fn, args, grid, grid.count(), 1};
  if (job.total == 0) return;
  if (job.total == 1) return fn(args, 0, 0, 0, scratch());
  uint64_t known = cost_ns.load(std::memory_order_relaxed);
  // Reading the clock twice costs more than a small kernel: one that is far from being shared is
  // looked at now and then.
  const bool small = known != 0 && known * job.total < kShareAboveNs / 4;
  if (small && ++unwatched_ % kWatchEvery != 0) return run_range(job, 0, job.total, scratch());
  uint64_t begin_ns = os::monotonic_ns(), first = 0;
  if (known == 0) {  // never run: time one group alone
    run_range(job, 0, 1, scratch());
    first = 1;
    known = std::max<uint64_t>(os::monotonic_ns() - begin_ns, 1);
  }
  uint64_t rest = job.total - first, lanes = 1;
  if (workers_.empty() || known * rest < kShareAboveNs) {
    run_range(job, first, job.total, scratch());
  } else {
    job.chunk = std::max<uint64_t>(1, rest / (threads() * 8ull));
    lanes = std::min<uint64_t>(threads(), rest);
    share(job, first);
  }
  // Busy time of all lanes over all groups: an upper bound if some lane came late, so it may only
  // err towards sharing. Averaged, since sizes may be symbolic.
  uint64_t fresh = (os::monotonic_ns() - begin_ns) * lanes / job.total;
  uint64_t mean = std::clamp<uint64_t>((3 * known + fresh) / 4, 1, UINT32_MAX);
  cost_ns.store(static_cast<uint32_t>(mean), std::memory_order_relaxed);
}

}  // namespace tuff::devices
