// Sharing with an application that uses Vulkan, under the validation layer: one buffer for both,
// who waits for whom, when memory goes back, and what is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <tuff/interop/vulkan.h>
#include <tuff/jit.h>

#include "tensor/devices.h"
#include "vulkan_sharing/application.h"

namespace tuff::test {
namespace {

using application::Application;
using interop::VulkanPoint;
using Floats = std::vector<float>;
using Features = application::Options::Features;

constexpr int64_t kCount = 1000;

template <class E>
std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

#define EXPECT_ERROR(type, part, ...) \
  EXPECT_PRED2(contains, text_of<type>([&] { __VA_ARGS__; }), part)
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// An application with its device opened by tuff, and the layer's messages counted to the end.
class InteropVulkan : public testing::Test {
 protected:
  void open(application::Options options = {}) {
    options.validation = true;
    app_ = std::make_unique<Application>(options);
    device_ = interop::open_vulkan(app_->lend());
  }
  void TearDown() override {
    if (!device_.empty()) interop::close_vulkan(device_);
    app_.reset();
    EXPECT_EQ(Application::messages(), before_);
  }

  std::unique_ptr<application::Buffer> buffer(size_t bytes = kCount * 4, size_t memory_offset = 0) {
    return std::make_unique<application::Buffer>(*app_, bytes, app_->needs.buffer_usage,
                                                 memory_offset);
  }
  BlobOptions counting() {
    return {.deleter = [this](void* p) {
      EXPECT_EQ(p, nullptr);
      returned_++;
    }};
  }
  Tensor over(const application::Buffer& b, const Sizes& sizes = {kCount}, size_t offset = 0) {
    return interop::from_blob(b.lend(offset), sizes, counting(), {.device = device_});
  }
  // Lets go of what the device has finished with.
  void settle() const { (void)(Tensor::ones({1}, {.device = device_}) + 1).item(); }

  std::unique_ptr<Application> app_;
  std::string device_;
  int returned_ = 0;
  uint64_t before_ = Application::messages();
};

Floats count_up(int64_t n, float from = 0, float step = 1) {
  Floats out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); i++) out[i] = from + step * float(i);
  return out;
}
Floats host_of(const application::Buffer& b, int64_t n = kCount) {
  return {b.floats(), b.floats() + n};
}

TEST_F(InteropVulkan, TakesTurnsOnOneBuffer) {
  open();
  const auto memory = buffer();
  std::fill_n(memory->floats(), kCount, 1.0f);
  application::Shader shader(*app_, *memory);
  const VkSemaphore turns = app_->create_timeline();
  Tensor x = over(*memory);
  EXPECT_TRUE(x.is_realized());
  EXPECT_EQ(interop::vulkan_memory(x).buffer, memory->buffer);
  EXPECT_EQ(interop::vulkan_memory(x).memory, memory->memory);
  EXPECT_EQ(interop::vulkan_memory(x).offset, 0u);
  EXPECT_EQ(interop::vulkan_memory(x).size_bytes, uint64_t(kCount) * 4);
  VulkanPoint before{};
  for (uint64_t round = 1; round <= 4; round++) {
    shader.run({kCount, 2, 0, 1}, before, {turns, round});
    interop::wait_for(x, {turns, round});
    x.assign(x + 1);
    before = interop::vulkan_ready(x);
  }
  app_->wait(before);
  Floats expected(kCount, 1);
  for (int64_t i = 0; i < kCount; i++)
    for (int round = 0; round < 4; round++) expected[i] = expected[i] * 2 + float(i) + 1;
  EXPECT_EQ(host_of(*memory), expected);
  EXPECT_EQ(x.to_vector<float>(), expected);
  x = Tensor();
  settle();
  EXPECT_EQ(returned_, 1);
}

