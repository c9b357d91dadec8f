// Calls over the GSP's queues against its emulated end: headers byte by byte, refusals, what comes
// between a call and its answer, and answers that are damaged.
#include "devices/nv/pci/gsp_calls.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <cstring>

#include "base/error_of.h"
#include "emu/nv/pci/gsp_end.h"

namespace tuff::devices::nv {
namespace {

using Payload = std::vector<uint8_t>;

uint32_t payload_word(const Payload& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
void put_payload_word(Payload& bytes, size_t at, uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

struct CallScene {
  CallScene() {
    end.start();
    queues.link();
    on_command = [this](emu::nv::GspCommand c) { answer(c); };
  }
  ~CallScene() { EXPECT_EQ(mistakes, std::vector<std::string>()); }
  void answer(const emu::nv::GspCommand& c, uint32_t result = 0) {
    end.answer(c.function, result, c.payload);
  }
  void ring() {
    while (const auto command = end.take()) {
      commands.push_back(*command);
      on_command(*command);
    }
  }
  void begin() {
    end.answer(gsp_call::InitDone, 0, {});
    calls.start();
    commands.clear();
  }

  std::vector<std::byte> memory = std::vector<std::byte>(GspQueues::kBytes);
  std::vector<std::string> mistakes;
  std::vector<emu::nv::GspCommand> commands;
  std::function<void(emu::nv::GspCommand)> on_command;
  std::vector<Payload> sequences;
  static constexpr uint64_t kAddress = 0x40000;
  emu::nv::GspEnd end{[this](uint64_t address) {
                        const uint64_t offset = address - kAddress;
                        return offset < memory.size() ? memory.data() + offset : nullptr;
                      },
                      kAddress, [this](const std::string& why) { mistakes.push_back(why); }};
  GspQueues queues{memory, kAddress, [this] { ring(); }, 50};
  GspCalls calls{queues, "0000:41:00.0", [this](std::span<const uint8_t> sequence) {
                   sequences.emplace_back(sequence.begin(), sequence.end());
                 }};
};

TEST(NvGspCalls, TheRootObjectFollowsWhatTheFirmwareAsksFor) {
  CallScene s;
  s.end.answer(gsp_call::RunCpuSequencer, 0, Payload(44, 1));
  s.end.answer(gsp_call::OsErrorLog, 0, Payload(20, 'x'));
  s.end.answer(gsp_call::InitDone, 0, {});
  s.calls.start();
  EXPECT_EQ(s.sequences, std::vector<Payload>{Payload(44, 1)});
  ASSERT_EQ(s.commands.size(), 1u);
  const Payload& root = s.commands[0].payload;
  EXPECT_EQ(s.commands[0].function, 103u);
  ASSERT_EQ(root.size(), 32u + 120);
  EXPECT_EQ(payload_word(root, 0), s.calls.root());
  EXPECT_EQ(payload_word(root, 4), 0u);
  EXPECT_EQ(payload_word(root, 8), s.calls.root());
  EXPECT_EQ(payload_word(root, 12), 0u);
  EXPECT_EQ(payload_word(root, 20), 120u);
  EXPECT_EQ(payload_word(root, 32), s.calls.root()) << "the first parameter is the client";
}

TEST(NvGspCalls, FirmwareThatFailsToStart) {
  CallScene s;
  s.end.answer(gsp_call::InitDone, 0x56, {});
  EXPECT_EQ(error_of<DeviceLost>([&] { s.calls.start(); }),
            "NV: 0000:41:00.0: the GSP's firmware did not start: NotSupported (0x56)");
  EXPECT_THROW(s.calls.start(), DeviceLost) << "and never says that it is ready";
}

TEST(NvGspCalls, ObjectsAndControls) {
  CallScene s;
  s.begin();
  s.on_command = [&](emu::nv::GspCommand c) {
    if (c.payload.size() == 32 + 4) put_payload_word(c.payload, 32, 0x77);
    if (c.function == 76) put_payload_word(c.payload, 24 + 4, 0x88);
    s.answer(c);
  };
  nvrm::Handle handle = 0;
  {
    uint32_t parameter = 5;
    const std::shared_ptr<ObjectCalls> calls(std::shared_ptr<void>(), &s.calls);
    const Object object(calls, s.calls.root(), 0x80, "device", parameter);
    handle = object.handle();
    EXPECT_EQ(parameter, 0x77u) << "parameters come back";
    const Object other(calls, handle, 0x2080, "subdevice");
    EXPECT_NE(other.handle(), handle);
    uint64_t parameters = 0x100000002;
    s.calls.control(other.handle(), 0x20800110, "GET_NAME", parameters);
    EXPECT_EQ(parameters, 0x8800000002u);
  }
  ASSERT_EQ(s.commands.size(), 5u);
  const Payload &device = s.commands[0].payload, &control = s.commands[2].payload,
                &freed = s.commands[4].payload;
  const uint32_t wanted[] = {s.calls.root(), s.calls.root(), handle, 0x80, 0, 4, 0, 0, 5};
  ASSERT_EQ(device.size(), sizeof wanted);
  EXPECT_EQ(std::memcmp(device.data(), wanted, sizeof wanted), 0);
  ASSERT_EQ(control.size(), 32u);
  EXPECT_EQ(payload_word(control, 8), 0x20800110u);
  EXPECT_EQ(payload_word(control, 16), 8u);
  EXPECT_EQ(s.commands[4].function, 10u);
  ASSERT_EQ(freed.size(), 16u);
  EXPECT_EQ(payload_word(freed, 8), handle);
}

// As the call ended, and as the queue says that it could not be made.
TEST(NvGspCalls, RefusalsAreErrorsByTheirStatus) {
  CallScene s;
  s.begin();
  uint32_t parameter = 0;
  s.on_command = [&](emu::nv::GspCommand c) {
    put_payload_word(c.payload, 12, 0x51);
    s.answer(c);
  };
  EXPECT_THROW(s.calls.control(1, 2, "SOMETHING", parameter), OutOfMemory);
  s.on_command = [&](const emu::nv::GspCommand& c) { s.answer(c, 0x56); };
  const std::string text = error_of<Unsupported>(
      [&] { s.calls.control(1, 2, "SOMETHING", parameter); });
  EXPECT_TRUE(text.starts_with("NV: SOMETHING failed: NotSupported (0x56)")) << text;
  s.on_command = [&](const emu::nv::GspCommand& c) { s.end.answer(c.function, 0, {}); };
  EXPECT_THROW(s.calls.control(1, 2, "SOMETHING", parameter), DeviceLost) << "a short answer";
  s.on_command = [](const emu::nv::GspCommand&) {};
  EXPECT_THROW(s.calls.static_info(), DeviceLost) << "none";
}

// The answer that was late is not taken for that to another call.
TEST(NvGspCalls, OnceAnAnswerIsMissingNothingIsAsked) {
  CallScene s;
  s.begin();
  uint32_t parameter = 0;
  s.on_command = [](const emu::nv::GspCommand&) {};
  EXPECT_EQ(error_of<DeviceLost>([&] { s.calls.control(1, 2, "SOMETHING", parameter); }),
            "NV: the GSP did not answer within 50 ms");
  s.answer(s.commands[0]);
  s.on_command = [&](const emu::nv::GspCommand& c) { s.answer(c); };
  EXPECT_EQ(error_of<DeviceLost>([&] { s.calls.control(1, 3, "ANOTHER", parameter); }),
            "NV: the GSP did not answer within 50 ms");
  s.calls.free(0, 5);
  EXPECT_THROW(s.calls.stop(), DeviceLost);
  EXPECT_THROW(s.calls.take_errors(), DeviceLost);
  EXPECT_EQ(s.commands.size(), 1u);
}

TEST(NvGspCalls, LongParameters) {
  CallScene s;
  s.begin();
  s.end.whole_bytes = [](const auto& first) { return 24 + payload_word(first.payload, 16); };
  std::vector<std::byte> parameters(100'000, std::byte{9});
  s.on_command = [&](emu::nv::GspCommand c) {
    c.payload.back() = 7;
    s.answer(c);
  };
  s.calls.control(1, 2, "SOMETHING", std::span(parameters));
  EXPECT_EQ(parameters.back(), std::byte{7});
  EXPECT_EQ(parameters[99'998], std::byte{9});
}

TEST(NvGspCalls, ErrorsOfChannelsAreKept) {
  CallScene s;
  s.begin();
  Payload fault(48);
  put_payload_word(fault, 4, 3);
  put_payload_word(fault, 16, 31);
  put_payload_word(fault, 28, 0x2000);
  put_payload_word(fault, 32, 0x5);
  s.end.answer(gsp_call::RcTriggered, 0, fault);
  put_payload_word(fault, 16, 13);
  s.end.answer(gsp_call::RcTriggered, 0, fault);
  s.end.answer(0x1003, 0, Payload(40));
  const auto errors = s.calls.take_errors();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].channel, 3u);
  EXPECT_EQ(errors[0].code, 31u);
  EXPECT_EQ(errors[0].address, 0x500002000u);
  EXPECT_EQ(errors[1].code, 13u);
  EXPECT_FALSE(errors[1].address);
  EXPECT_TRUE(s.calls.take_errors().empty());
}

TEST(NvGspCalls, AtTheEnd) {
  CallScene s;
  s.begin();
  s.calls.stop();
  ASSERT_EQ(s.commands.size(), 2u);
  EXPECT_EQ(s.commands[0].function, 10u) << "the root object";
  EXPECT_EQ(s.commands[1].function, 47u);
  EXPECT_EQ(s.commands[1].payload, Payload(8));
}

}  // namespace
}  // namespace tuff::devices::nv
