// The OpenCL device on the driver of this machine, in both tiers of memory and with each kind of
// queue: what the queue makes of copies, kernels, signals and calls of the host, replays whose
// arguments change, what faults become, and what is kept on disk. queues_test.cpp has what is
// particular to queues without an order and to command buffers.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>

#include <tuff/error.h>

#include "base/os.h"
#include "devices/opencl/binary_cache.h"
#include "devices/opencl/device_fixture.h"

namespace tuff::devices::opencl {
namespace {

using namespace test;

constexpr uint64_t kLongNs = 20'000'000'000;

class OpenclDevice : public DeviceFixture, public testing::WithParamInterface<Setting> {
 protected:
  OpenclDevice() : DeviceFixture(GetParam()) {}
};

TEST_P(OpenclDevice, Copies) {
  const Words values = counting((1 << 20) + 3, 5);
  const Span a = upload(values), b = words(values.size() + 7);
  run({copy(b.sub(28, a.size_bytes), a)});
  EXPECT_EQ(read(b.sub(28, a.size_bytes)), values);
}

TEST_P(OpenclDevice, KernelsRunInOrderAndSeeWhatWasWritten) {
  const Span a = words(64), b = words(192);
  run({dispatch(kFill, {a}, 41, 2), dispatch(kAdd, {a, b.sub(256, 256)}, 1, 2),
       copy(b.sub(512, 256), b.sub(256, 256)), dispatch(kFill, {b.sub(0, 256)}, 7, 2)});
  Words wanted(192, 42);
  std::fill_n(wanted.begin(), 64, 7);
  EXPECT_EQ(read(b), wanted);
}

TEST_P(OpenclDevice, LaunchSizesComeFromSlotsAndNoneRunsNothing) {
  const Span a = upload(Words(128, 0));
  CommandList list;
  list.slot_count = 1;
  list.commands = {dispatch(kFill, {a}, 9, 77)};
  std::get<DispatchCmd>(list.commands[0].body).group_slots[0] = 0;
  const auto encoded = queue().encode(list, EncodeUse::Replay);
  for (const uint64_t groups : {0, 1, 3}) {
    queue().wait(queue().submit(*encoded, {&groups, 1}));
    Words wanted(128, 0);
    std::fill_n(wanted.begin(), 32 * groups, 9);
    EXPECT_EQ(read(a), wanted) << groups;
  }
}

// What the host writes into an argument block between replays is what the next one takes.
TEST_P(OpenclDevice, ReplaysTakeTheirArgumentsAsTheyStand) {
  const Span a = upload(Words(64, 0)), b = upload(Words(64, 100)), out = words(64);
  CommandList list;
  list.commands = {dispatch(kAdd, {a, out}, 1, 2)};
  const Span args = std::get<DispatchCmd>(list.commands[0].body).args;
  const auto encoded = queue().encode(list, EncodeUse::Replay);
  queue().wait(queue().submit(*encoded, {}));
  EXPECT_EQ(read(out), Words(64, 1));
  write_args(args, {a, out}, 5);
  queue().wait(queue().submit(*encoded, {}));
  EXPECT_EQ(read(out), Words(64, 5));
  if (!addressed()) return;  // bound memory stays
  write_args(args, {b, out}, 5);
  queue().wait(queue().submit(*encoded, {}));
  EXPECT_EQ(read(out), Words(64, 105));
}

TEST_P(OpenclDevice, ReplaysInFlightAndTimestamps) {
  const Span a = upload(Words(64, 0));
  CommandList list;
  list.commands = {dispatch(kAdd, {a, a}, 1, 2), {BarrierCmd{}, {}, ""}, copy(a, a)};
  list.commands.pop_back();
  add_timestamps(list);
  std::vector<std::unique_ptr<EncodedList>> lists;
  for (int i = 0; i < 4; ++i) lists.push_back(queue().encode(list, EncodeUse::Replay));
  const uint64_t before = os::monotonic_ns();
  uint64_t last[4] = {};
  for (int i = 0; i < 40; ++i) {
    queue().wait(last[i % 4]);
    last[i % 4] = queue().submit(*lists[size_t(i) % 4], {});
  }
  queue().wait_idle();
  const uint64_t after = os::monotonic_ns();
  EXPECT_EQ(read(a), Words(64, 40));
  constexpr uint64_t kSlackNs = 50'000'000;  // of the bracket that the clocks were compared in
  for (const auto& l : lists) {
    const auto times = queue().timestamps(*l);
    ASSERT_EQ(times.size(), 2u);
    EXPECT_LE(times[0], times[1]);
    EXPECT_GE(times[0] + kSlackNs, before);
    EXPECT_LE(times[1], after + kSlackNs);
  }
}

// More submissions than there are places for them.
TEST_P(OpenclDevice, ManySubmissionsInFlight) {
  const Span a = upload(Words(32, 0));
  CommandList list;
  list.commands = {dispatch(kAdd, {a, a}, 1, 1)};
  constexpr uint32_t kTimes = 3000;
  for (uint32_t i = 0; i < kTimes; ++i) queue().submit_once(queue().encode(list, EncodeUse::Once));
  queue().wait_idle();
  EXPECT_EQ(read(a), Words(32, kTimes));
}

// A call of the host stands in the stream's order; so does a signal.
TEST_P(OpenclDevice, HostCallsAndSignalsKeepTheOrder) {
  const Span a = upload(Words(32, 1)), b = words(32);
  const auto go = device->create_signal(), done = device->create_signal(3);
  static std::atomic<uint64_t> called{0};
  called = 0;
  CommandList list;
  list.slot_count = 2;
  const auto call = [](void* context) { *static_cast<std::atomic<uint64_t>*>(context) += 1; };
  list.commands = {{WaitCmd{go.get(), 0}, {}, ""},
                   dispatch(kAdd, {a, b}, 4, 1),
                   {HostCallCmd{call, &called}, {}, ""},
                   {SignalCmd{done.get(), 1}, {}, ""},
                   dispatch(kFill, {a}, 8, 1)};
  const auto encoded = queue().encode(list, EncodeUse::Replay);
  const uint64_t slots[] = {1, 4};
  const uint64_t value = queue().submit(*encoded, slots);
  EXPECT_FALSE(queue().timeline().wait(value, 30'000'000));
  EXPECT_EQ(called, 0u);
  EXPECT_EQ(done->value(), 3u);
  go->set(1);
  EXPECT_TRUE(done->wait(4, kLongNs));
  EXPECT_EQ(called, 1u);
  queue().wait(value);
  EXPECT_EQ(read(b), Words(32, 5));
  EXPECT_EQ(read(a), Words(32, 8));
}

// Whoever gives up a device with a queue that waits is not held by it.
TEST_P(OpenclDevice, ClosesWhileAQueueWaits) {
  const EnvOverride soon(Env::TUFF_TIMEOUT_MS, "200");
  const auto never = device->create_signal();
  CommandList list;
  list.slot_count = 1;
  list.commands = {{WaitCmd{never.get(), 0}, {}, ""}};
  const uint64_t one = 1;
  queue().submit_once(queue().encode(list, EncodeUse::Once), {&one, 1});
  const std::string text = error_of<DeviceLost>([&] { queue().wait_idle(); });
  EXPECT_NE(text.find("no progress"), std::string::npos) << text;
  error_of<DeviceLost>([&] { words(1 << 24); });
  programs.clear();
  device.reset();
}

TEST_P(OpenclDevice, RefusesWhatItCannotDo) {
  struct Foreign final : Signal {
    uint64_t value() const override { return 0; }
    bool wait(uint64_t, uint64_t) override { return false; }
    void set(uint64_t) override {}
  } foreign;
  CommandList list;
  list.slot_count = 1;
  list.commands = {{WaitCmd{&foreign, 0}, {}, ""}};
  error_of<Unsupported>([&] { queue().encode(list, EncodeUse::Once); });
  const Span a = words(32);
  list.commands = {dispatch(kFill, {a}, 1, 1)};
  std::get<DispatchCmd>(list.commands[0].body).indirect = a.sub(0, 12);
  const std::string text = error_of<Unsupported>([&] { queue().encode(list, EncodeUse::Once); });
  EXPECT_NE(text.find("slots"), std::string::npos) << text;
}

TEST_P(OpenclDevice, BuildErrorsShowTheLogAndTheLine) {
  std::vector<render::Binary> some = binaries();
  some.push_back(binary("broken", 1,
                        "TUFF_KERNEL(32, 1, 1) void broken(TUFF_GLOBAL u8* b0, u64 o0, i32 n0) {\n"
                        "  b0[o0] = undeclared_name;\n}\n"));
  const std::string text = error_of<CompileError>([&] { device->load(some); });
  EXPECT_NE(text.find("kernel broken"), std::string::npos) << text;
  EXPECT_NE(text.find("CL:0"), std::string::npos) << text;
  EXPECT_NE(text.find("line "), std::string::npos) << text;
  EXPECT_NE(text.find("b0[o0] = undeclared_name;"), std::string::npos) << text;
}

TEST_P(OpenclDevice, TooMuchMemoryIsAnError) {
  const uint64_t most = device->target().max_buffer_bytes;
  const std::string text =
      error_of<OutOfMemory>([&] { device->map_block(most + 4096, MemoryKind::Device); });
  EXPECT_NE(text.find(std::to_string(most)), std::string::npos) << text;
  const Span a = upload(Words(32, 3));
  EXPECT_EQ(read(a), Words(32, 3));
}

// An enqueue that the driver refuses: half of a list may run, so the device is lost, by name.
TEST_P(OpenclDevice, ARefusedEnqueueLosesTheDevice) {
  const Span a = words(32);
  CommandList list;
  list.commands = {dispatch(kFill, {a}, 1, 1)};
  opencl_api(*device).clEnqueueNDRangeKernel = [](auto...) -> cl_int {
    return CL_OUT_OF_RESOURCES;
  };
  const std::string text = error_of<DeviceLost>([&] { run(list.commands); });
  EXPECT_NE(text.find("clEnqueueNDRangeKernel"), std::string::npos) << text;
  EXPECT_NE(text.find("CL_OUT_OF_RESOURCES"), std::string::npos) << text;
  EXPECT_EQ(error_of<DeviceLost>([&] { run(list.commands); }), text);
}

decltype(ClApi::clSetEventCallback) real_set_callback;

// A command that fails while it runs, as the callback tells.
TEST_P(OpenclDevice, AFailedCommandLosesTheDevice) {
  const Span a = words(32);
  real_set_callback = opencl_api(*device).clSetEventCallback;
  opencl_api(*device).clSetEventCallback = [](cl_event event, cl_int type, auto call,
                                              void* data) -> cl_int {
    struct Given {
      decltype(call) then;
      void* data;
    };
    auto* given = new Given{call, data};
    return real_set_callback(
        event, type,
        [](cl_event e, cl_int, void* raw) {
          const std::unique_ptr<Given> g(static_cast<Given*>(raw));
          g->then(e, CL_OUT_OF_RESOURCES, g->data);
        },
        given);
  };
  const std::string text = error_of<DeviceLost>([&] { run({dispatch(kFill, {a}, 1, 1)}); });
  EXPECT_NE(text.find("CL_OUT_OF_RESOURCES"), std::string::npos) << text;
  EXPECT_NE(text.find("submission"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Tiers, OpenclDevice, testing::ValuesIn(std::span(kSettings).first(kUsual)),
                         [](const auto& info) { return info.param.name; });

TEST(Opencl, Selectors) {
  const std::vector<Candidate> found = opencl_probe();
  ASSERT_FALSE(found.empty());
  ASSERT_TRUE(found[0].usable) << found[0].reason;
  EXPECT_EQ(opencl_open("0")->name(), "CL:0");
  const std::string part = found[0].info.description.substr(0, 5);
  EXPECT_EQ(opencl_open("name=" + part)->name(), "CL:0");
  for (const char* wrong : {"99", "x", "name=", "name=no such device", "uuid=", "uuid=ff"}) {
    const std::string text = error_of<InvalidArgument>([&] { opencl_open(wrong); });
    EXPECT_NE(text.find(found[0].info.description), std::string::npos) << text;
  }
}

TEST(Opencl, UnknownFeaturesAreNamed) {
  for (const Env variable : {Env::TUFF_CL_DISABLE, Env::TUFF_CL_QUEUE, Env::TUFF_CL_COPY_QUEUE,
                             Env::TUFF_CL_COMMAND_BUFFER}) {
    const EnvOverride wrong(variable, "nonsense");
    const std::string text = error_of<InvalidArgument>([] { opencl_open(""); });
    EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
    EXPECT_NE(text.find(env_rows()[size_t(variable)].name), std::string::npos) << text;
    EXPECT_THROW(opencl_probe(), InvalidArgument);
  }
}

TEST(Opencl, CachedBinariesAreWholeOrIgnored) {
  const std::vector<uint8_t> data = {1, 2, 3, 4, 5};
  const std::vector<uint8_t> file = wrap_binary(42, data);
  std::string why;
  const auto back = unwrap_binary(42, file, &why);
  ASSERT_TRUE(back) << why;
  EXPECT_TRUE(std::equal(back->begin(), back->end(), data.begin(), data.end()));
  EXPECT_FALSE(unwrap_binary(43, file, &why));
  for (size_t i = 0; i < file.size(); ++i) {
    EXPECT_FALSE(unwrap_binary(42, std::span(file).first(i), &why)) << i;
    std::vector<uint8_t> damaged = file;
    damaged[i] ^= 1;
    EXPECT_FALSE(unwrap_binary(42, damaged, &why)) << i;
  }
}

// PoCL keeps what it compiles itself, and compiles each kernel again when it is asked for a binary.
TEST(Opencl, NoBinaryIsAskedOfADriverThatKeepsItsPrograms) {
  if (opencl_probe().at(0).info.driver.find("Portable Computing Language") == std::string::npos)
    GTEST_SKIP() << "a driver that keeps nothing";
  const std::string folder = fmt::format("{}/tuff_cl_{}", testing::TempDir(), os::monotonic_ns());
  const EnvOverride cache(Env::TUFF_CACHE_DIR, folder);
  const auto device = opencl_open("");
  opencl_api(*device).clGetProgramInfo = [](auto...) -> cl_int {
    ADD_FAILURE() << "clGetProgramInfo was called";
    return CL_INVALID_VALUE;
  };
  device->load(binaries());
  EXPECT_FALSE(os::exists(folder + "/opencl"));
}

// What one device has built the next one loads; a damaged file is built anew.
TEST(Opencl, ProgramsAreCachedOnDisk) {
  if (opencl_probe().at(0).info.driver.find("Portable Computing Language") != std::string::npos)
    GTEST_SKIP() << "PoCL keeps its programs itself; on Oclgrind this runs";
  const std::string folder = fmt::format("{}/tuff_cl_{}", testing::TempDir(), os::monotonic_ns());
  const EnvOverride cache(Env::TUFF_CACHE_DIR, folder);
  static std::atomic<int> sources{0};
  static decltype(ClApi::clCreateProgramWithSource) real;
  const auto builds = [] {
    const auto device = opencl_open("");
    real = opencl_api(*device).clCreateProgramWithSource;
    opencl_api(*device).clCreateProgramWithSource = [](auto... args) {
      ++sources;
      return real(args...);
    };
    sources = 0;
    device->load(binaries());
    return sources.load();
  };
  EXPECT_EQ(builds(), 1);
  EXPECT_EQ(builds(), 0);
  for (const std::string& name : os::list_directory(folder + "/opencl")) {
    const std::string path = folder + "/opencl/" + name;
    std::vector<uint8_t> bytes = os::read_file(path);
    bytes.back() ^= 1;
    os::write_file(path, bytes);
  }
  EXPECT_EQ(builds(), 1);
  EXPECT_EQ(builds(), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tuff::devices::opencl
