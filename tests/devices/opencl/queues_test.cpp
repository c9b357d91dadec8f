// What is particular to OpenCL's kinds of queues: random lists give what their order says on each,
// commands wait for those alone that they need, queues wait for one another without the host's
// help, and command buffers are recorded once, hold what does not change, and may be refused.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <tuff/error.h>

#include "devices/opencl/device_fixture.h"
#include "hcq/order.h"

namespace tuff::devices::opencl {
namespace {

using namespace test;

constexpr size_t kSlots = 12, kWords = 32;

// A list over slots of words, and what it makes of them.
class OpenclLists : public DeviceFixture, public testing::WithParamInterface<Setting> {
 protected:
  OpenclLists() : DeviceFixture(GetParam()) {}
  void SetUp() override {
    DeviceFixture::SetUp();
    memory_ = upload(counting(kSlots * kWords, 7));
    // Oclgrind runs commands in the thread that flushes them, before that goes on to call the host.
    calls_host_ = device->info().driver.find("Oclgrind") == std::string::npos;
  }
  Span slot(size_t i) const { return memory_.sub(4 * kWords * i, 4 * kWords); }

  using Effect = std::function<void(Words&)>;
  static size_t at(size_t slot, size_t word) { return slot * kWords + word; }

  void add_random(std::mt19937& rng) {
    const size_t from = rng() % kSlots, to = (from + 1 + rng() % (kSlots - 1)) % kSlots;
    const auto n = int32_t(rng() % 1000);
    Command c;
    Effect effect;
    switch (rng() % (calls_host_ ? 8 : 7)) {
      case 0:
        c = copy(slot(to), slot(from));
        effect = [=](Words& w) { std::copy_n(&w[at(from, 0)], kWords, &w[at(to, 0)]); };
        break;
      case 1:
        c = dispatch(kFill, {slot(to)}, n, 1);
        effect = [=](Words& w) { std::fill_n(&w[at(to, 0)], kWords, uint32_t(n)); };
        break;
      case 7: {
        static int calls;
        c.body = HostCallCmd{[](void* count) { ++*static_cast<int*>(count); }, &calls};
        effect = [](Words&) {};
        break;
      }
      default: {
        c = dispatch(kAdd, {slot(from), slot(to)}, n, 1);
        c.keeps_args = rng() % 4 > 0;
        auto scalar = std::make_shared<int32_t>(n);
        if (!c.keeps_args) {
          const Span args = std::get<DispatchCmd>(c.body).args;
          changes_.push_back([=, this](int32_t value) {
            *scalar = value;
            write_args(args, {slot(from), slot(to)}, value);
          });
        }
        effect = [=](Words& w) {
          for (size_t i = 0; i < kWords; ++i) w[at(to, i)] = w[at(from, i)] + uint32_t(*scalar);
        };
      }
    }
    if (!std::holds_alternative<HostCallCmd>(c.body)) {
      c.accesses = {{slot(to), true}};
      if (std::holds_alternative<CopyCmd>(c.body) || c.buffers.size() == 2)
        c.accesses.push_back({slot(from), false});
    }
    list_.commands.push_back(std::move(c));
    effects_.push_back(std::move(effect));
  }

