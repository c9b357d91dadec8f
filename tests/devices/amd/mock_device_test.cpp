// The AMD device on the emulated machine: what the driver, the encoders and the loader make of
// copies, kernels, signals and scratch, with the machine's checks on, and what faults become.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include <tuff/error.h>

#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/amd/amd_device.h"
#include "devices/open_device.h"
#include "emu/amd/mock.h"
#include "render/c_dialect.h"
#include "base/compilers.h"

namespace tuff::devices::amd {
namespace {

using namespace hcq;
using emu::amd::Fault;

constexpr uint64_t kLongNs = 20'000'000'000;

// Of 32 work-items each.
constexpr const char* kSource = R"(
TUFF_KERNEL(32, 1, 1) void fill(TUFF_GLOBAL u32* out, i32 value) {
  out[TUFF_GROUP(x) * 32 + TUFF_LOCAL(x)] = (u32)value; }
TUFF_KERNEL(32, 1, 1) void add(const TUFF_GLOBAL u32* in, TUFF_GLOBAL u32* out, i32 value) {
  const i32 i = TUFF_GROUP(x) * 32 + TUFF_LOCAL(x); out[i] = in[i] + (u32)value; }
TUFF_KERNEL(32, 1, 1) void spill(TUFF_GLOBAL u32* out, i32 at) {
  volatile u32 own[24];
  const i32 i = TUFF_GROUP(x) * 32 + TUFF_LOCAL(x);
  for (i32 k = 0; k < 24; ++k) own[k] = (u32)(i * 100 + k);
  out[i] = own[at]; }
TUFF_KERNEL(32, 1, 1) void spill_more(TUFF_GLOBAL u32* out, i32 at) {
  volatile u32 own[200];
  const i32 i = TUFF_GROUP(x) * 32 + TUFF_LOCAL(x);
  for (i32 k = 0; k < 200; ++k) own[k] = (u32)(i * 1000 + k);
  out[i] = own[at]; }
TUFF_KERNEL(64, 1, 1) void race(TUFF_GLOBAL u32* out, i32 value) {
  TUFF_SHARED(u32, shared, 64);
  const i32 l = TUFF_LOCAL(x);
  shared[l] = (u32)(value + l);
  out[TUFF_GROUP(x) * 64 + l] = shared[63 - l]; }
)";

std::vector<render::Binary> binaries() {
  static const auto object = [] {
    std::string text = render::c_amdgpu().prelude.whole() + std::string(kSource);
    return std::make_shared<const std::vector<uint8_t>>(
        compile_amdgpu({&text, 1}, "gfx1100")[0]);
  }();
  std::vector<render::Binary> out;
  for (const auto& [name, buffers] :
       {std::pair("fill", 1u), {"add", 2u}, {"spill", 1u}, {"spill_more", 1u}, {"race", 1u}}) {
    render::Binary& b = out.emplace_back();
    b.name = b.symbol = name;
    b.format = render::BinaryFormat::AmdgpuObject;
    b.bytes = object;
    b.args = {buffers, 1};
    b.local = {b.name == "race" ? 64u : 32u, 1, 1};
  }
  return out;
}
enum Kernel { kFill, kAdd, kSpill, kSpillMore, kRace };

// A machine, and one of its GPUs opened, with kernels.
struct Machine {
  explicit Machine(emu::amd::MockOptions options = {}) {
    options.report = [this](const emu::Finding& f) {
      std::lock_guard lock(mutex);
      findings.push_back({emu::name(f.kind), f.gpu, f.queue, f.address, to_text(f)});
    };
    mock = make_mock(options);
    iface.kernel = mock;
    iface.emulated = true;
    iface.take_findings = [this] {
      std::lock_guard lock(mutex);
      return std::exchange(findings, {});
    };
  }
  ~Machine() {
    iface.process.reset();
    for (const MachineFinding& f : findings) ADD_FAILURE() << f.text;
  }
  std::mutex mutex;
  std::vector<MachineFinding> findings;
  std::shared_ptr<emu::amd::Mock> mock;
  AmdIface iface;
};

struct Opened : OpenDevice {
  explicit Opened(Machine& m, const std::string& selector = "") {
    device = amd_open(m.iface, selector);
    programs = device->load(binaries());
  }
};

// With engines on threads, stepped by a seed, and without a large BAR.
std::vector<emu::amd::MockOptions> settings() {
  emu::amd::MockOptions threads, seeded, small_bar;
  seeded.seed = 7;
  small_bar.seed = 8;
  small_bar.large_bar = false;
  return {threads, seeded, small_bar};
}

TEST(AmdMock, Copies) {
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m);
    const Words values = counting((1 << 18) + 3, 5);
    const Span a = d.upload(values), b = d.words(values.size());
    d.run({Opened::copy(b, a)});
    EXPECT_EQ(d.read(b), values);
    Queue& copies = *d.device->copy_queue();
    const Span c = d.words(values.size());
    CommandList list;
    list.commands = {Opened::copy(c, b)};
    copies.wait(copies.submit_once(copies.encode(list, EncodeUse::Once)));
    EXPECT_EQ(d.read(c), values);
  }
}