// What the application's shader has not written yet is not read: its work begins only when the host
// says so, long after tuff's was submitted.
TEST_F(InteropVulkan, WaitsForTheApplication) {
  open();
  const auto memory = buffer();
  std::fill_n(memory->floats(), kCount, 0.0f);
  const VkSemaphore host = app_->create_timeline();
  Tensor x = over(*memory);
  EXPECT_EQ((x * 3 + 1).to_vector<float>(), Floats(kCount, 1));  // compiles, and is done
  interop::wait_for(x, {host, 1});
  Tensor y = (x * 3 + 1).realize();
  const VulkanPoint done = interop::vulkan_ready(y);
  uint64_t now = 0;
  usleep(20'000);
  app_->vk.vkGetSemaphoreCounterValue(app_->device, done.semaphore, &now);
  EXPECT_LT(now, done.value);
  for (int64_t i = 0; i < kCount; i++) memory->floats()[i] = float(i);
  app_->raise({host, 1});
  EXPECT_EQ(y.to_vector<float>(), count_up(kCount, 1, 3));
}

// Memory that the host sees is read by the host: after what it has to wait for.
TEST_F(InteropVulkan, ReadsMappedMemoryAfterTheApplication) {
  open();
  const auto memory = buffer();
  std::fill_n(memory->floats(), kCount, 0.0f);
  const VkSemaphore host = app_->create_timeline();
  interop::VulkanBuffer lent = memory->lend();
  lent.mapped = memory->mapped;
  Tensor x = interop::from_blob(lent, {kCount}, counting(), {.device = device_});
  interop::wait_for(x, {host, 7});
  std::thread late([&] {
    usleep(50'000);
    for (int64_t i = 0; i < kCount; i++) memory->floats()[i] = float(i);
    app_->raise({host, 7});
  });
  EXPECT_EQ(x.to_vector<float>(), count_up(kCount));
  late.join();
}

TEST_F(InteropVulkan, RaisesTheApplicationsSemaphore) {
  open();
  const auto memory = buffer();
  for (int64_t i = 0; i < kCount; i++) memory->floats()[i] = float(i);
  application::Shader shader(*app_, *memory);
  const VkSemaphore turns = app_->create_timeline();
  Tensor x = over(*memory);
  x.assign(x * 2);
  interop::signal(x, {turns, 5});
  shader.run({kCount, 1, 1, 0}, {turns, 5}, {turns, 6});
  app_->wait({turns, 6});
  EXPECT_EQ(host_of(*memory), count_up(kCount, 1, 2));
}

// The deleter is called once, after the last of the device's work with the memory.
TEST_F(InteropVulkan, GivesMemoryBackAfterItsLastUse) {
  open();
  auto memory = buffer();
  std::fill_n(memory->floats(), kCount, 4.0f);
  const VkSemaphore host = app_->create_timeline();
  Tensor x = over(*memory), view = x.reshape({10, 100})[3];
  (x * 2).realize();
  interop::wait_for(x, {host, 1});
  Tensor y = (x * 2).realize();
  x = view = Tensor();
  (void)Tensor::empty({5}, {.device = device_}).realize();  // asks for what is due
  EXPECT_EQ(returned_, 0);
  app_->raise({host, 1});
  EXPECT_EQ(y.to_vector<float>(), Floats(kCount, 8));
  settle();
  EXPECT_EQ(returned_, 1);
  memory.reset();
  EXPECT_EQ(y.to_vector<float>(), Floats(kCount, 8));
  settle();
  EXPECT_EQ(returned_, 1);
}

// Also when nobody asks any more: closing the device does.
TEST_F(InteropVulkan, GivesMemoryBackWhenItIsClosed) {
  open();
  const auto memory = buffer();
  const VkSemaphore host = app_->create_timeline();
  Tensor x = over(*memory);
  interop::wait_for(x, {host, 1});
  x.assign(x * 2);
  x.realize();
  x = Tensor();
  EXPECT_EQ(returned_, 0);
  std::thread late([&] {
    usleep(30'000);
    app_->raise({host, 1});
  });
  interop::close_vulkan(device_);
  late.join();
  EXPECT_EQ(returned_, 1);
  EXPECT_ERROR(InvalidArgument, "no device " + device_ + " is open",
               interop::close_vulkan(device_));
  device_.clear();
}

TEST_F(InteropVulkan, TakesPartsAndStrides) {
  open();
  const auto memory = buffer(kCount * 4 + 256);
  for (int64_t i = 0; i < kCount + 64; i++) memory->floats()[i] = float(i);
  Tensor part = over(*memory, {16}, 128);
  EXPECT_EQ((part + 0.5).to_vector<float>(), count_up(16, 32.5));
  EXPECT_EQ(interop::vulkan_memory(part).offset, 128u);
  BlobOptions strided = counting();
  strided.strides = {-1, 4};
  const auto from = [&](size_t offset) {
    return interop::from_blob(memory->lend(offset), {3, 2}, strided, {.device = device_});
  };
  EXPECT_ERROR(InvalidArgument, "8 bytes in front of byte 0", from(0));
  EXPECT_ERROR(InvalidArgument, "at byte 56 of the memory: begin at a multiple of 64", from(64));
  strided.strides = {1, 8};
  EXPECT_EQ(from(64).to_vector<float>(), (Floats{16, 24, 17, 25, 18, 26}));
}

TEST_F(InteropVulkan, LaysBuffersOverMemory) {
  open();
  const auto memory = buffer(4096);
  for (int64_t i = 0; i < 1024; i++) memory->floats()[i] = float(i);
  interop::VulkanMemory lent{.memory = memory->memory,
                             .size_bytes = memory->memory_bytes,
                             .type_index = memory->type_index,
                             .offset = 1024,
                             .mapped = memory->mapped};
  Tensor x = interop::from_blob(lent, {8, 8}, counting(), {.device = device_});
  EXPECT_EQ(interop::vulkan_memory(x).memory, memory->memory);
  EXPECT_EQ(interop::vulkan_memory(x).memory_offset, 1024u);
  EXPECT_NE(interop::vulkan_memory(x).buffer, memory->buffer);
  x.assign(x * 2);
  EXPECT_EQ(x.to_vector<float>(), count_up(64, 512, 2));
  EXPECT_EQ(memory->floats()[256], 512);
  EXPECT_EQ(memory->floats()[320], 320);
  x = Tensor();
  lent.offset = 8;
  EXPECT_ERROR(InvalidArgument, "at byte 8 of the memory: begin at a multiple of 64",
               interop::from_blob(lent, {8}, {}, {.device = device_}));
  lent.offset = 0;
  lent.type_index = 40;
  EXPECT_ERROR(InvalidArgument, "type 40 of memory",
               interop::from_blob(lent, {8}, {}, {.device = device_}));
  settle();
  EXPECT_EQ(returned_, 1);
}

TEST_F(InteropVulkan, RefusesBuffersThatItCannotUse) {
  open();
  const auto memory = buffer(64 * 4);
  const auto make = [&](const interop::VulkanBuffer& b, const Sizes& sizes) {
    return interop::from_blob(b, sizes, counting(), {.device = device_});
  };
  interop::VulkanBuffer lent = memory->lend();
  lent.usage &= ~VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  EXPECT_ERROR(InvalidArgument, "created without VK_BUFFER_USAGE_TRANSFER_SRC_BIT: add it",
               make(lent, {4}));
  lent.usage = 0;
  EXPECT_ERROR(InvalidArgument, "VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |", make(lent, {4}));
  EXPECT_ERROR(InvalidArgument, "at byte 4 of the memory: begin at a multiple of 64",
               make(memory->lend(4), {4}));
  EXPECT_ERROR(InvalidArgument,
               "of 260 bytes at byte 0 ends at byte 272 (of whole 16), and the memory has 256",
               make(memory->lend(), {65}));
  EXPECT_ERROR(InvalidArgument, "at byte 512 ends at byte 528", make(memory->lend(512), {4}));
  EXPECT_ERROR(InvalidArgument, "the buffer is null", make({}, {4}));
  EXPECT_ERROR(InvalidArgument, "CPU is not a Vulkan device",
               interop::from_blob(memory->lend(), {4}, {}, {.device = "CPU"}));
  const Tensor here = Tensor::ones({2}, {.device = "CPU"});
  EXPECT_ERROR(InvalidArgument, "vulkan_memory: the tensor is on CPU",
               interop::vulkan_memory(here));
  EXPECT_ERROR(InvalidArgument, "is not a Vulkan device", interop::wait_for(here, {}));
  const Tensor there = over(*memory, {4});
  EXPECT_ERROR(InvalidArgument, "the semaphore is null", interop::wait_for(there, {}));
  EXPECT_EQ(returned_, 0);  // none of those that were refused
}

TEST_F(InteropVulkan, WritesReadOnlyMemoryNever) {
  open();
  const auto memory = buffer();
  BlobOptions blob;
  blob.read_only = true;
  Tensor x = interop::from_blob(memory->lend(), {kCount}, blob, {.device = device_});
  EXPECT_ERROR(InvalidArgument, "read-only", x.assign(x + 1));
}

// ---- the device

TEST_F(InteropVulkan, NamesTheFeatureThatIsMissing) {
  app_ = std::make_unique<Application>(
      application::Options{.validation = true, .features = Features::None});
  EXPECT_ERROR(Unsupported, "created without timelineSemaphore: enable it at vkCreateDevice",
               interop::open_vulkan(app_->lend()));
}

TEST_F(InteropVulkan, NamesTheHandleThatIsMissing) {
  app_ = std::make_unique<Application>(application::Options{.validation = true});
  interop::VulkanApplication lent = app_->lend();
  lent.queue = VK_NULL_HANDLE;
  EXPECT_ERROR(InvalidArgument, "queue is null", interop::open_vulkan(lent));
  lent = app_->lend();
  lent.queue_family = 99;
  EXPECT_ERROR(InvalidArgument, "queues of family 99 cannot compute", interop::open_vulkan(lent));
  lent = app_->lend();
  lent.unlock_queue = nullptr;
  EXPECT_ERROR(InvalidArgument, "unlock_queue is missing", interop::open_vulkan(lent));
  lent = app_->lend();
  lent.api_version = 0;
  EXPECT_ERROR(InvalidArgument, "api_version is 0.0 and tuff needs 1.1",
               interop::open_vulkan(lent));
  lent = app_->lend();
  lent.extensions.clear();
  lent.exportable_memory = true;
  EXPECT_ERROR(Unsupported, "takes the extension VK_KHR_external_memory_fd",
               interop::open_vulkan(lent));
}

// Without addresses and small types: tuff falls back as it does on a driver that lacks them, and
// uses nothing that was not enabled (the layer would say so).
TEST_F(InteropVulkan, UsesWhatIsEnabledAlone) {
  open({.features = Features::Timeline});
  app_->needs.buffer_usage &= ~VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  const auto memory = buffer();
  for (int64_t i = 0; i < kCount; i++) memory->floats()[i] = float(i);
  Tensor x = interop::from_blob(memory->lend(256), {100}, {}, {.device = device_});
  EXPECT_EQ(interop::vulkan_memory(x).address, 0u);
  x.assign(x * 2 + 1);
  EXPECT_EQ(x.to_vector<float>(), count_up(100, 129, 2));
  EXPECT_EQ((x.cast(DType::F16).sum()).item(), (129 + 327) * 50);
}

TEST_F(InteropVulkan, ReadsTheStructuresOfVersions) {
  open({.by_version = true});
  const auto memory = buffer();
  for (int64_t i = 0; i < kCount; i++) memory->floats()[i] = float(i);
  Tensor x = over(*memory);
  EXPECT_NE(interop::vulkan_memory(x).address, 0u);  // bufferDeviceAddress was seen
  EXPECT_EQ((x + 1).cast(DType::F16).cast(DType::F32).to_vector<float>(), count_up(kCount, 1));
}

TEST_F(InteropVulkan, LocksTheQueue) {
  open();
  const auto memory = buffer();
  std::fill_n(memory->floats(), kCount, 1.0f);
  application::Shader shader(*app_, *memory);
  const VkSemaphore turns = app_->create_timeline();
  const uint64_t before = app_->locks;
  // The application submits while threads compute; the layer watches the queue's threads.
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++) {
    threads.emplace_back([&, t] {
      Tensor a = Tensor::full({64}, t, {.device = device_}).realize();
      for (int i = 0; i < 20; i++) a = (a + 1).realize();
      EXPECT_EQ(a.to_vector<float>(), Floats(64, float(t + 20)));
    });
  }
  for (uint64_t i = 1; i <= 20; i++) shader.run({kCount, 1, 1, 0}, {}, {turns, i});
  for (std::thread& t : threads) t.join();
  app_->wait({turns, 20});
  EXPECT_EQ(host_of(*memory), Floats(kCount, 21));
  EXPECT_GE(app_->locks, before + 40);
}

TEST_F(InteropVulkan, StaysOpenWhileTensorsHoldIt) {
  open();
  Tensor x = Tensor::rand({100}, {.device = device_}).realize();
  EXPECT_ERROR(InvalidArgument, device_ + " is still in use, by the memory of 1 tensors",
               interop::close_vulkan(device_));
  EXPECT_EQ((x * 0).sum().item(), 0);
  Jit twice([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; });
  for (int i = 0; i < 3; i++) twice({x});
  x = Tensor();
  EXPECT_ERROR(InvalidArgument, "is still in use", interop::close_vulkan(device_));
  EXPECT_ERROR(InvalidArgument, "VULKAN:0 is no application's device",
               interop::close_vulkan("VULKAN:0"));
}

// A captured graph on the application's device, bound to its buffers anew.
TEST_F(InteropVulkan, ReplaysOnTheApplicationsDevice) {
  open();
  const auto first = buffer(), second = buffer();
  for (int64_t i = 0; i < kCount; i++) first->floats()[i] = second->floats()[i] = float(i);
  const Tensor a = over(*first), b = over(*second);
  Jit step([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2 + 1}; });
  for (int i = 0; i < 6; i++) {
    const Tensor& y = step({i % 2 ? a : b})[0];
    EXPECT_EQ(y.to_vector<float>(), count_up(kCount, 1, 2));
  }
}

TEST_F(InteropVulkan, CopiesBetweenDevices) {
  open();
  const auto memory = buffer();
  Tensor x = over(*memory);
  x.assign(Tensor::arange(0, kCount, 1, {DType::F32, "CPU"}).to(device_));
  EXPECT_EQ((x + 1).to("CPU").to_vector<float>(), count_up(kCount, 1));
  app_->wait(interop::vulkan_ready(x));
  EXPECT_EQ(host_of(*memory), count_up(kCount));
}

// An application that ends its device first: what tuff still holds is of no use, and does no harm.
TEST(InteropVulkanEnd, TensorsOutliveAnAbandonedDevice) {
  auto app = std::make_unique<Application>();
  const std::string device = interop::open_vulkan(app->lend());
  Tensor x = Tensor::full({kCount}, 2, {.device = device}).realize(), y = x * 3;
  Jit twice([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; });
  for (int i = 0; i < 3; i++) twice({x});
  int returned = 0;
  {
    application::Buffer memory(*app, 256, app->needs.buffer_usage);
    Tensor lent = interop::from_blob(memory.lend(), {64}, {.deleter = [&](void*) { returned++; }},
                                     {.device = device});
    interop::abandon_vulkan(device);
    lent = Tensor();
    EXPECT_EQ(returned, 1);
  }
  app.reset();
  EXPECT_ERROR(DeviceLost, device + " was abandoned", x.to_vector<float>());
  EXPECT_ERROR(DeviceLost, device + " was abandoned", y.realize());
  EXPECT_ERROR(DeviceLost, device + " was abandoned", twice({x}));
  EXPECT_ERROR(DeviceLost, device + " was abandoned", interop::vulkan_ready(x));
  EXPECT_ERROR(DeviceLost, device + " was abandoned", x.copy_from(&returned, kCount * 4));
  EXPECT_ERROR(InvalidArgument, "no device", interop::abandon_vulkan(device));
}

// ---- memory for others

TEST_F(InteropVulkan, ExportsMemoryToAnotherDevice) {
  open();
  if (std::ranges::count(app_->lend().extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) == 0)
    GTEST_SKIP() << "the driver exports no memory";
  interop::close_vulkan(device_);
  open({.exportable_memory = true});
  Tensor x = Tensor::arange(0, kCount, 1, {DType::F32, device_}) * 2;
  const interop::VulkanMemoryFd out = interop::vulkan_memory_fd(x);
  ASSERT_GE(out.fd, 0);
  app_->wait(interop::vulkan_ready(x));
  Application other({.validation = true});
  VkExternalMemoryBufferCreateInfo shared{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  shared.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkBufferCreateInfo buffer_info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &shared};
  buffer_info.size = out.buffer_bytes;
  buffer_info.usage = other.needs.buffer_usage | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  VkBuffer imported = VK_NULL_HANDLE;
  application::check(other.vk.vkCreateBuffer(other.device, &buffer_info, nullptr, &imported),
                     "vkCreateBuffer");
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = other.needs.allocate_flags;
  VkImportMemoryFdInfoKHR import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, &flags};
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  import.fd = out.fd;
  VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &import};
  allocation.allocationSize = out.allocation_bytes;
  allocation.memoryTypeIndex = out.type_index;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  application::check(other.vk.vkAllocateMemory(other.device, &allocation, nullptr, &memory),
                     "vkAllocateMemory");
  application::check(other.vk.vkBindBufferMemory(other.device, imported, memory, 0),
                     "vkBindBufferMemory");
  {  // tuff on both devices, each with its own handles of the same memory
    const std::string theirs = interop::open_vulkan(other.lend());
    Tensor y = interop::from_blob(
        interop::VulkanBuffer{imported, out.buffer_bytes, buffer_info.usage, out.offset, memory},
        {kCount}, {}, {.device = theirs});
    EXPECT_EQ(y.to_vector<float>(), count_up(kCount, 0, 2));
    y.assign(y + 1);
    other.wait(interop::vulkan_ready(y));
    EXPECT_EQ((x + 0).to_vector<float>(), count_up(kCount, 1, 2));
    y = Tensor();
    interop::close_vulkan(theirs);
  }
  other.vk.vkDestroyBuffer(other.device, imported, nullptr);
  other.vk.vkFreeMemory(other.device, memory, nullptr);
}

