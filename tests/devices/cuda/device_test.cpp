// The CUDA device on the library that stands in for the driver: what is listed and why not, copies,
// kernels, signals, times, memory of others and peers.
#include "devices/cuda/fixture.h"

#include <tuff/error.h>

namespace tuff::devices::cuda {
namespace {

using namespace test;

constexpr uint64_t kLongNs = 20'000'000'000;

std::string reason_of(const char* options) {
  set_options(options);
  const EnvOverride library(Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA);
  const std::vector<Candidate> found = cuda_probe();
  return found.at(0).usable ? "usable" : found.at(0).reason;
}

TEST(CudaProbe, ListsEveryGpuAndNeverChoosesOne) {
  set_options("gpus:2");
  const EnvOverride library(Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA);
  const std::vector<Candidate> found = cuda_probe();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].name, "CUDA:1");
  EXPECT_TRUE(found[1].usable);
  EXPECT_EQ(found[1].rank, 0);
  EXPECT_EQ(found[1].info.api_version, "12.4");
  EXPECT_EQ(found[1].info.uuid.size(), 32u);
  EXPECT_EQ(found[1].info.memory_bytes, uint64_t{1} << 30);
}

// Asking the driver starts it, and what it has started does not outlive a fork.
TEST(CudaProbe, IsNotAskedWhenADefaultIsChosen) {
  for (const DeviceKind& k : device_kinds()) {
    const bool starts_a_driver = k.kind == std::string("CUDA") || k.kind == std::string("NV");
    EXPECT_EQ(may_be_default(k), !starts_a_driver) << k.kind;
  }
}

TEST(CudaProbe, SaysWhyThereIsNone) {
  {
    const EnvOverride library(Env::TUFF_CUDA_LIBRARY, "/nonexistent/libcuda.so");
    const std::vector<Candidate> found = cuda_probe();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_FALSE(found[0].usable);
    EXPECT_NE(found[0].reason.find("TUFF_CUDA_LIBRARY='/nonexistent/libcuda.so'"),
              std::string::npos);
    EXPECT_THROW(cuda_open(""), Unsupported);
  }
  EXPECT_NE(reason_of("capability:61").find("6.1: 7.5 or later"), std::string::npos);
  EXPECT_NE(reason_of("memory_operations:0").find("64-bit memory operations"), std::string::npos);
  EXPECT_NE(reason_of("fail:2,code:999").find("CUDA_ERROR_UNKNOWN (999)"), std::string::npos);
  EXPECT_EQ(reason_of(""), "usable");
}

// Each capability gets the newest code that it runs; Hopper's own is for Hopper alone.
TEST(CudaProbe, CodeIsOfTheArchitecture) {
  const EnvOverride library(Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA);
  const std::pair<const char*, const char*> rows[] = {
      {"capability:75", "sm_75"},   {"capability:80", "sm_80"}, {"capability:86", "sm_86"},
      {"capability:87", "sm_86"},   {"capability:89", "sm_89"}, {"capability:90", "sm_90a"},
      {"capability:100", "sm_100"}, {"capability:103", "sm_100"}, {"capability:120", "sm_120"}};
  for (const auto& [options, arch] : rows) {
    set_options(options);
    EXPECT_EQ(cuda_open("")->target().arch, arch) << options;
  }
}

class CudaDeviceTest : public CudaFixture {
 protected:
  void SetUp() override { open(); }
};

TEST_F(CudaDeviceTest, CopiesGoEveryWay) {
  const Words values = counting(1000, 5);
  const Span a = upload(values), b = words(1000), staged = words(1000, MemoryKind::Readback);
  EXPECT_EQ(a.host(), nullptr);
  ASSERT_NE(staged.host(), nullptr);
  run({copy(b, a), copy(staged, b)});
  EXPECT_EQ(std::memcmp(staged.host(), values.data(), 4000), 0);
  EXPECT_EQ(read(b), values);
}

TEST_F(CudaDeviceTest, KernelsRunInTheOrderOfTheList) {
  const Span a = words(64), b = words(64);
  run({dispatch(kFill, {a}, 7, 2), dispatch(kAdd, {a, b}, 3, 2), dispatch(kAdd, {b, a}, 1, 1)});
  EXPECT_EQ(read(b), Words(64, 10));
  Words wanted(64, 7);
  std::fill_n(wanted.begin(), 32, 11u);
  EXPECT_EQ(read(a), wanted);
}

TEST_F(CudaDeviceTest, LaunchesOfNothingRunNothing) {
  const Span a = upload(Words(32, 1));
  run({dispatch(kFill, {a}, 7, 0)});
  EXPECT_EQ(read(a), Words(32, 1));
}

