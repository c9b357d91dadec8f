// What the tests of seeded faults share.
#pragma once

#include <gtest/gtest.h>
#include <sanitizer/lsan_interface.h>

#include <cstdlib>
#include <utility>

#include <tuff/tensor.h>

namespace tuff::test {

// A fault happens in a process of its own, which ends with the sanitizer's report.
class Faults : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Lets go of what the device has finished with.
inline void settle(const TensorOptions& on) { (void)(Tensor::ones({1}, on) + 1).item(); }

// Keeps the tensor for ever; a function of its own leaves no pointer behind on the caller's stack.
[[gnu::noinline]] inline void forget(Tensor t) { (void)new Tensor(std::move(t)); }
inline constexpr const char* kForgotten =
    "LeakSanitizer: detected memory leaks(.|\n)*tuff::test::forget";

// Ends the process as one that forgot something does at its end.
[[noreturn]] inline void look_for_leaks() {
  __lsan_do_leak_check();
  std::exit(0);
}

}  // namespace tuff::test
