// Engines: what makes the contexts of a machine go on: a thread of its own, which looks at
// doorbells by itself. Called by machine.cpp and rm/objects.cpp. A doorbell is a plain store that
// wakes no thread; it tells of one channel, but two that come before the thread looks leave one
// word, so all channels of the GPU are looked at.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/split_mix.h"
#include "emu/kernel/pages.h"
#include "emu/nv/context.h"

namespace tuff::emu::nv {

class Engines {
 public:
  Engines(uint32_t gpus, const std::shared_ptr<PageFile>& file, Reports& reports, uint64_t seed);
  ~Engines();
  const Pages& doorbells(uint32_t gpu) const { return doorbells_[gpu]; }
  void add(uint32_t gpu, std::shared_ptr<Context> context);
  void remove(const std::shared_ptr<Context>& context);
  // Something may have changed for who waits; called after every call.
  void wake();
  // Called on the engines' thread, between two steps.
  void post(std::function<void()> task);
  // Nothing runs from here on.
  void stop();

 private:
  struct Entry {
    uint32_t gpu;
    std::shared_ptr<Context> context;
  };
  void run();
  std::vector<Entry> entries();
  bool look_at_doorbells();
  bool step_one(const std::vector<Entry>& all);
  void sleep(uint64_t idle_since_ns, uint64_t seen);
  void run_posted();
  Reports& reports_;
  std::vector<Pages> doorbells_;  // by GPU
  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<Entry> entries_;
  std::vector<std::function<void()>> posted_;
  SplitMix64 random_;  // of which context goes on, where there are several
  std::atomic<uint64_t> wakes_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace tuff::emu::nv
