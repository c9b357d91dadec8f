// Device::create_signal and Device::copy_queue, on a device of every kind of this machine.
#include <gtest/gtest.h>

#include <algorithm>

#include "devices/registry.h"

namespace tuff::devices {
namespace {

using namespace hcq;

constexpr uint64_t kLongNs = 5'000'000'000;

std::vector<std::string> kinds() {
  std::vector<std::string> out;
  for (const DeviceKind& k : device_kinds()) {
    const std::vector<Candidate> found = k.probe();
    if (std::any_of(found.begin(), found.end(), [](const Candidate& c) { return c.usable; }))
      out.push_back(k.kind);
  }
  return out;
}

std::unique_ptr<Device> open(const std::string& kind) {
  for (const DeviceKind& k : device_kinds())
    if (kind == k.kind) return k.open("");
  return nullptr;
}

std::vector<std::string> kinds_with_a_copy_queue() {
  std::vector<std::string> out;
  for (const std::string& kind : kinds())
    if (open(kind)->copy_queue() != nullptr) out.push_back(kind);
  return out;
}

class Signals : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> device = open(GetParam());
  Queue& queue = device->compute_queue();
  // A stream that does nothing depends on nothing.
  bool keeps_order() const { return GetParam() != "NULL"; }

  static CommandList relay(Signal& from, Signal& to) {
    CommandList list;
    list.slot_count = 2;
    list.commands.push_back({WaitCmd{&from, 0}, {}, ""});
    list.commands.push_back({SignalCmd{&to, 1}, {}, ""});
    return list;
  }
};

TEST_P(Signals, BeginWhereTheyAreToldAndRise) {
  const std::unique_ptr<Signal> zero = device->create_signal(), five = device->create_signal(5);
  EXPECT_EQ(zero->value(), 0u);
  EXPECT_EQ(five->value(), 5u);
  EXPECT_TRUE(five->wait(5, 0));
  EXPECT_FALSE(five->wait(6, 1'000'000));
  five->set(uint64_t{7} << 40);
  EXPECT_EQ(five->value(), uint64_t{7} << 40);
  EXPECT_TRUE(five->wait(6, 0));
}

TEST_P(Signals, OrderTheHostAndAQueue) {
  const std::unique_ptr<Signal> gate = device->create_signal(3), done = device->create_signal(8);
  const auto encoded = queue.encode(relay(*gate, *done), EncodeUse::Replay);
  for (uint64_t round = 1; round <= 5; round++) {
    const uint64_t slots[] = {3 + round, 8 + round};
    const uint64_t value = queue.submit(*encoded, slots);
    if (keeps_order()) {
      EXPECT_FALSE(done->wait(8 + round, 1'000'000)) << "before the gate";
    }
    gate->set(3 + round);
    EXPECT_TRUE(done->wait(8 + round, kLongNs));
    queue.wait(value);
    EXPECT_EQ(done->value(), 8 + round);
  }
}

using SignalsOfTwoQueues = Signals;
TEST_P(SignalsOfTwoQueues, OrderThem) {
  Queue* copies = device->copy_queue();
  const std::unique_ptr<Signal> there = device->create_signal(), back = device->create_signal();
  const auto ping = copies->encode(relay(*back, *there), EncodeUse::Replay);
  const auto pong = queue.encode(relay(*there, *back), EncodeUse::Replay);
  for (uint64_t round = 1; round <= 20; round++) {
    const uint64_t from_back[] = {round - 1, round}, from_there[] = {round, round};
    const uint64_t compute = queue.submit(*pong, from_there);
    const uint64_t copy = copies->submit(*ping, from_back);
    queue.wait(compute);
    copies->wait(copy);
    EXPECT_EQ(there->value(), round);
    EXPECT_EQ(back->value(), round);
  }
  EXPECT_EQ(copies->timeline().value(), copies->last_submitted());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Signals, testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param; });

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SignalsOfTwoQueues);
INSTANTIATE_TEST_SUITE_P(Kinds, SignalsOfTwoQueues, testing::ValuesIn(kinds_with_a_copy_queue()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tuff::devices