  bool calls_host_ = true;
  Span memory_;
  CommandList list_;
  std::vector<Effect> effects_;
  std::vector<std::function<void(int32_t)>> changes_;  // of what does not keep its arguments
};

TEST_P(OpenclLists, GiveWhatTheirOrderSays) {
  std::mt19937 rng(3);
  for (int round = 0; round < 25; ++round) {
    list_ = {};
    effects_.clear();
    changes_.clear();
    for (size_t n = 1 + rng() % 40; n-- > 0;) add_random(rng);
    insert_barriers(list_);
    Words wanted = read(memory_);
    const auto replayed = queue().encode(list_, EncodeUse::Replay);
    for (int replay = 0; replay < 3; ++replay) {
      queue().wait(queue().submit(*replayed, {}));
      for (const Effect& e : effects_) e(wanted);
      ASSERT_EQ(read(memory_), wanted) << "round " << round << ", replay " << replay;
      for (const auto& change : changes_) change(int32_t(rng() % 1000));
    }
    queue().submit_once(queue().encode(list_, EncodeUse::Once));
    queue().submit_once(queue().encode(list_, EncodeUse::Once));
    queue().wait_idle();
    for (int i = 0; i < 2; ++i)
      for (const Effect& e : effects_) e(wanted);
    ASSERT_EQ(read(memory_), wanted) << "round " << round << ", once";
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, OpenclLists, testing::ValuesIn(kSettings),
                         [](const auto& info) { return info.param.name; });

// Calls that the driver was given, in order.
struct Calls {
  std::vector<cl_uint> waits;  // of each launch
  int buffers = 0, recorded = 0, user_events = 0, barriers = 0;
} calls;
ClApi real;

void count_calls(hcq::Device& device) {
  ClApi& api = opencl_api(device);
  real = api;
  calls = {};
  api.clEnqueueNDRangeKernel = [](auto queue, auto kernel, auto dims, auto offset, auto global,
                                  auto local, auto count, auto waits, auto event) -> cl_int {
    calls.waits.push_back(count);
    return real.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, count, waits,
                                       event);
  };
  api.clCreateUserEvent = [](auto... args) {
    ++calls.user_events;
    return real.clCreateUserEvent(args...);
  };
  api.clEnqueueBarrierWithWaitList = [](auto... args) {
    ++calls.barriers;
    return real.clEnqueueBarrierWithWaitList(args...);
  };
  if (!real.clCommandNDRangeKernelKHR) return;
  api.clCommandNDRangeKernelKHR = [](auto... args) {
    ++calls.recorded;
    return real.clCommandNDRangeKernelKHR(args...);
  };
  api.clEnqueueCommandBufferKHR = [](auto... args) {
    ++calls.buffers;
    return real.clEnqueueCommandBufferKHR(args...);
  };
}

class OpenclQueues : public DeviceFixture {
 protected:
  explicit OpenclQueues(const Setting& s = {"", "", "out-of-order"}) : DeviceFixture(s) {}
  Command fill(const Span& to, int32_t n) {
    Command c = dispatch(kFill, {to}, n, 1);
    c.accesses = {{to, true}};
    return c;
  }
  Command add(const Span& from, const Span& to, int32_t n) {
    Command c = dispatch(kAdd, {from, to}, n, 1);
    c.accesses = {{from, false}, {to, true}};
    return c;
  }
  uint64_t submit(std::vector<Command> commands) {
    CommandList list;
    list.commands = std::move(commands);
    insert_barriers(list);
    return queue().submit_once(queue().encode(list, EncodeUse::Once));
  }
};

TEST_F(OpenclQueues, CommandsWaitForWhatTheyNeed) {
  const Span a = words(32), b = words(32), c = words(32), d = words(32);
  queue().wait_idle();
  count_calls(*device);
  queue().wait(submit({fill(a, 1), fill(b, 2), add(a, c, 3), add(c, d, 4), add(b, a, 5)}));
  // The last one writes what the third read, which by then has read what the first wrote.
  EXPECT_EQ(calls.waits, (std::vector<cl_uint>{0, 0, 1, 1, 2}));
  EXPECT_EQ(calls.barriers, 0) << "PoCL's barriers cost more than what they order";
  EXPECT_EQ(read(d), Words(32, 8));
  EXPECT_EQ(read(a), Words(32, 7));
}

// A submission begins after all of the one before, whatever it touches.
TEST_F(OpenclQueues, SubmissionsKeepTheirOrder) {
  const auto go = device->create_signal();
  const Span a = words(32), b = words(32);
  CommandList gate;
  gate.slot_count = 1;
  gate.commands = {{WaitCmd{go.get(), 0}, {}, ""}, fill(a, 1)};
  const uint64_t one = 1;
  queue().submit_once(queue().encode(gate, EncodeUse::Once), {&one, 1});
  count_calls(*device);
  const uint64_t last = submit({fill(b, 2), fill(a, 3)});
  EXPECT_EQ(calls.waits, (std::vector<cl_uint>{1, 1}));
  EXPECT_FALSE(queue().timeline().wait(last - 1, 30'000'000));
  go->set(1);
  queue().wait(last);
  EXPECT_EQ(read(a), Words(32, 3));
  EXPECT_EQ(read(b), Words(32, 2));
}

class OpenclCopyQueue : public OpenclQueues, public testing::WithParamInterface<Setting> {
 protected:
  OpenclCopyQueue() : OpenclQueues(GetParam()) {}
};

// A kernel, a copy beside the next kernel, a kernel over both: each queue waits for the other's
// timeline, and the driver sees to it.
TEST_P(OpenclCopyQueue, QueuesWaitForOneAnother) {
  Queue* copies = device->copy_queue();
  ASSERT_NE(copies, nullptr);
  const Span a = words(32), b = words(32), c = words(32), d = words(32);
  CommandList make, move, use;
  make.commands = {fill(a, 1), fill(d, 4)};
  move.slot_count = use.slot_count = 1;
  move.commands = {{WaitCmd{&queue().timeline(), 0}, {}, ""}, copy(b, a)};
  use.commands = {{WaitCmd{&copies->timeline(), 0}, {}, ""}, add(b, c, 2), add(d, d, 1)};
  const auto makes = queue().encode(make, EncodeUse::Replay);
  const auto moves = copies->encode(move, EncodeUse::Replay);
  const auto uses = queue().encode(use, EncodeUse::Replay);
  count_calls(*device);
  for (int i = 0; i < 50; ++i) {
    device->upload(a, Words(32, 0).data());
    device->upload(c, Words(32, 0).data());
    const uint64_t made = queue().submit(*makes, {});
    const uint64_t moved = copies->submit(*moves, {&made, 1});
    const uint64_t used = queue().submit(*uses, {&moved, 1});
    queue().wait(used);
    copies->wait(moved);
    ASSERT_EQ(read(c), Words(32, 3));
    ASSERT_EQ(read(d), Words(32, 5));
  }
  EXPECT_EQ(calls.user_events, 0);
}

// What has not been submitted has no event; whoever reaches the value lets the other queue go.
TEST_P(OpenclCopyQueue, AQueueMayWaitForWhatIsSubmittedLater) {
  Queue* copies = device->copy_queue();
  const Span a = upload(Words(32, 1)), b = words(32);
  CommandList make, move;
  make.commands = {fill(a, 6)};
  move.slot_count = 1;
  move.commands = {{WaitCmd{&queue().timeline(), 0}, {}, ""}, copy(b, a)};
  const uint64_t made = queue().last_submitted() + 1;
  const auto moves = copies->encode(move, EncodeUse::Once);
  const uint64_t moved = copies->submit(*moves, {&made, 1});
  EXPECT_FALSE(copies->timeline().wait(moved, 20'000'000));
  const auto makes = queue().encode(make, EncodeUse::Once);
  EXPECT_EQ(queue().submit(*makes, {}), made);
  copies->wait(moved);
  queue().wait(made);
  EXPECT_EQ(read(b), Words(32, 6));
}

INSTANTIATE_TEST_SUITE_P(Orders, OpenclCopyQueue,
                         testing::Values(Setting{"InOrder", "", "in-order", "0", "1"},
                                         Setting{"AnyOrder", "", "out-of-order", "0", "1"},
                                         Setting{"Buffers", "svm", "out-of-order", "0", "1"}),
                         [](const auto& info) { return info.param.name; });

class OpenclRecording : public OpenclQueues, public testing::WithParamInterface<Setting> {
 protected:
  OpenclRecording() : OpenclQueues(GetParam()) {}
  void SetUp() override {
    OpenclQueues::SetUp();
    a_ = upload(Words(32, 1));
    b_ = words(32);
    count_calls(*device);
    if (!real.clCreateCommandBufferKHR) GTEST_SKIP() << "a driver without cl_khr_command_buffer";
  }
  // Six launches in a row, all of which keep their arguments but for the third.
  CommandList six(bool all = false) {
    CommandList list;
    for (int i = 0; i < 6; ++i) {
      list.commands.push_back(add(i % 2 ? b_ : a_, i % 2 ? a_ : b_, 1));
      list.commands.back().keeps_args = all || i != 2;
    }
    insert_barriers(list);
    return list;
  }
  void run(EncodedList& list) { queue().wait(queue().submit(list, {})); }
  Span a_, b_;
};

TEST_P(OpenclRecording, WhatKeepsItsArgumentsIsRecordedOnce) {
  const CommandList list = six();
  const auto encoded = queue().encode(list, EncodeUse::Replay);
  EXPECT_EQ(calls.recorded, 5);
  for (uint32_t i = 1; i <= 4; ++i) {
    run(*encoded);
    EXPECT_EQ(calls.recorded, 5) << "while it is replayed";
    EXPECT_EQ(calls.buffers, 2 * int(i));
    EXPECT_EQ(calls.waits.size(), i);
    EXPECT_EQ(read(a_), Words(32, 1 + 6 * i));
  }
  const Span args = std::get<DispatchCmd>(list.commands[4].body).args;  // behind two barriers
  write_args(args, {a_, b_}, 11);
  run(*encoded);
  EXPECT_EQ(read(a_), Words(32, 25 + 16));
}

TEST_P(OpenclRecording, ListsThatRunOnceOrAreTimedAreNot) {
  CommandList list = six(true);
  queue().encode(list, EncodeUse::Once);
  add_timestamps(list);
  const auto timed = queue().encode(list, EncodeUse::Replay);
  run(*timed);
  EXPECT_EQ(calls.recorded + calls.buffers, 0);
  EXPECT_EQ(calls.waits.size(), 6u);
  EXPECT_EQ(queue().timestamps(*timed).size(), 7u);
}

// Nothing is submitted while a driver takes down a list: what it refuses is enqueued as it is.
TEST_P(OpenclRecording, ADriverMayRefuse) {
  opencl_api(*device).clFinalizeCommandBufferKHR = [](auto...) -> cl_int {
    return CL_INVALID_OPERATION;
  };
  for (int i = 0; i < 2; ++i) {
    const auto encoded = queue().encode(six(true), EncodeUse::Replay);
    run(*encoded);
    EXPECT_EQ(calls.recorded, 6) << "it is asked once";
  }
  EXPECT_EQ(calls.buffers, 0);
  EXPECT_EQ(read(a_), Words(32, 13));
  EXPECT_FALSE(device->lost());
}

TEST_P(OpenclRecording, ExhaustedMemoryIsToldAsSuch) {
  opencl_api(*device).clCommandNDRangeKernelKHR = [](auto...) -> cl_int {
    return CL_OUT_OF_HOST_MEMORY;
  };
  const std::string text =
      error_of<OutOfMemory>([&] { queue().encode(six(true), EncodeUse::Replay); });
  EXPECT_NE(text.find("clCommandNDRangeKernelKHR"), std::string::npos) << text;
  EXPECT_FALSE(device->lost());
}

TEST_P(OpenclRecording, ARefusedReplayLosesTheDevice) {
  const auto encoded = queue().encode(six(true), EncodeUse::Replay);
  opencl_api(*device).clEnqueueCommandBufferKHR = [](auto...) -> cl_int {
    return CL_INVALID_OPERATION;
  };
  const std::string text = error_of<DeviceLost>([&] { run(*encoded); });
  EXPECT_NE(text.find("clEnqueueCommandBufferKHR"), std::string::npos) << text;
  EXPECT_NE(text.find("CL_INVALID_OPERATION"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Orders, OpenclRecording,
                         testing::Values(Setting{"InOrder", "", "in-order", "1"},
                                         Setting{"AnyOrder", "", "out-of-order", "1"},
                                         Setting{"Buffers", "svm", "out-of-order", "1"}),
                         [](const auto& info) { return info.param.name; });

// Software drivers are told what is faster there; TUFF_CL_COMMAND_BUFFER=1 asks for the other.
TEST(OpenclChoice, OfTheDriver) {
  const auto feature = [](const char* name) {
    const Candidate found = opencl_probe().at(0);
    for (const auto& [key, value] : found.info.features)
      if (key == name) return value;
    return std::string("absent");
  };
  EXPECT_EQ(feature("queue"), "out-of-order");
  EXPECT_EQ(feature("copy_queue"), "no");
  EXPECT_NE(feature("command_buffer"), "yes");
  const EnvOverride order(Env::TUFF_CL_QUEUE, "in-order"), copies(Env::TUFF_CL_COPY_QUEUE, "1");
  EXPECT_EQ(feature("queue"), "in-order");
  EXPECT_EQ(feature("copy_queue"), "yes");
}

}  // namespace
}  // namespace tuff::devices::opencl
