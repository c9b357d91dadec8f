// The same in memory of Vulkan: what the host reads or frees is the address sanitizer's to find,
// handles are the validation layer's, whose messages the tests of sharing count.
#include "faults.h"

#include <tuff/interop/vulkan.h>

#include "vulkan_sharing/application.h"

namespace tuff::test {
namespace {

using application::Application;
using application::Buffer;

class VulkanFaults : public Faults {};

struct Opened {
  Application app{{.validation = true}};
  std::string device = interop::open_vulkan(app.lend());
  TensorOptions on{.device = device};
  std::unique_ptr<Buffer> buffer() {
    return std::make_unique<Buffer>(app, 4000, app.needs.buffer_usage);
  }
};

TEST_F(VulkanFaults, PagesThatTheirOwnerFreedTooSoonAreFound) {
  const auto fault = [] {
    void* pages = std::aligned_alloc(4096, 4096);
    const Tensor t = Tensor::from_blob(pages, {1000}, {.in_place = true}, {.device = "VULKAN"});
    std::free(pages);
    (void)t.to_vector<float>();
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: heap-use-after-free");
}

TEST_F(VulkanFaults, MappedMemoryThatWasFreedTooSoonIsFound) {
  const auto fault = [] {
    Opened o;
    std::unique_ptr<Buffer> memory = o.buffer();
    interop::VulkanBuffer lent = memory->lend();
    lent.mapped = memory->mapped;
    const Tensor t = interop::from_blob(lent, {1000}, {}, o.on);
    memory.reset();
    (void)t.to_vector<float>();
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: heap-use-after-free");
}

TEST_F(VulkanFaults, ADeleterThatIsCalledTwiceIsFound) {
  const auto fault = [] {
    Opened o;
    Buffer* memory = o.buffer().release();
    const BlobOptions blob{.deleter = [memory](void*) { delete memory; }};
    (void)interop::from_blob(memory->lend(), {1000}, blob, o.on);
    settle(o.on);
    blob.deleter(nullptr);
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: (heap-use-after-free|attempting double-free)");
}

TEST_F(VulkanFaults, ABufferThatWasDestroyedTooSoonIsFound) {
  const auto fault = [] {
    Opened o;
    std::unique_ptr<Buffer> memory = o.buffer();
    const Tensor t = interop::from_blob(memory->lend(), {1000}, {}, o.on);
    memory.reset();
    (void)t.to_vector<float>();  // copied by the device
    std::_Exit(0);
  };
  EXPECT_DEATH(fault(), "validation: .*VkBuffer");
}

TEST_F(VulkanFaults, AHandleThatIsKeptIsFound) {
  const auto fault = [] {
    {
      Opened o;
      const interop::VulkanBuffer lent = o.buffer().release()->lend();
      (void)interop::from_blob(lent, {1000}, {}, o.on);
      interop::close_vulkan(o.device);
    }
    std::_Exit(Application::messages() > 0 ? 3 : 0);
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(3), "validation: .*VkBuffer");
}

TEST_F(VulkanFaults, ATensorThatIsNeverReleasedIsFound) {
  const auto fault = [] {
    Opened o;
    const std::unique_ptr<Buffer> memory = o.buffer();
    forget(interop::from_blob(memory->lend(), {1000}, {}, o.on));
    interop::abandon_vulkan(o.device);
    look_for_leaks();
  };
  EXPECT_DEATH(fault(), kForgotten);
}

}  // namespace
}  // namespace tuff::test
