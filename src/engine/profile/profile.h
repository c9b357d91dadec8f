// TUFF_PROFILE=FILE: what ran when, as a trace that Perfetto and chrome://tracing open ("Trace
// Event Format", Google, 2016): a track per queue with its kernels and copies by device timestamps,
// a track per host thread with scheduling, compiling and submitting, all on the host's monotonic
// clock. Called by the rest of engine. Must never steer anything; costs nothing where it is off.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/os.h"
#include "hcq/graph.h"
#include "kernel/lowered.h"

namespace tuff::engine {

bool profiling();

// Host work of this thread. `name` is a literal.
void profile_host(const char* name, uint64_t begin_ns, uint64_t end_ns);
// Its own lifetime, which it also adds to `counter` if there is one.
class ProfiledScope {
 public:
  explicit ProfiledScope(const char* name, std::atomic<uint64_t>* counter = nullptr)
      : name_(name), counter_(counter), begin_(counter || profiling() ? os::monotonic_ns() : 0) {}
  ~ProfiledScope() {
    if (!begin_) return;
    const uint64_t end = os::monotonic_ns();
    if (counter_) counter_->fetch_add(end - begin_, std::memory_order_relaxed);
    profile_host(name_, begin_, end);
  }
  ProfiledScope(const ProfiledScope&) = delete;

 private:
  const char* name_;
  std::atomic<uint64_t>* counter_;
  uint64_t begin_;
};
// What is known of a kernel, shown with each of its runs.
void profile_kernel(const std::string& name, const kernel::Estimate& estimate);
// Submits an eager list with timestamps; its times are taken once it has run.
uint64_t profile_submit(hcq::Queue& queue, const hcq::CommandList& list);
// While it lives, graphs that this thread captures have timestamps, and report their replays' times
// to `sink` as long as they are replayed, instead of to the trace. One at a time.
class ObservedReplays {
 public:
  explicit ObservedReplays(hcq::TimesSink sink);
  ~ObservedReplays();
  ObservedReplays(const ObservedReplays&) = delete;
};
// What a CommandGraph reports its replays' times to.
hcq::TimesSink profile_sink(const std::string& device);
// A graph that reports there and may live when the trace is written.
void profile_graph(const std::shared_ptr<hcq::CommandGraph>& graph);
// Writes all that has run so far. Called when devices are idle: at exit and before they are closed.
void profile_write() noexcept;

}  // namespace tuff::engine
