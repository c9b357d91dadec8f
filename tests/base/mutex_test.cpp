#include "base/mutex.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace tuff {
namespace {

// Longer held than a spin would last, so that waiting threads sleep and have to be woken.
TEST(Mutex, AdmitsOneAtATimeAndWakesWhoWaits) {
  constexpr int kThreads = 4, kRounds = 2000;
  Mutex mutex;
  int counted = 0, inside = 0;
  bool was_alone = true;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        std::lock_guard lock(mutex);
        was_alone &= ++inside == 1;
        if (i % 100 == 0) std::this_thread::yield();
        ++counted;
        --inside;
      }
    });
  threads.clear();
  EXPECT_EQ(counted, kThreads * kRounds);
  EXPECT_TRUE(was_alone);
}

TEST(Mutex, ServesUniqueLock) {
  Mutex mutex;
  std::unique_lock lock(mutex);
  lock.unlock();
  lock.lock();
  EXPECT_TRUE(lock.owns_lock());
}

}  // namespace
}  // namespace tuff
