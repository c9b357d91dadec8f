// A replay allocates nothing: this executable counts operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "compiled.h"
#include "devices/cpu/cpu.h"
#include "devices/null/null.h"
#include "hcq/graph.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0};
void* counted(std::size_t size) {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
  void* p = std::malloc(size ? size : 1);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace tuff::devices {
namespace {

using namespace hcq;

int allocations_of_replays(Device& device, const render::Binary& binary) {
  auto programs = device.load(std::span(&binary, 1));
  Span out = device.allocator().allocate(64, MemoryKind::Device),
       in = device.allocator().allocate(64, MemoryKind::Device);
  LaunchOperand input{{}, 0, 16, 4, true, false}, fixed{out, -1, 0, 64, false, true};
  std::vector<GraphNode> nodes(
      50, Launch{programs[0].get(), {input, fixed}, {{0, 0}}, {1, 1, 1}, {1, -1, -1}});
  CommandGraph graph(device, nodes, 1, 2, 2);
  uint64_t address[] = {in.address()}, last = 0;
  int64_t scalars[] = {3, 1};
  graph.replay(address, scalars);
  allocations = 0;
  counting = true;
  for (int i = 0; i < 1000; ++i) last = graph.replay(address, scalars);
  device.compute_queue().wait(last);
  counting = false;
  return allocations;
}

TEST(Replay, AllocatesNothingOnCpu) {
  auto object = compile(
      "void k(const void* a, unsigned x, unsigned y, unsigned z) { **((float**)a + 1) = x; }");
  auto device = cpu_open("");
  EXPECT_EQ(allocations_of_replays(*device, binary_of(object, "k", 2, 1)), 0);
}

TEST(Replay, AllocatesNothingOnNull) {
  auto device = null_open("");
  EXPECT_EQ(allocations_of_replays(*device, binary_of({}, "k", 2, 1)), 0);
}

TEST(Replay, TheCounterCounts) {
  allocations = 0;
  counting = true;
  auto p = std::make_unique<int>(3);
  counting = false;
  EXPECT_GE(allocations.load(), *p - 2);
}

}  // namespace
}  // namespace tuff::devices