TEST(AmdMock, Kernels) {
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m);
    const Span a = d.words(64), b = d.words(64);
    d.run({d.dispatch(kFill, {a}, 41, 2), Opened::barrier(), d.dispatch(kAdd, {a, b}, 1, 2)});
    EXPECT_EQ(d.read(b), Words(64, 42));
  }
}

TEST(AmdMock, ReplaysInFlightAndTimestamps) {
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m);
    const Span a = d.upload(Words(64, 0));
    CommandList list;
    list.commands = {d.dispatch(kAdd, {a, a}, 1, 2)};
    add_timestamps(list);
    std::vector<std::unique_ptr<EncodedList>> lists;
    for (int i = 0; i < 4; ++i) lists.push_back(d.queue().encode(list, EncodeUse::Replay));
    const uint64_t before = os::monotonic_ns();
    uint64_t last[4] = {};
    for (int i = 0; i < 40; ++i) {
      d.queue().wait(last[i % 4]);
      last[i % 4] = d.queue().submit(*lists[i % 4], {});
    }
    d.queue().wait_idle();
    const uint64_t after = os::monotonic_ns();
    EXPECT_EQ(d.read(a), Words(64, 40));
    uint64_t previous = before;
    constexpr uint64_t kSlackNs = 5'000'000;
    for (const auto& l : lists) {
      const auto times = d.queue().timestamps(*l);
      ASSERT_EQ(times.size(), 2u);
      EXPECT_LE(times[0], times[1]);
      EXPECT_GE(times[0] + kSlackNs, previous);
      EXPECT_LE(times[1], after + kSlackNs);
      previous = times[0];
    }
  }
}

// Lists that were encoded before scratch grew keep theirs.
TEST(AmdMock, ScratchGrows) {
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m);
    const Span a = d.words(64), b = d.words(64);
    CommandList small, large;
    small.commands = {d.dispatch(kSpill, {a}, 7, 2)};
    large.commands = {d.dispatch(kSpillMore, {b}, 150, 2)};
    const auto first = d.queue().encode(small, EncodeUse::Replay);
    d.queue().submit(*first, {});
    const auto second = d.queue().encode(large, EncodeUse::Replay);
    d.queue().submit(*second, {});
    d.queue().wait_idle();
    d.queue().submit(*first, {});
    d.queue().wait_idle();
    Words wanted_a(64), wanted_b(64);
    for (uint32_t i = 0; i < 64; ++i) wanted_a[i] = i * 100 + 7, wanted_b[i] = i * 1000 + 150;
    EXPECT_EQ(d.read(a), wanted_a);
    EXPECT_EQ(d.read(b), wanted_b);
  }
}

// Values on both sides of 2^31 and 2^32, through queues of two GPUs.
TEST(AmdMock, SignalsBetweenGpusAcrossTheWrap) {
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m, "0"), e(m, "1");
    for (const uint64_t start : {0ull, (1ull << 31) - 3, (1ull << 32) - 3, (1ull << 40) + 1}) {
      const auto there = d.device->create_signal(start), back = e.device->create_signal(start);
      CommandList send, relay;
      send.slot_count = relay.slot_count = 1;
      send.commands = {{SignalCmd{there.get(), 0}, {}, ""}, {WaitCmd{back.get(), 0}, {}, ""}};
      relay.commands = {{WaitCmd{there.get(), 0}, {}, ""}, {SignalCmd{back.get(), 0}, {}, ""}};
      const auto sends = d.queue().encode(send, EncodeUse::Replay);
      const auto relays = e.queue().encode(relay, EncodeUse::Replay);
      for (uint64_t value = start + 1; value < start + 7; ++value) {
        const uint64_t slots[] = {value};
        const uint64_t relayed = e.queue().submit(*relays, slots);
        d.queue().wait(d.queue().submit(*sends, slots));
        e.queue().wait(relayed);
        EXPECT_EQ(there->value(), value);
        EXPECT_EQ(back->value(), value);
      }
    }
  }
}

TEST(AmdMock, RefusesForeignSignals) {
  Machine m;
  Opened d(m);
  struct Foreign final : Signal {
    uint64_t value() const override { return 0; }
    bool wait(uint64_t, uint64_t) override { return false; }
    void set(uint64_t) override {}
  } foreign;
  CommandList list;
  list.slot_count = 1;
  list.commands = {{WaitCmd{&foreign, 0}, {}, ""}};
  error_of<Unsupported>([&] { d.queue().encode(list, EncodeUse::Once); });
}

