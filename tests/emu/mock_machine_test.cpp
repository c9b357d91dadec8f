// The emulated machine as a whole: bring-up as a driver does it, life and death of what it opens.
#include <fcntl.h>
#include <sys/mman.h>

#include "emu/mock_scene.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

TEST(MockMachine, BringUpAsADriverDoesIt) {
  MockScene scene;
  GetVersion version{};
  ASSERT_EQ(scene.call(kGetVersion, version), 0);
  EXPECT_EQ(version.major_version, 1u);
  EXPECT_GE(version.minor_version, 14u);
  scene.acquire(0);
  scene.acquire(1);
  scene.make_event_page();
  EXPECT_NE(scene.event(EventType::Signal), 0u);
  for (QueueType type : {QueueType::Compute, QueueType::Sdma, QueueType::ComputeAql}) {
    for (uint32_t gpu : {0u, 1u}) {
      const CreateQueue queue = scene.queue(type, gpu);
      EXPECT_EQ(*scene.doorbell(queue), ~uint64_t(0));
      EXPECT_EQ(scene.destroy_queue(queue.queue_id), 0);
    }
  }
  EXPECT_TRUE(scene.take_findings().empty());
}

}  // namespace
}  // namespace tuff::emu::amd
