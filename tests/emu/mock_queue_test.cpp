// What the emulated kernel driver refuses of queues, with the kernel's errno, and the nearest
// neighbour that is taken.
#include <functional>
#include <set>

#include "emu/mock_scene.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

struct QueueCase {
  const char* what;
  int error;
  std::function<void(MockScene&, CreateQueue&)> refused, taken;
};
using Scene = MockScene;
using Request = CreateQueue;

void nothing(Scene&, Request&) {}

// Of queues of any type.
const std::vector<QueueCase> kCases = {
    {"percentage", EINVAL, [](Scene&, Request& a) { a.queue_percentage = 101; },
     [](Scene&, Request& a) { a.queue_percentage = 100; }},
    {"priority", EINVAL, [](Scene&, Request& a) { a.queue_priority = 16; },
     [](Scene&, Request& a) { a.queue_priority = 15; }},
    {"type", 524, [](Scene&, Request& a) { a.queue_type = 3; }, nothing},
    {"GPU", EINVAL, [](Scene&, Request& a) { a.gpu_id += 1; }, nothing},
    {"GPU without address space", ESRCH, [](Scene& s, Request& a) { a.gpu_id = s.gpu_id(1); },
     nothing},
    {"ring size", EINVAL, [](Scene&, Request& a) { a.ring_size = 65536 - 1024; }, nothing},
    {"ring shorter than its mapping", EINVAL, [](Scene&, Request& a) { a.ring_size /= 2; },
     [](Scene& s, Request& a) {
       a.ring_size /= 2;
       a.ring_base_address = s.mapped(a.ring_size, kSystemFlags).address;
     }},
    {"ring longer than its mapping", EINVAL, [](Scene&, Request& a) { a.ring_size *= 2; }, nothing},
    {"ring in the middle of a mapping", EINVAL,
     [](Scene& s, Request& a) {
       a.ring_base_address = s.mapped(65536 + 4096, kSystemFlags).address + 4096;
     },
     nothing},
    {"ring not mapped", EINVAL,
     [](Scene& s, Request& a) { a.ring_base_address = s.allocate(65536, kSystemFlags).address; },
     nothing},
    {"write pointer in two pages", EINVAL,
     [](Scene& s, Request& a) { a.write_pointer_address = s.mapped(8192, kSystemFlags).address; },
     [](Scene& s, Request& a) { a.write_pointer_address = s.mapped(4096, kSystemFlags).address; }},
    {"read pointer in two pages", EINVAL,
     [](Scene& s, Request& a) { a.read_pointer_address = s.mapped(8192, kSystemFlags).address; },
     [](Scene& s, Request& a) { a.read_pointer_address = s.mapped(4096, kSystemFlags).address; }},
    {"write pointer not aligned", EINVAL, [](Scene&, Request& a) { a.write_pointer_address += 4; },
     [](Scene&, Request& a) { a.write_pointer_address += 8; }},
    {"read pointer nowhere", EINVAL, [](Scene&, Request& a) { a.read_pointer_address = 0; },
     nothing},
};

// Of compute queues alone.
const std::vector<QueueCase> kComputeCases = {
    {"EOP size", EINVAL, [](Scene&, Request& a) { a.eop_buffer_size = 8192; }, nothing},
    {"EOP mapping", EINVAL,
     [](Scene& s, Request& a) { a.eop_buffer_address = s.mapped(8192, kVramFlags).address; },
     // Not every generation needs one; what misses it is RELEASE_MEM.
     [](Scene&, Request& a) { a.eop_buffer_address = 0; }},
    {"control stack larger", EINVAL, [](Scene&, Request& a) { a.ctl_stack_size += 4096; }, nothing},
    {"control stack smaller", EINVAL, [](Scene&, Request& a) { a.ctl_stack_size -= 4096; },
     nothing},
    {"save area smaller", EINVAL, [](Scene&, Request& a) { a.ctx_save_restore_size -= 4096; },
     nothing},
    {"save area larger than its mapping", EINVAL,
     [](Scene&, Request& a) { a.ctx_save_restore_size += 4096; },
     [](Scene& s, Request& a) {
       a.ctx_save_restore_size += 4096;
       a.ctx_save_restore_address = s.mapped(a.ctx_save_restore_size + 98304, kVramFlags).address;
     }},
};

void check_cases(QueueType type, const std::vector<QueueCase>& cases) {
  MockScene scene;
  scene.acquire();
  for (const QueueCase& c : cases) {
    CreateQueue a = scene.queue_request(type);
    c.refused(scene, a);
    EXPECT_EQ(scene.call(kCreateQueue, a), -c.error) << c.what;
    const auto findings = scene.take_findings();
    ASSERT_EQ(findings.size(), 1u) << c.what;
    EXPECT_EQ(findings[0].kind, FindingKind::BadCall);
    a = scene.queue_request(type);
    c.taken(scene, a);
    EXPECT_EQ(scene.call(kCreateQueue, a), 0) << c.what;
    EXPECT_TRUE(scene.take_findings().empty()) << c.what;
    EXPECT_EQ(scene.destroy_queue(a.queue_id), 0);
  }
}

