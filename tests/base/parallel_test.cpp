#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tuff {
namespace {

TEST(ParallelFor, CallsEachNumberOnce) {
  for (const size_t threads : {0, 1, 3, 64}) {
    std::vector<std::atomic<int>> calls(17);
    parallel_for(calls.size(), threads, [&](size_t i) { ++calls[i]; });
    for (const auto& c : calls) EXPECT_EQ(c, 1) << threads;
  }
  parallel_for(0, 4, [](size_t) { FAIL(); });
}

// Two calls that wait for each other end only on two threads.
TEST(ParallelFor, RunsAtTheSameTime) {
  std::atomic<int> inside{0};
  parallel_for(2, 2, [&](size_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
}

TEST(ParallelFor, TheLowestErrorIsThrownAfterAllHaveEnded) {
  std::atomic<int> calls{0};
  try {
    parallel_for(40, 4, [&](size_t i) {
      ++calls;
      if (i % 10 == 3) throw std::runtime_error(std::to_string(i));
    });
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "3");
  }
  EXPECT_EQ(calls, 40);
}

}  // namespace
}  // namespace tuff