TEST_F(CudaDeviceTest, WaitsAndRaisesSignals) {
  const auto go = device->create_signal(), done = device->create_signal(3);
  EXPECT_EQ(done->value(), 3u);
  const Span a = words(32);
  const CommandList list = list_of(
      {{WaitCmd{go.get(), 0}, {}, ""},
       dispatch(kFill, {a}, 9, 1),
       {SignalCmd{done.get(), 1}, {}, ""}},
      2);
  const uint64_t slots[] = {5, 8};
  const uint64_t value = queue().submit_once(queue().encode(list, EncodeUse::Once), slots);
  EXPECT_FALSE(queue().timeline().wait(value, 20'000'000));
  EXPECT_NE(queue().in_flight().find("fill"), std::string::npos) << queue().in_flight();
  go->set(4);
  EXPECT_FALSE(queue().timeline().wait(value, 5'000'000));
  go->set(6);
  EXPECT_TRUE(done->wait(8, kLongNs));
  queue().wait(value);
  EXPECT_EQ(queue().in_flight(), "");
  EXPECT_EQ(read(a), Words(32, 9));
}

// Each queue waits for the other's timeline, without the host.
TEST_F(CudaDeviceTest, CopiesBesideKernelsWaitForOneAnother) {
  Queue& copies = *device->copy_queue();
  const Span a = words(32), b = words(32), c = words(32);
  const CommandList fill = list_of({dispatch(kFill, {a}, 4, 1)});
  const CommandList move = list_of({{WaitCmd{&queue().timeline(), 0}, {}, ""}, copy(b, a)}, 1);
  const CommandList use =
      list_of({{WaitCmd{&copies.timeline(), 0}, {}, ""}, dispatch(kAdd, {b, c}, 1, 1)}, 1);
  const uint64_t filled = queue().submit_once(queue().encode(fill, EncodeUse::Once));
  const uint64_t moved = copies.submit_once(copies.encode(move, EncodeUse::Once), {&filled, 1});
  queue().submit_once(queue().encode(use, EncodeUse::Once), {&moved, 1});
  queue().wait_idle();
  EXPECT_EQ(read(c), Words(32, 5));
}

TEST_F(CudaDeviceTest, CallsTheHostInOrder) {
  const Span a = words(32), staged = words(32, MemoryKind::Readback);
  struct Seen {
    const std::byte* at;
    uint32_t value = 0;
  } seen{staged.host()};
  const auto look = [](void* s) {
    auto& out = *static_cast<Seen*>(s);
    std::memcpy(&out.value, out.at, 4);
  };
  run({dispatch(kFill, {a}, 6, 1), copy(staged, a), {HostCallCmd{look, &seen}, {}, ""},
       dispatch(kFill, {a}, 7, 1), copy(staged, a)});
  EXPECT_EQ(seen.value, 6u);
}

TEST_F(CudaDeviceTest, TimesAreTheHosts) {
  const Span a = words(32), b = words(32);
  CommandList list =
      list_of({dispatch(kFill, {a}, 1, 1), copy(b, a), dispatch(kAdd, {b, a}, 1, 1)});
  add_timestamps(list);
  const uint64_t begin = os::monotonic_ns();
  const auto encoded = queue().encode(list, EncodeUse::Replay);
  for (int i = 0; i < 2; ++i) {
    queue().wait(queue().submit(*encoded, {}));
    const std::vector<uint64_t> times = queue().timestamps(*encoded);
    ASSERT_EQ(times.size(), 4u);
    EXPECT_TRUE(std::ranges::is_sorted(times));
    constexpr uint64_t kClockNs = 5'000'000;  // two processes may share the machine
    EXPECT_GT(times.front() + kClockNs, begin);
    EXPECT_LT(times.back(), os::monotonic_ns() + kClockNs);
  }
}

TEST_F(CudaDeviceTest, RefusesWhatItCannotDo) {
  const auto null_signal = cuda_open("")->create_signal();  // of a device like it: taken
  Command indirect = dispatch(kFill, {words(32)}, 1, 1);
  std::get<DispatchCmd>(indirect.body).indirect = words(3);
  EXPECT_THROW(queue().encode(list_of({indirect}), EncodeUse::Once), Unsupported);
  const CommandList list = list_of({});
  Queue& copies = *device->copy_queue();
  const auto encoded = queue().encode(list, EncodeUse::Once);
  EXPECT_THROW(copies.submit(*encoded, {}), InvalidArgument);
}

TEST_F(CudaDeviceTest, BadCodeIsACompileErrorWithTheDriversLog) {
  render::Binary b = binaries()[0];
  std::string text(b.bytes->begin(), b.bytes->end());
  text.insert(text.find("ld.param"), "nonsense.b32 %r1;\n\t");
  b.bytes = std::make_shared<const std::vector<uint8_t>>(text.begin(), text.end());
  const std::string said = error_of<CompileError>([&] { device->load({&b, 1}); });
  EXPECT_NE(said.find("kernel fill"), std::string::npos) << said;
  EXPECT_NE(said.find("CUDA_ERROR_INVALID_PTX (218)"), std::string::npos) << said;
  EXPECT_NE(said.find("nonsense"), std::string::npos) << said;
  b = binaries()[0];
  b.symbol = "missing";
  EXPECT_NE(error_of<CompileError>([&] { device->load({&b, 1}); }).find("missing"),
            std::string::npos);
  b.format = render::BinaryFormat::OpenclC;
  EXPECT_THROW(device->load({&b, 1}), CompileError);
  const Span a = words(32);
  run({dispatch(kFill, {a}, 2, 1)});
  EXPECT_EQ(read(a), Words(32, 2)) << "nothing is lost by that";
}