TEST_F(InteropVulkan, RefusesExportsOfOtherMemory) {
  open();
  const Tensor x = Tensor::ones({4}, {.device = device_});
  EXPECT_ERROR(Unsupported, "open the device with exportable_memory", interop::vulkan_memory_fd(x));
  const auto memory = buffer();
  const Tensor lent = over(*memory);
  EXPECT_ERROR(Unsupported, "not made for export", interop::vulkan_memory_fd(lent));
}

// ---- memory of the process, and devices that tuff opened

struct Pages {
  explicit Pages(size_t bytes) : data(static_cast<float*>(std::aligned_alloc(4096, bytes))) {}
  ~Pages() { std::free(data); }
  float* data;
};

class InteropHost : public testing::TestWithParam<std::string> {};

TEST_P(InteropHost, KernelsWorkInPlace) {
  Pages pages(16384);
  for (int i = 0; i < 4096; i++) pages.data[i] = float(i);
  int returned = 0;
  const auto blob = [&](std::vector<int64_t> strides = {}) {
    return BlobOptions{.strides = std::move(strides),
                       .deleter =
                           [&](void* p) {
                             EXPECT_EQ(p, pages.data);
                             returned++;
                           },
                       .in_place = true};
  };
  const TensorOptions on{.device = GetParam()};
  const std::string refused =
      text_of<Unsupported>([&] { Tensor::from_blob(pages.data, {1000}, {.in_place = true}, on); });
  if (contains(refused, "VK_EXT_external_memory_host: copy it")) GTEST_SKIP() << refused;
  {
    Tensor x = Tensor::from_blob(pages.data, {1000}, blob(), on);
    EXPECT_TRUE(x.is_realized());
    EXPECT_EQ(x.device(), GetParam());
    x.assign(x * 2);
    x.realize();
    (void)x.sum().item();
    EXPECT_EQ(pages.data[999], 1998);
    EXPECT_EQ(pages.data[1000], 1000);
    pages.data[5] = -1;
    EXPECT_EQ((x + 0).to_vector<float>()[5], -1);
    const Tensor even = Tensor::from_blob(pages.data + 0, {10}, blob({2}), on);
    EXPECT_EQ((even + 0).to_vector<float>(), (Floats{0, 4, 8, 12, 16, 20, 24, 28, 32, 36}));
  }
  (void)(Tensor::ones({1}, on) + 1).item();
  EXPECT_EQ(returned, 2);
  EXPECT_ERROR(InvalidArgument, "begins at a multiple of",
               Tensor::from_blob(pages.data + 16, {10}, blob(), on));
  // Without in_place it is copied.
  Tensor copy = Tensor::from_blob(pages.data + 16, {4}, {}, on);
  EXPECT_EQ(copy.to_vector<float>(), (Floats{32, 34, 36, 38}));
  EXPECT_EQ(returned, 2);
}