TEST(MockQueue, ComputeQueuesAreChecked) { check_cases(QueueType::Compute, kCases); }
TEST(MockQueue, CopyQueuesAreChecked) { check_cases(QueueType::Sdma, kCases); }
TEST(MockQueue, SaveAreasAreChecked) { check_cases(QueueType::Compute, kComputeCases); }
TEST(MockQueue, SaveAreasOfAqlAreChecked) { check_cases(QueueType::ComputeAql, kComputeCases); }

TEST(MockQueue, WhatAQueueUsesIsHeld) {
  MockScene scene;
  scene.acquire();
  const CreateQueue a = scene.queue_request(QueueType::Compute);
  const auto ring = scene.mapped(65536, kSystemFlags);
  CreateQueue b = a;
  b.ring_base_address = ring.address;
  ASSERT_EQ(scene.call(kCreateQueue, b), 0);
  EXPECT_EQ(scene.unmap(ring), -EBUSY);
  EXPECT_EQ(scene.free(ring), -EBUSY);
  EXPECT_EQ(scene.destroy_queue(b.queue_id), 0);
  EXPECT_EQ(scene.destroy_queue(b.queue_id), -EINVAL);
  EXPECT_EQ(scene.unmap(ring), 0);
  EXPECT_EQ(scene.free(ring), 0);
  // A queue that was refused in the middle holds nothing.
  const auto again = scene.mapped(65536, kSystemFlags);
  CreateQueue c = a;
  c.ring_base_address = again.address;
  c.ctl_stack_size += 1;
  EXPECT_EQ(scene.call(kCreateQueue, c), -EINVAL);
  EXPECT_EQ(scene.unmap(again), 0);
}

TEST(MockQueue, NumbersAreLimited) {
  MockScene scene;
  scene.acquire();
  std::set<uint64_t> doorbells;
  const CreateQueue copy = scene.queue_request(QueueType::Sdma);
  for (uint32_t i = 0; i < 12; ++i) {
    CreateQueue a = copy;
    ASSERT_EQ(scene.call(kCreateQueue, a), 0);
    EXPECT_TRUE(doorbells.insert(a.doorbell_offset).second);
  }
  CreateQueue a = copy;
  EXPECT_EQ(scene.call(kCreateQueue, a), -ENOMEM);
  const CreateQueue compute = scene.queue_request(QueueType::Compute);
  for (uint32_t i = 12; i < 127; ++i) {
    a = compute;
    ASSERT_EQ(scene.call(kCreateQueue, a), 0);
    EXPECT_TRUE(doorbells.insert(a.doorbell_offset).second);
  }
  a = compute;
  EXPECT_EQ(scene.call(kCreateQueue, a), -ENOSPC);
  EXPECT_TRUE(scene.take_findings().empty());
  // The number of a queue that has gone is given again, and its doorbell is as new.
  EXPECT_EQ(scene.destroy_queue(40), 0);
  EXPECT_EQ(scene.call(kCreateQueue, a), 0);
  EXPECT_EQ(a.queue_id, 40u);
}

TEST(MockQueue, ADoorbellIsNewAgainWithItsQueue) {
  MockScene scene;
  scene.acquire();
  CreateQueue a = scene.queue(QueueType::Compute);
  uint64_t* bell = scene.doorbell(a);
  scene.ring(bell, 17);
  EXPECT_EQ(scene.destroy_queue(a.queue_id), 0);
  EXPECT_EQ(scene.call(kCreateQueue, a), 0);
  EXPECT_EQ(*scene.doorbell(a), ~uint64_t(0));
}

// Both kinds of pointers in one page, as amd_queue_t has them, and one page for two queues.
TEST(MockQueue, QueuesMayShareAPageOfPointers) {
  MockScene scene;
  scene.acquire();
  CreateQueue a = scene.queue_request(QueueType::Sdma), b = scene.queue_request(QueueType::Sdma);
  b.read_pointer_address = a.read_pointer_address + 8;
  b.write_pointer_address = a.write_pointer_address + 8;
  EXPECT_EQ(scene.call(kCreateQueue, a), 0);
  EXPECT_EQ(scene.call(kCreateQueue, b), 0);
  EXPECT_EQ(scene.destroy_queue(a.queue_id), 0);
  EXPECT_EQ(scene.destroy_queue(b.queue_id), 0);
}

}  // namespace
}  // namespace tuff::emu::amd