TEST_F(CudaDeviceTest, MemoryThatThereIsNotIsOutOfMemory) {
  const std::string said = error_of<OutOfMemory>([&] { words(size_t{1} << 30); });
  EXPECT_NE(said.find("cuMemAlloc"), std::string::npos) << said;
  const Span a = upload(Words(32, 3));
  EXPECT_EQ(read(a), Words(32, 3));
}

// Kernels work on the process's memory where it is; arrays on one page are registered once.
TEST_F(CudaDeviceTest, ReachesMemoryOfTheProcess) {
  Words page(4096, 5);
  EXPECT_THROW(over_host(*device, page.data() + 1, 256), InvalidArgument);
  for (auto* data : {page.data(), page.data() + 64}) {
    const Span s = device->allocator().adopt(over_host(*device, data, 256), 256);
    EXPECT_EQ(s.host(), reinterpret_cast<std::byte*>(data));
    run({dispatch(kAdd, {s, s}, 10, 2)});
    EXPECT_EQ(data[0], 15u);
    EXPECT_EQ(data[63], 15u);
    device->allocator().free(s);
    device->allocator().collect();
  }
  const uint64_t registered = calls("cuMemHostRegister_v2");
  const Span a = device->allocator().adopt(over_host(*device, page.data(), 256), 256);
  const Span b = device->allocator().adopt(over_host(*device, page.data() + 32, 256), 256);
  EXPECT_EQ(calls("cuMemHostRegister_v2"), registered + 1);
  device->allocator().free(a);
  run({dispatch(kFill, {b}, 3, 2)});
  EXPECT_EQ(page[95], 3u);
  device->allocator().free(b);
  device->allocator().collect();
  EXPECT_EQ(calls("cuMemHostUnregister"), calls("cuMemHostRegister_v2"));
}

// Someone else's context stays this thread's.
TEST_F(CudaDeviceTest, LeavesOthersContextsAsTheyAre) {
  const CudaApi& api = cuda_api();
  CUcontext before = nullptr, own = nullptr, other = nullptr;
  api.CtxGetCurrent(&own);
  ASSERT_NE(own, nullptr) << "a thread without one keeps the device's";
  set_options("gpus:2");
  ASSERT_EQ(api.DevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  api.CtxSetCurrent(other);
  const Span a = words(32);
  run({dispatch(kFill, {a}, 2, 1)});
  EXPECT_EQ(read(a), Words(32, 2));
  api.CtxGetCurrent(&before);
  EXPECT_EQ(before, other);
  api.CtxSetCurrent(own);
  api.DevicePrimaryCtxRelease(1);
}

TEST_F(CudaDeviceTest, GivesBackAllThatItTook) {
  const Span a = words(32);
  run({dispatch(kFill, {a}, 2, 1)});
  EXPECT_GT(held(), 0u);
  programs.clear();
  device.reset();
  EXPECT_EQ(held(), 0u);
}

class CudaIntegrated : public CudaFixture {
 protected:
  CudaIntegrated() : CudaFixture("integrated") { open(); }
};

TEST_F(CudaIntegrated, ArgumentsAreTheHosts) {
  const Span a = words(32), block = args({a}, {4});
  EXPECT_NE(block.host(), nullptr);
  run({dispatch(kFill, {a}, 4, 1)});
  EXPECT_EQ(read(a), Words(32, 4));
}

class CudaPeers : public CudaFixture {
 protected:
  CudaPeers() : CudaFixture("gpus:2") { open(); }
};

TEST_F(CudaPeers, ReachOneAnothersMemoryAndTimelines) {
  const auto second = cuda_open("1");
  ASSERT_TRUE(reaches(*second, *device));
  const Span a = words(32);
  const Span b = second->allocator().allocate(128, MemoryKind::Device);
  share(*device, *a.block, *second);
  const uint64_t filled = submit({dispatch(kFill, {a}, 8, 1)});
  Queue& other = second->compute_queue();
  const CommandList list = list_of({{WaitCmd{&queue().timeline(), 0}, {}, ""}, copy(b, a)}, 1);
  other.wait(other.submit_once(other.encode(list, EncodeUse::Once), {&filled, 1}));
  Words got(32);
  second->download(b, got.data());
  EXPECT_EQ(got, Words(32, 8));
}

TEST_F(CudaPeers, OnlyWhereTheDriverSaysSo) {
  set_options("gpus:2,peers:0");
  const auto second = cuda_open("1");
  EXPECT_FALSE(reaches(*second, *device));
  EXPECT_THROW(share(*device, *words(1).block, *second), Unsupported);
}

}  // namespace
}  // namespace tuff::devices::cuda