TEST_P(InteropHost, ExportsTensorsOfItsOwnDevices) {
  const Tensor x = Tensor::ones({16}, {.device = GetParam()}), y = x + 1;
  const interop::VulkanRegion region = interop::vulkan_memory(y);
  EXPECT_NE(region.device, VkDevice(VK_NULL_HANDLE));
  EXPECT_NE(region.buffer, VkBuffer(VK_NULL_HANDLE));
  EXPECT_NE(region.memory, VkDeviceMemory(VK_NULL_HANDLE));
  EXPECT_EQ(region.size_bytes, 64u);
  const VulkanPoint point = interop::vulkan_ready(y);
  EXPECT_NE(point.semaphore, VkSemaphore(VK_NULL_HANDLE));
  EXPECT_GT(point.value, 0u);
}

TEST(InteropHostElsewhere, IsRefused) {
  Pages pages(4096);
  EXPECT_ERROR(Unsupported, "NULL: its kernels cannot work on memory of the process",
               Tensor::from_blob(pages.data, {4}, {.in_place = true}, {.device = "NULL"}));
  std::fill_n(pages.data, 4, 1.0f);
  Tensor here = Tensor::from_blob(pages.data, {4}, {.in_place = true}, {.device = "CPU"});
  here.assign(here + 1);
  EXPECT_EQ(here.to_vector<float>(), Floats(4, 2));
  EXPECT_EQ(pages.data[3], 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, InteropHost, testing::ValuesIn(vulkan_devices()),
                         [](const auto& info) { return named_by_device(info); });

}  // namespace
}  // namespace tuff::test
