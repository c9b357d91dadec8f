// Self-tests: one small kernel for each capability that some driver has claimed and not had, with
// inputs that have caught such drivers. What has to come out is the reference interpreter's result
// of the very list that is rendered. Called by verdicts.cpp and tests. Knows hcq's interfaces, the
// rows of caps.def and nothing of files or Vulkan's calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"
#include "devices/vulkan/facts/facts.h"
#include "ir/uop.h"
#include "hcq/device.h"
#include "kernel/lowered.h"

namespace tuff::devices::vulkan {

// Part of what verdicts are kept by: raise it when a row changes or is added.
inline constexpr uint32_t kSelfTestVersion = 10;

struct SelfTest {
  const char* name;  // of caps.def
  bool Caps::* cap;
  DType input;                        // param 1 of the kernel
  std::span<const uint64_t> numbers;  // bits of `input`; the kernel gets every pair of them
  // The kernel's AST. It reads pair i as elements 2i and 2i+1 of param 1, `pairs` in all, and
  // stores into param 0 and perhaps param 2.
  ir::UOp (*kernel)(int64_t pairs);
  // Its schedule, where what is tested depends on it; else the heuristics'.
  std::string (*opts)(const Target& target) = nullptr;
};
kernel::LinearKernel lowered(const SelfTest& test, const Target& target);

// In the order in which they are run: each with the capabilities that have passed, and its own.
std::span<const SelfTest> self_tests();

// Empty if the device gave what it had to; else the first element that is wrong. NaNs are equal
// whatever their bits. Throws what loading and running throw: CompileError, DeviceLost.
std::string run_self_test(const SelfTest& test, hcq::Device& device, const Target& target);

// A kernel's buffers, by slot, as it leaves them: on the device, and by the reference interpreter.
using Contents = std::vector<std::vector<std::byte>>;
void run_on_device(const kernel::LinearKernel& k, const Target& target, hcq::Device& device,
                   Contents& contents);
void run_on_host(const kernel::LinearKernel& k, Contents& contents);

}  // namespace tuff::devices::vulkan
