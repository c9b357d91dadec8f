// os_transfer.h: requests by threads that block, for kernels that give us no io_uring.
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <thread>

#include "base/os_transfer.h"

namespace tuff::os {
namespace {

constexpr size_t kThreads = 8;

int64_t perform(const Request& r) {
  const ssize_t n = r.write ? ::pwrite(r.fd, r.memory, r.size_bytes, off_t(r.offset))
                            : ::pread(r.fd, r.memory, r.size_bytes, off_t(r.offset));
  return n < 0 ? -errno : n;
}

class RequestThreads final : public RequestQueue {
 public:
  ~RequestThreads() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    asked_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void push(const Request& request) override {
    std::lock_guard lock(mutex_);
    wanted_.push_back(request);
    if (idle_ < wanted_.size() && threads_.size() < kThreads)
      threads_.emplace_back([this] { serve(); });
    asked_.notify_one();
  }
  Completion pop() override {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return !done_.empty(); });
    const Completion c = done_.front();
    done_.pop_front();
    return c;
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      idle_++;
      asked_.wait(lock, [&] { return stop_ || !wanted_.empty(); });
      idle_--;
      if (wanted_.empty()) return;
      const Request r = wanted_.front();
      wanted_.pop_front();
      lock.unlock();
      const int64_t result = perform(r);
      lock.lock();
      done_.push_back({r.slot, result});
      finished_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable asked_, finished_;
  std::deque<Request> wanted_;
  std::deque<Completion> done_;
  size_t idle_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<RequestQueue> make_request_threads() { return std::make_unique<RequestThreads>(); }

}  // namespace tuff::os
