// The NULL device: signals advance, memory is memory, programs load, graphs replay.
#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "devices/null/null.h"
#include "hcq/graph.h"

namespace tuff::devices {
namespace {

using namespace hcq;

TEST(Null, IsListedAndNeverTheDefault) {
  std::vector<Candidate> found = null_probe();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].usable);
  EXPECT_EQ(found[0].rank, 0);
  EXPECT_THROW(null_open("7"), InvalidArgument);
}

TEST(Null, RegistryRowsOpen) {
  bool seen = false;
  for (const DeviceKind& k : device_kinds())
    if (std::string(k.kind) == "NULL") {
      seen = true;
      EXPECT_EQ(k.open("")->name(), "NULL");
    }
  EXPECT_TRUE(seen);
}

TEST(Null, MemoryIsMemory) {
  auto device = null_open("");
  Span a = device->allocator().allocate(100, MemoryKind::Device),
       b = device->allocator().allocate(100, MemoryKind::Device);
  std::vector<char> data(100, 'x'), back(100);
  device->upload(a, data.data());
  CommandList list;
  list.commands.push_back({CopyCmd{b, a}, {}, "copy"});
  Queue& queue = device->compute_queue();
  queue.wait(queue.submit_once(queue.encode(list, EncodeUse::Once)));
  device->download(b, back.data());
  EXPECT_EQ(data, back);
}

TEST(Null, SignalsTimestampsAndHostCallsHappen) {
  auto device = null_open("");
  int calls = 0;
  CommandList list;
  list.timestamp_count = 1;
  list.commands.push_back({HostCallCmd{[](void* p) { ++*static_cast<int*>(p); }, &calls}, {}, ""});
  list.commands.push_back({TimestampCmd{0}, {}, ""});
  Queue& queue = device->compute_queue();
  auto encoded = queue.encode(list, EncodeUse::Replay);
  uint64_t first = queue.submit(*encoded, {}), second = queue.submit(*encoded, {});
  EXPECT_EQ(second, first + 1);
  queue.wait(second);
  EXPECT_EQ(calls, 2);
  EXPECT_GT(queue.timestamps(*encoded)[0], 0u);
}

TEST(Null, GraphsReplayAndPatchTheirArguments) {
  auto device = null_open("");
  render::Binary binary;
  binary.name = "k";
  binary.args = {1, 1};
  auto programs = device->load(std::span(&binary, 1));
  CommandGraph graph(
      *device, {Launch{programs[0].get(), {LaunchOperand{{}, 0, 8, 64, true, false}}, {{0, 0}}}},
      1, 1, 1);
  uint64_t input[] = {0x1000};
  int64_t scalar[] = {-3};
  device->compute_queue().wait(graph.replay(input, scalar));
  const std::byte* args = std::get<DispatchCmd>(graph.commands().commands.back().body).args.host();
  uint64_t address;
  int32_t value;
  std::memcpy(&address, args, 8);
  std::memcpy(&value, args + 8, 4);
  EXPECT_EQ(address, 0x1008u);
  EXPECT_EQ(value, -3);
}

}  // namespace
}  // namespace tuff::devices