// A kernel past its memory: lost, with the kernel's name and the address.
TEST(AmdMock, FaultsNameKernelAndAddress) {
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m);
    const Span a = d.words(64);
    const MemoryBlock& block = *a.block;
    const Span end{&block, block.size_bytes - 4096, 4096};
    const std::string text =
        error_of<Error>([&] { d.run({d.dispatch(kFill, {end}, 1, 4096 / 128 + 1)}); });
    EXPECT_NE(text.find("fill"), std::string::npos) << text;
    EXPECT_NE(text.find(fmt::format("{:x}", block.address + block.size_bytes)), std::string::npos)
        << text;
    std::lock_guard lock(m.mutex);
    m.findings.clear();
  }
}

// What the machine finds is an error where the kernel is waited for, and a line of the report.
TEST(AmdMock, FindingsAreErrorsAndLinesOfTheReport) {
  const std::string report =
      fmt::format("{}/amd_findings_{}.jsonl", testing::TempDir(), os::monotonic_ns());
  EnvOverride to(Env::TUFF_REPORT, report);
  for (const auto& options : settings()) {
    Machine m(options);
    Opened d(m);
    const Span a = d.words(128);
    const std::string text = error_of<HazardFound>([&] { d.run({d.dispatch(kRace, {a}, 1, 2)}); });
    EXPECT_NE(text.find("race"), std::string::npos) << text;
    EXPECT_FALSE(d.device->lost());
    d.run({d.dispatch(kFill, {a}, 1, 4)});
    EXPECT_EQ(d.read(a), Words(128, 1));
  }
  const std::string lines = os::read_text(report);
  EXPECT_NE(lines.find(R"({"kind":"kernel","gpu":0,)"), std::string::npos) << lines;
  std::filesystem::remove(report);
}

// What the machine can do to a driver.
TEST(AmdMock, InjectedFaults) {
  EnvOverride soon(Env::TUFF_TIMEOUT_MS, "300");
  for (const Fault::Kind kind : {Fault::Kind::StopQueue, Fault::Kind::Ecc, Fault::Kind::Reset}) {
    for (const bool seeded : {false, true}) {
      emu::amd::MockOptions options;
      if (seeded) options.seed = 3;
      options.faults = {{kind, 12}};
      Machine m(options);
      std::string text = "nothing happened";
      try {
        Opened d(m);
        const Span a = d.words(64);
        for (int i = 0; i < 20; ++i) d.run({d.dispatch(kFill, {a}, i, 2)});
      } catch (const DeviceLost& e) {
        text = e.what();
      }
      const char* wanted = kind == Fault::Kind::StopQueue ? "no progress"
                           : kind == Fault::Kind::Ecc     ? "ECC"
                                                          : "reset";
      EXPECT_NE(text.find(wanted), std::string::npos) << text;
      EXPECT_NE(text.find("AMD:0"), std::string::npos) << text;
      EXPECT_NE(text.find(": fill"), std::string::npos) << text;
      std::lock_guard lock(m.mutex);
      m.findings.clear();
    }
  }
}

TEST(AmdMock, LostInterruptsCostTimeAlone) {
  emu::amd::MockOptions options;
  for (uint64_t n = 1; n < 6; ++n) options.faults.push_back({Fault::Kind::LoseInterrupt, n});
  Machine m(options);
  Opened d(m);
  const Span a = d.words(64);
  for (int i = 0; i < 8; ++i) {
    d.run({d.dispatch(kFill, {a}, i, 2)});
    EXPECT_EQ(d.read(a), Words(64, uint32_t(i)));
  }
}

TEST(AmdMock, NoMemoryAtTheNthCall) {
  for (uint64_t n = 1;; ++n) {
    emu::amd::MockOptions options;
    options.faults = {{Fault::Kind::FailCall, n}};
    Machine m(options);
    try {
      Opened d(m);
      break;
    } catch (const OutOfMemory& e) {
      EXPECT_NE(std::string(e.what()).find("AMD: "), std::string::npos) << e.what();
    } catch (const Unsupported& e) {  // while the candidates were listed
      EXPECT_NE(std::string(e.what()).find("AMD: "), std::string::npos) << e.what();
    }
    ASSERT_LT(n, 200u);
  }
}

TEST(AmdMock, OpensAgainAndBothGpus) {
  Machine m;
  for (int i = 0; i < 3; ++i) {
    Opened d(m, "0"), e(m, "1");
    const Span a = d.words(64), b = e.words(64);
    d.run({d.dispatch(kFill, {a}, 3, 2)});
    e.run({e.dispatch(kFill, {b}, 4, 2)});
    EXPECT_EQ(d.read(a), Words(64, 3));
    EXPECT_EQ(e.read(b), Words(64, 4));
  }
  EXPECT_EQ(m.findings.size(), 0u);
}

}  // namespace
}  // namespace tuff::devices::amd
