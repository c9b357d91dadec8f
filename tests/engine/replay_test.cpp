// From its third step on a captured training step schedules, compiles, records and allocates
// nothing and submits once. Measured from outside: by exchanging the Vulkan function table's
// entries, the global operator new, and libc's mmap and posix_spawn; not by the engine's own
// counters.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <spawn.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <new>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>
#include "devices/vulkan/api/api.h"
#include "devices/vulkan/vulkan.h"
#include "engine/device.h"
#include "tensor/devices.h"

namespace {

// Counted on the thread that is inside a Guarded region only.
thread_local bool inside = false;
thread_local uint64_t host_allocations = 0, mappings = 0;
std::atomic<uint64_t> processes{0};

struct Guarded {
  Guarded() { inside = true; }
  ~Guarded() { inside = false; }
};

void* counted(std::size_t n) {
  if (inside) host_allocations++;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* counted(std::size_t n, std::align_val_t alignment) {
  if (inside) host_allocations++;
  const std::size_t a = std::size_t(alignment);
  if (void* p = std::aligned_alloc(a, (n + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t n) { return counted(n); }
void* operator new[](std::size_t n) { return counted(n); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, a); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, a); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

// The program's own definitions come before libc's.
extern "C" void* mmap(void* address, size_t size, int protection, int flags, int file,
                      off_t offset) noexcept {
  static const auto real = reinterpret_cast<decltype(&mmap)>(dlsym(RTLD_NEXT, "mmap"));
  if (inside) mappings++;
  return real(address, size, protection, flags, file, offset);
}
extern "C" int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const argv[],
                            char* const environment[]) {
  static const auto real =
      reinterpret_cast<decltype(&posix_spawnp)>(dlsym(RTLD_NEXT, "posix_spawnp"));
  processes++;
  return real(pid, file, actions, attributes, argv, environment);
}
extern "C" int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const argv[],
                           char* const environment[]) {
  static const auto real =
      reinterpret_cast<decltype(&posix_spawn)>(dlsym(RTLD_NEXT, "posix_spawn"));
  processes++;
  return real(pid, path, actions, attributes, argv, environment);
}

namespace tuff::engine {
namespace {

using devices::VkApi;

struct VulkanCalls {
  std::atomic<uint64_t> submits{0}, records{0}, memory{0}, objects{0};
};
VulkanCalls calls;
VkApi real;

// Exchanges one entry for one that counts and calls the real one.
#define TUFF_COUNT(entry, counter) \
  api.entry = [](auto... args) {   \
    calls.counter++;               \
    return real.entry(args...);    \
  }

void count_calls(VkApi& api) {
  real = api;
  TUFF_COUNT(vkQueueSubmit, submits);
  if (real.vkQueueSubmit2) TUFF_COUNT(vkQueueSubmit2, submits);
  TUFF_COUNT(vkBeginCommandBuffer, records);
  TUFF_COUNT(vkEndCommandBuffer, records);
  TUFF_COUNT(vkResetCommandPool, records);
  TUFF_COUNT(vkAllocateCommandBuffers, records);
  TUFF_COUNT(vkCmdBindPipeline, records);
  TUFF_COUNT(vkCmdPushConstants, records);
  TUFF_COUNT(vkCmdDispatch, records);
  TUFF_COUNT(vkCmdDispatchIndirect, records);
  TUFF_COUNT(vkCmdCopyBuffer, records);
  TUFF_COUNT(vkCmdPipelineBarrier, records);
  TUFF_COUNT(vkAllocateMemory, memory);
  TUFF_COUNT(vkFreeMemory, memory);
  TUFF_COUNT(vkMapMemory, memory);
  TUFF_COUNT(vkCreateBuffer, memory);
  TUFF_COUNT(vkBindBufferMemory, memory);
  TUFF_COUNT(vkCreateShaderModule, objects);
  TUFF_COUNT(vkCreateComputePipelines, objects);
  TUFF_COUNT(vkCreatePipelineLayout, objects);
  TUFF_COUNT(vkCreateSemaphore, objects);
  TUFF_COUNT(vkCreateFence, objects);
  TUFF_COUNT(vkCreateDescriptorPool, objects);
  TUFF_COUNT(vkAllocateDescriptorSets, objects);
  TUFF_COUNT(vkCreateCommandPool, objects);
  TUFF_COUNT(vkCreateQueryPool, objects);
}
#undef TUFF_COUNT

struct Counts {
  uint64_t submits, records, memory, objects, host_allocations, mappings, processes, timeline,
      device_bytes;
};
Counts now(Device& device) {
  return {calls.submits,
          calls.records,
          calls.memory,
          calls.objects,
          host_allocations,
          mappings,
          processes,
          device.queue().last_submitted(),
          device.hcq().allocator().stats().live_bytes};
}

// Lists of eager work that has run are freed by the next submission.
class Settled {
 public:
  explicit Settled(Device& device)
      : queue_(device.queue()), nothing_(queue_.encode({}, hcq::EncodeUse::Replay)) {}
  Counts counts(Device& device) {
    queue_.wait_idle();
    queue_.wait(queue_.submit(*nothing_, {}));
    return now(device);
  }

 private:
  hcq::Queue& queue_;
  std::unique_ptr<hcq::EncodedList> nothing_;
};

class Network {
 public:
  explicit Network(const TensorOptions& o)
      : first_(12, 32, true, o),
        second_(32, 4, true, o),
        optimizer_({first_.weight, first_.bias, second_.weight, second_.bias}, {.lr = 1e-2}) {}
  std::vector<Tensor> step(const std::vector<Tensor>& in) {
    TrainingMode on;
    const Tensor loss = second_(first_(in[0]).relu().dropout(0.1)).cross_entropy(in[1]);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss};
  }
  void set_lr(double lr) { optimizer_.set_lr(lr); }

 private:
  nn::Linear first_, second_;
  optim::AdamW optimizer_;
};

std::vector<Tensor> batch(int seed, const std::string& device) {
  std::vector<float> x(16 * 12);
  std::vector<int32_t> y(16);
  for (size_t i = 0; i < x.size(); i++) x[i] = float((i * 31 + size_t(seed) * 7) % 23) / 11 - 1;
  for (size_t i = 0; i < y.size(); i++) y[i] = int32_t((i * 3 + size_t(seed)) % 4);
  return {Tensor::from(x, {16, 12}, {.device = device}), Tensor::from(y, {16}, {.device = device})};
}

class Replay : public testing::TestWithParam<std::string> {
 protected:
  bool on_vulkan() const { return GetParam().starts_with("VULKAN"); }
};

TEST_P(Replay, ASteadyStepOnlyPatchesAndSubmitsOnce) {
  const std::shared_ptr<Device> device = Device::get(GetParam());
  Tensor::manual_seed(1);
  Network network({.device = GetParam()});
  const std::vector<std::vector<Tensor>> batches{batch(0, GetParam()), batch(1, GetParam()),
                                                 batch(2, GetParam())};
  Jit step([&](const std::vector<Tensor>& in) { return network.step(in); });
  step(batches[0]);
  step(batches[1]);
  ASSERT_TRUE(step.captured());
  Settled settled(*device);
  if (on_vulkan()) count_calls(devices::vulkan_api(device->hcq()));

  for (size_t i = 2; i < 42; i++) {
    network.set_lr(1e-2 / double(i));
    const Counts before = settled.counts(*device);
    {
      Guarded region;
      step(batches[i % 3]);
    }
    const Counts after = now(*device);
    EXPECT_EQ(after.timeline - before.timeline, 1u) << "submissions of step " << i;
    EXPECT_EQ(after.submits - before.submits, on_vulkan() ? 1u : 0u) << "step " << i;
    EXPECT_EQ(after.records - before.records, 0u) << "commands recorded in step " << i;
    EXPECT_EQ(after.memory - before.memory, 0u) << "memory calls of step " << i;
    EXPECT_EQ(after.objects - before.objects, 0u) << "objects made in step " << i;
    EXPECT_EQ(after.host_allocations - before.host_allocations, 0u)
        << "host allocations of step " << i;
    EXPECT_EQ(after.mappings - before.mappings, 0u) << "mappings of step " << i;
    EXPECT_EQ(after.processes - before.processes, 0u) << "processes started in step " << i;
    EXPECT_EQ(after.device_bytes, before.device_bytes) << "device memory of step " << i;
  }
  if (on_vulkan()) devices::vulkan_api(device->hcq()) = real;
  EXPECT_TRUE(std::isfinite(step(batches[0])[0].item()));
}

// Of another extent as well: nothing but the handles of the results that are shown anew.
TEST_P(Replay, OneOfSymbolicExtentOnlyPatchesAndSubmitsOnce) {
  const std::shared_ptr<Device> device = Device::get(GetParam());
  const nn::Linear layer(12, 8, true, {.device = GetParam()});
  Jit forward(
      [&](const std::vector<Tensor>& in) {
        const Tensor h = layer(in[0]);  // (T, 8)
        return std::vector<Tensor>{h.matmul(h.T()).softmax(-1).matmul(h), h.mean()};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = 16}}});
  std::vector<Tensor> inputs;
  for (int64_t t = 1; t <= 16; t++)
    inputs.push_back(Tensor::full({t, 12}, 0.25, {.device = GetParam()}).contiguous().realize());
  forward({inputs[15]});
  forward({inputs[15]});
  ASSERT_TRUE(forward.captured());
  Settled settled(*device);
  if (on_vulkan()) count_calls(devices::vulkan_api(device->hcq()));
  size_t last = 15;
  for (const size_t t : {15, 15, 3, 3, 3, 0, 0, 9, 15, 15}) {
    const std::vector<Tensor> in{inputs[t]};
    const Counts before = settled.counts(*device);
    {
      Guarded region;
      forward(in);
    }
    const Counts after = now(*device);
    EXPECT_EQ(after.timeline - before.timeline, 1u);
    EXPECT_EQ(after.submits - before.submits, on_vulkan() ? 1u : 0u);
    EXPECT_EQ(after.records - before.records, 0u);
    EXPECT_EQ(after.memory - before.memory, 0u);
    EXPECT_EQ(after.objects - before.objects, 0u);
    EXPECT_EQ(after.processes - before.processes, 0u);
    EXPECT_EQ(after.device_bytes, before.device_bytes);
    if (t == last) {
      EXPECT_EQ(after.host_allocations - before.host_allocations, 0u) << t + 1;
    }
    last = t;
  }
  if (on_vulkan()) devices::vulkan_api(device->hcq()) = real;
}

// The counters see what they are there to see.
TEST_P(Replay, AnUncapturedStepIsSeenByTheCounters) {
  const std::shared_ptr<Device> device = Device::get(GetParam());
  if (on_vulkan()) count_calls(devices::vulkan_api(device->hcq()));
  const Counts before = now(*device);
  {
    Guarded region;
    (Tensor::from({1, 2, 3, 5, 8}, {5}, {.device = GetParam()}) * 3 + 0.125).realize();
  }
  const Counts after = now(*device);
  EXPECT_GT(after.host_allocations, before.host_allocations);
  EXPECT_GT(after.timeline, before.timeline);
  if (on_vulkan()) {
    EXPECT_GT(after.submits, before.submits);
    EXPECT_GT(after.records, before.records);
    EXPECT_GT(after.objects, before.objects);
    devices::vulkan_api(device->hcq()) = real;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Replay, testing::ValuesIn(test::devices()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace tuff::engine
