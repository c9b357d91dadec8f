// Memory of one GPU that queues of another reach: which do, what has to be shared first, what the
// kernel is asked for, and who waits for a GPU that is lost.
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include <tuff/error.h>

#include "devices/amd/amd_device.h"
#include "emu/amd/mock.h"
#include "scripted_kernel.h"

namespace tuff::devices::amd {
namespace {

using namespace hcq;
using Words = std::vector<uint32_t>;

// An emulated machine of two GPUs; a finding is a failure.
struct Machine {
  explicit Machine(emu::amd::MockOptions options = {}) {
    options.report = [](const emu::Finding& f) { ADD_FAILURE() << to_text(f); };
    iface.kernel = emu::amd::make_mock(options);
    iface.emulated = true;
  }
  ~Machine() { iface.process.reset(); }
  AmdIface iface;
};

Words counting(size_t count, uint32_t from) {
  Words w(count);
  std::iota(w.begin(), w.end(), from);
  return w;
}

Span upload(Device& d, const Words& values) {
  const Span s = d.allocator().allocate(4 * values.size(), MemoryKind::Device);
  d.upload(s, values.data());
  return s;
}

Words download(Device& d, const Span& s) {
  Words out(s.size_bytes / 4);
  d.download(s, out.data());
  return out;
}

CommandList copy(const Span& dst, const Span& src) {
  CommandList list;
  list.commands = {{CopyCmd{dst, src}, {{src, false}, {dst, true}}, "copy"}};
  return list;
}

std::vector<emu::amd::MockOptions> settings() {
  emu::amd::MockOptions threads, seeded;
  seeded.seed = 7;
  return {threads, seeded};
}

TEST(AmdPeers, ReachEachOtherWhereTheKernelListsALink) {
  for (const bool large_bar : {true, false}) {
    emu::amd::MockOptions options;
    options.large_bar = large_bar;
    Machine m(options), another(options);
    const auto a = amd_open(m.iface, "0"), b = amd_open(m.iface, "1");
    const auto elsewhere = amd_open(another.iface, "1");
    EXPECT_EQ(hcq::reaches(*a, *b), large_bar);
    EXPECT_EQ(hcq::reaches(*b, *a), large_bar);
    EXPECT_FALSE(hcq::reaches(*a, *a));
    EXPECT_FALSE(hcq::reaches(*a, *elsewhere)) << "a GPU of another process";
    const Span s = b->allocator().allocate(64, MemoryKind::Device);
    if (!large_bar) {
      EXPECT_THROW(hcq::share(*b, *s.block, *a), Unsupported);
    }
    EXPECT_EQ(s.host(), nullptr) << "sharing makes nothing visible to the host";
  }
}

TEST(AmdPeers, CopyInBothDirectionsByBothQueues) {
  for (const auto& options : settings()) {
    Machine m(options);
    const auto a = amd_open(m.iface, "0"), b = amd_open(m.iface, "1");
    uint32_t first = 1;
    for (Device* by : {a.get(), b.get()}) {
      for (Queue* queue : {&by->compute_queue(), by->copy_queue()}) {
        const Words values = counting(70000, first += 100000);
        const Span src = upload(*a, values), dst = upload(*b, Words(values.size(), 7));
        Device& owner = by == a.get() ? *b : *a;
        hcq::share(owner, *(by == a.get() ? dst : src).block, *by);
        queue->wait(queue->submit_once(queue->encode(copy(dst, src), EncodeUse::Once)));
        EXPECT_EQ(download(*b, dst), values);
      }
    }
  }
}

// Waits for the other's timeline at both ends, and nothing else, order a round trip.
TEST(AmdPeers, QueuesWaitForEachOthersTimelines) {
  for (const auto& options : settings()) {
    Machine m(options);
    const auto a = amd_open(m.iface, "0"), b = amd_open(m.iface, "1");
    const Span x = upload(*a, counting(5000, 0)), y = upload(*b, Words(5000, 1));
    hcq::share(*b, *y.block, *a);
    CommandList out = copy(y, x), back = copy(x, y);
    for (CommandList* list : {&out, &back}) {
      Queue& other = list == &out ? b->compute_queue() : *a->copy_queue();
      list->slot_count = 1;
      list->commands.insert(list->commands.begin(), {WaitCmd{&other.timeline(), 0}, {}, ""});
    }
    hcq::share(*a, *x.block, *b);
    const auto outs = a->copy_queue()->encode(out, EncodeUse::Replay);
    const auto backs = b->compute_queue().encode(back, EncodeUse::Replay);
    for (uint32_t i = 0; i < 5; ++i) {
      const Words values = counting(5000, 1000 * i);
      a->upload(x, values.data());
      const uint64_t before[] = {b->compute_queue().last_submitted()};
      const uint64_t there[] = {a->copy_queue()->submit(*outs, before)};
      const uint64_t done = b->compute_queue().submit(*backs, there);
      b->compute_queue().wait(done);
      a->copy_queue()->wait_idle();
      EXPECT_EQ(download(*a, x), values);
      EXPECT_EQ(download(*b, y), values);
    }
  }
}

TEST(AmdPeers, MemoryThatIsNotSharedIsAFault) {
  emu::amd::MockOptions options;
  options.report = [](const emu::Finding&) {};
  AmdIface iface;
  iface.kernel = emu::amd::make_mock(options);
  {
    const auto a = amd_open(iface, "0"), b = amd_open(iface, "1");
    const Span x = upload(*a, Words(100, 1)), y = upload(*b, Words(100, 2));
    Queue& queue = *a->copy_queue();
    EXPECT_THROW(queue.wait(queue.submit_once(queue.encode(copy(y, x), EncodeUse::Once))),
                 DeviceLost);
    EXPECT_TRUE(a->lost());
    EXPECT_EQ(download(*b, y), Words(100, 2));
  }
  iface.process.reset();
}

TEST(AmdPeers, AFaultInAnothersMemoryNamesIt) {
  emu::amd::MockOptions options;
  options.report = [](const emu::Finding&) {};
  AmdIface iface;
  iface.kernel = emu::amd::make_mock(options);
  {
    const auto a = amd_open(iface, "0"), b = amd_open(iface, "1");
    const Span x = upload(*a, Words(2048, 1));
    const MemoryBlock block = b->map_block(1 << 20, MemoryKind::Device);
    hcq::share(*b, block, *a);
    b->unmap_block(block);
    Queue& queue = a->compute_queue();
    const Span gone{&block, 4096, 8192};
    try {
      queue.wait(queue.submit_once(queue.encode(copy(gone, x), EncodeUse::Once)));
      ADD_FAILURE() << "no error";
    } catch (const DeviceLost& e) {
      EXPECT_NE(std::string(e.what()).find(
                    "4096 bytes into a block of 1048576 bytes that AMD:1 has shared"),
                std::string::npos)
          << e.what();
    }
  }
  iface.process.reset();
}

// What waits for a lost device goes on once it is let go; what was lost stays so.
TEST(AmdPeers, AQueueThatWaitsForALostDeviceIsLetGo) {
  for (const auto& options : settings()) {
    Machine m(options);
    const auto a = amd_open(m.iface, "0"), b = amd_open(m.iface, "1");
    const Span x = upload(*b, Words(100, 1)), y = upload(*b, Words(100, 2));
    const uint64_t reached = a->compute_queue().last_submitted();
    CommandList list = copy(y, x);
    list.slot_count = 1;
    list.commands.insert(list.commands.begin(),
                         {WaitCmd{&a->compute_queue().timeline(), 0}, {}, ""});
    const uint64_t slots[] = {reached + 2};
    const uint64_t value =
        b->compute_queue().submit_once(b->compute_queue().encode(list, EncodeUse::Once), slots);
    EXPECT_FALSE(b->compute_queue().timeline().wait(value, 20'000'000));
    a->declare_lost("AMD:0: gone");
    a->compute_queue().release_waiters(reached + 1);
    EXPECT_FALSE(b->compute_queue().timeline().wait(value, 20'000'000)) << "not far enough";
    a->compute_queue().release_waiters(reached + 2);
    a->compute_queue().release_waiters(reached + 1);
    b->compute_queue().wait(value);
    EXPECT_EQ(download(*b, y), Words(100, 1));
    EXPECT_TRUE(a->compute_queue().passed(reached));
    EXPECT_FALSE(a->compute_queue().passed(reached + 1));
    EXPECT_THROW(a->compute_queue().wait(reached + 2), DeviceLost);
  }
}

// ---- what the kernel is asked for

struct Scripted {
  Scripted() {
    kernel->add_cpu();
    for (uint32_t node : {1, 2}) {
      kernel->add_gpu(navi31_properties(), 24ull << 30, 1);
      kernel->files[fmt::format(
          "/sys/devices/virtual/kfd/kfd/topology/nodes/{}/p2p_links/0/properties", node)] =
          fmt::format("type 2\nnode_from {}\nnode_to {}\n", node, 3 - node);
    }
    iface.kernel = kernel;
  }
  std::shared_ptr<ScriptedKernel> kernel = std::make_shared<ScriptedKernel>();
  AmdIface iface;
};

size_t lines_with(const std::string& text, const std::string& wanted) {
  size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) count += line.starts_with(wanted);
  return count;
}

TEST(AmdPeers, ABlockIsMappedOnceAndUnmappedFromBoth) {
  Scripted s;
  {
    const auto a = amd_open(s.iface, "0"), b = amd_open(s.iface, "1");
    ASSERT_TRUE(hcq::reaches(*a, *b));
    const size_t before = lines_with(s.kernel->log(), "MAP object");
    const MemoryBlock block = b->map_block(1 << 20, MemoryKind::Device);
    EXPECT_EQ(lines_with(s.kernel->log(), "MAP object") - before, 1u);
    for (int i = 0; i < 3; ++i) hcq::share(*b, block, *a);
    EXPECT_EQ(lines_with(s.kernel->log(), "MAP object") - before, 2u);
    b->unmap_block(block);
    EXPECT_TRUE(s.kernel->misuse.empty());
  }
  s.iface.process.reset();
  EXPECT_TRUE(s.kernel->misuse.empty());
}

}  // namespace
}  // namespace tuff::devices::amd
