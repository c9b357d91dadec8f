#include <gtest/gtest.h>

#include <deque>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/split_mix.h"
#include "devices/nv/decoder.h"
#include "devices/nv/encode/encode.h"
#include "hcq/device.h"

namespace tuff::devices::nv {
namespace {


constexpr uint64_t kBlock = 0x12'0000'0000, kTimestamps = 0x14'0000'0000, kLaunch = 0x15'0000'1000;

struct TestSignal : hcq::Signal {
  explicit TestSignal(uint64_t at) : address(at) {}
  uint64_t value() const override { return 0; }
  bool wait(uint64_t, uint64_t) override { return false; }
  void set(uint64_t) override {}
  uint64_t address;
};

struct TestProgram : hcq::Program {
  explicit TestProgram(const KernelCode& k) : Program(render::Binary{}), kernel(k) {}
  KernelCode kernel;
};

struct TestBinding : Binding {
  KernelCode kernel(const hcq::Program& p) const override {
    return dynamic_cast<const TestProgram&>(p).kernel;
  }
  uint64_t signal_address(const hcq::Signal& s) const override {
    return dynamic_cast<const TestSignal&>(s).address;
  }
};

uint32_t parameters_of(const Generation& g) {
  return g.qmd_major == 3 ? 0x160 : g.qmd_major == 4 ? 0x210 : 0x380;
}
uint32_t sass_version_of(const Generation& g) {
  return g.qmd_major == 3 ? 0x86 : g.qmd_major == 4 ? 0x90 : 0xa4;
}

class Scene {
 public:
  Scene(const Generation& g, bool copies) : generation(g), copies(copies) {
    block.address = kBlock;
    block.size_bytes = 1ull << 36;
    for (uint64_t i = 0; i < 3; ++i) signals.emplace_back(0x13'0000'0000 + i * 16);
    for (uint32_t i = 0; i < 3; ++i) {
      programs.emplace_back(KernelCode{.entry = 0x11'0000'0000u + i * 0x2580u,
                                       .registers = 24 + i,
                                       .barriers = i,
                                       .shared_bytes = i * 5000,
                                       .local_bytes = i * 8,
                                       .parameter_offset = parameters_of(g),
                                       .local = {uint16_t(32 << i), uint16_t(1 + i), 1}});
    }
  }
  Encoded encode() const {
    const EncodeInput in{generation, binding, list, &signals[0], kTimestamps};
    return copies ? encode_copy(in) : encode_compute(in);
  }
  std::vector<uint32_t> write(const PacketStream& s) const {
    std::vector<uint64_t> values = slots;
    values.push_back(timeline_value);
    values.push_back(kLaunch);
    std::vector<uint32_t> out(s.dwords.size());
    s.write(values, out.data());
    return out;
  }
  hcq::Span span(uint64_t offset, uint64_t size) const { return {&block, offset, size}; }
  void add(hcq::CommandBody body) { list.commands.push_back({std::move(body), {}, {}}); }
  void sample();
  void random(SplitMix64& random, int commands);
  void new_values(SplitMix64& random);
  std::vector<std::string> asked() const;
  std::vector<std::string> done(const Encoded& encoded) const;

  const Generation& generation;
  bool copies;
  TestBinding binding;
  hcq::MemoryBlock block;
  std::deque<TestSignal> signals;
  std::deque<TestProgram> programs;
  hcq::CommandList list;
  std::vector<uint64_t> slots;
  uint64_t timeline_value = 0x7'0000'0001;

 private:
  uint64_t groups(const hcq::DispatchCmd& d, size_t axis) const;
  std::string asked_launch(const hcq::DispatchCmd& d) const;
  std::string done_launch(std::span<const uint32_t> launches, uint64_t qmd, uint64_t* next) const;
};

void Scene::sample() {
  list.slot_count = 2;
  list.timestamp_count = 2;
  slots = {41, 0x1'0000'002a};
  add(hcq::WaitCmd{&signals[1], 0});
  add(hcq::TimestampCmd{0});
  if (copies) {
    add(hcq::CopyCmd{span(0x1000, 0x2000), span(0x8000, 0x2000)});
  } else {
    add(hcq::DispatchCmd{&programs[1], span(0x1000, 64), {5, 6, 7}, {}});
    add(hcq::BarrierCmd{});
    add(hcq::DispatchCmd{&programs[2], span(0x1100, 64), {1, 1, 8}, {}});
  }
  add(hcq::TimestampCmd{1});
  add(hcq::SignalCmd{&signals[2], 1});
}

// Slots 0 to 2 are signals' values, 3 to 5 counts of groups, 6 and 7 addresses.
void Scene::new_values(SplitMix64& r) {
  timeline_value = r.next();
  slots = {r.next(), r.next(), r.next()};
  for (int i = 3; i < 6; ++i) slots.push_back(1 + r.below(65535u));
  for (int i = 6; i < 8; ++i) slots.push_back(kBlock + r.below(1ull << 34) * 16);
}

void Scene::random(SplitMix64& r, int commands) {
  list.slot_count = 8;
  list.timestamp_count = 4;
  new_values(r);
  for (int i = 0; i < commands; ++i) {
    TestSignal* signal = &signals[1 + r.below(2u)];
    const uint64_t sizes[] = {0, 1, 4096, (1ull << 31) + 5};
    const uint64_t size = sizes[r.below(4u)];
    switch (r.below(6u)) {
      case 0: add(hcq::WaitCmd{signal, r.below(3u)}); break;
      case 1: add(hcq::SignalCmd{signal, r.below(3u)}); break;
      case 2: add(hcq::TimestampCmd{r.below(4u)}); break;
      case 3: add(hcq::BarrierCmd{}); break;
      default:
        if (copies || r.below(4u) == 0) {
          add(hcq::CopyCmd{span(r.below(1ull << 34), size), span(r.below(1ull << 34), size)});
        } else {
          hcq::DispatchCmd d{&programs[r.below(3u)],
                             span(r.below(1u << 20) * 16, 64),
                             {r.below(9u), 1 + r.below(65535u), 1 + r.below(99u)},
                             {}};
          for (int32_t& slot : d.group_slots) slot = r.below(3u) ? -1 : 3 + int32_t(r.below(3u));
          add(d);
        }
    }
  }
}

uint64_t Scene::groups(const hcq::DispatchCmd& d, size_t axis) const {
  const int32_t slot = d.group_slots[axis];
  return slot < 0 ? d.groups[axis] : slots[size_t(slot)];
}

std::string Scene::asked_launch(const hcq::DispatchCmd& d) const {
  const KernelCode& k = dynamic_cast<const TestProgram&>(*d.program).kernel;
  // 0, 5,000 and 10,000 bytes of shared memory take SMs of 0, 8 and 16 KiB.
  const uint32_t shared = (k.shared_bytes + 127) / 128 * 128;
  const uint32_t config = k.shared_bytes == 0 ? 1 : k.shared_bytes == 5000 ? 3 : 5;
  return fmt::format(
      "launch {:#x} grid {}x{}x{} block {}x{}x{} registers {} barriers {} shared {} {} {} local {} "
      "sass {:#x} bank {} args {:#x}",
      k.entry, groups(d, 0), groups(d, 1), groups(d, 2), k.local[0], k.local[1], k.local[2],
      k.registers, k.barriers, shared, config, generation.qmd_major == 4 ? 58 : 26,
      (k.local_bytes + 15) / 16 * 16, sass_version_of(generation),
      k.parameter_offset + 16, d.args.address());
}

std::vector<std::string> Scene::asked() const {
  std::vector<std::string> out;
  // Of a compute channel: an idle host is owed, the instruction cache is void; what was used.
  bool idle = true, code = true, copied = false, launched = false;
  bool one = false;  // a launch, or a chain of them, is all that is in flight
  const auto address = [](const hcq::Signal* s) {
    return dynamic_cast<const TestSignal*>(s)->address;
  };
  for (uint32_t i = 0; i < list.commands.size(); ++i) {
    const hcq::Command& c = list.commands[i];
    if (const auto* w = std::get_if<hcq::WaitCmd>(&c.body)) {
      out.push_back(fmt::format("wait {:#x} {}", address(w->signal), slots[w->value_slot]));
      code = true;
      one = false;
    } else if (const auto* s = std::get_if<hcq::SignalCmd>(&c.body)) {
      out.push_back(fmt::format("signal {:#x} {}", address(s->signal), slots[s->value_slot]));
      one = false;
    } else if (const auto* t = std::get_if<hcq::TimestampCmd>(&c.body)) {
      out.push_back(fmt::format("time {:#x}", kTimestamps + t->index * 16));
      one = false;
    } else if (const auto* copy = std::get_if<hcq::CopyCmd>(&c.body)) {
      if (!copies && (idle || launched)) out.push_back("idle");
      idle = launched = one = false;
      copied = true;
      const uint64_t src = copy->src.address();
      const uint64_t dst = copy->dst.address();
      for (uint64_t part = 0; part < copy->src.size_bytes; part += 1ull << 31) {
        out.push_back(fmt::format("copy {:#x} to {:#x} {}", src + part, dst + part,
                                  std::min<uint64_t>(copy->src.size_bytes - part, 1ull << 31)));
      }
    } else if (const auto* d = std::get_if<hcq::DispatchCmd>(&c.body)) {
      if (groups(*d, 0) == 0) continue;
      const bool sized = std::ranges::any_of(d->group_slots, [](int32_t s) { return s >= 0; });
      const auto is_launch = [&](uint32_t k) {
        return k < list.commands.size() &&
               std::holds_alternative<hcq::DispatchCmd>(list.commands[k].body);
      };
      if (one && idle && !sized && !is_launch(i + 1)) {
        out.push_back("then " + asked_launch(*d));
        continue;  // what comes later waits for all of it
      }
      one = (idle || copied) && !sized;
      if (idle || copied) out.push_back("idle");
      if (code) out.push_back("invalidate code");
      idle = code = copied = false;
      launched = true;
      out.push_back(asked_launch(*d));
    } else {
      idle = true;
    }
  }
  out.push_back(fmt::format("signal {:#x} {}", signals[0].address, timeline_value));
  out.push_back("interrupt");
  return out;
}

std::string Scene::done_launch(std::span<const uint32_t> launches, uint64_t qmd,
                               uint64_t* next) const {
  const bool v03 = generation.qmd_major == 3;
  const auto at = [&](uint64_t address) { return launches.subspan((address - kLaunch) / 4); };
  const QmdFields found =
      decode_qmd(generation.qmd_major, at(qmd).first(v03 ? 64 : 96));
  const auto f = [&](const std::string& name) {
    const auto it = found.find(name);
    return it == found.end() ? 0 : it->second;
  };
  // By how much names say that they are shifted; `of_bank`: in front of "(0)".
  const auto shifted = [&](const std::string& name, const std::string& of_bank = "") {
    uint64_t value = f(name + of_bank);
    for (const uint32_t by : {4, 6, 7})
      value |= f(fmt::format("{}_SHIFTED{}{}", name, by, of_bank)) << by;
    return value;
  };
  const auto address = [&](const std::string& name, const std::string& of_bank = "") {
    return shifted(name + "_LOWER", of_bank) | shifted(name + "_UPPER", of_bank) << 32;
  };
  for (const char* one :
       {"INVALIDATE_SHADER_DATA_CACHE", "INVALIDATE_SHADER_CONSTANT_CACHE", "CWD_MEMBAR_TYPE",
        "API_VISIBLE_CALL_LIMIT", "SAMPLER_INDEX", "CONSTANT_BUFFER_VALID(0)"}) {
    EXPECT_EQ(f(one), 1u) << one;
  }
  const std::string dependent = v03 ? "DEPENDENT_QMD_" : "DEPENDENT_QMD0_";
  const bool chained = f(dependent + "ENABLE") != 0;
  *next = f(dependent + "POINTER") << 8;
  for (const char* one : {"ACTION", "PREFETCH"}) EXPECT_EQ(f(dependent + one), chained ? 1u : 0u);
  EXPECT_EQ(*next != 0, chained);
  EXPECT_EQ(f("QMD_MAJOR_VERSION"), generation.qmd_major);
  EXPECT_EQ(f("QMD_GROUP_ID"), 0x3fu);
  EXPECT_EQ(f("MIN_SM_CONFIG_SHARED_MEM_SIZE"), f("TARGET_SM_CONFIG_SHARED_MEM_SIZE"));
  EXPECT_EQ(f(v03 ? "SM_GLOBAL_CACHING_ENABLE" : "QMD_TYPE"), v03 ? 1u : 2u);
  const uint64_t bank_bytes = f("CONSTANT_BUFFER_SIZE_SHIFTED4(0)") * 16;
  const auto words = at(address("CONSTANT_BUFFER_ADDR", "(0)")).first(bank_bytes / 4);
  const size_t parameter = parameters_of(generation) / 4;  // even
  const std::string grid = v03 ? "CTA_RASTER_" : "GRID_";
  // As direct-submission.md measured: c[0x0] ntid, c[0xc] nctaid, c[0x18] the shared window (of
  // sm_86 alone), c[0x20] the local one, c[0x28] the stack pointer; of sm_120 ntid at 0x360, nctaid
  // at 0x370, the windows at 0x2f0 and 0x2f8, the stack pointer at 0x37c.
  const bool v05 = generation.qmd_major == 5;
  std::map<size_t, uint64_t> prefix;  // by word
  for (size_t axis = 0; axis < 3; ++axis) {
    prefix[(v05 ? 0x360 : 0) / 4 + axis] = f(fmt::format("CTA_THREAD_DIMENSION{}", axis));
    const char* const sizes[] = {"WIDTH", "HEIGHT", "DEPTH"};
    prefix[(v05 ? 0x370 : 0xc) / 4 + axis] = f(grid + sizes[axis]);
  }
  if (generation.qmd_major != 4) prefix[(v05 ? 0x2f4 : 0x1c) / 4] = 0x7294;
  prefix[(v05 ? 0x2fc : 0x24) / 4] = 0x7293;
  prefix[(v05 ? 0x37c : 0x28) / 4] = 0xfffdc0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i / 2 != parameter / 2) {
      EXPECT_EQ(words[i], prefix.contains(i) ? prefix[i] : 0u) << i;
    }
  }
  return fmt::format(
      "launch {:#x} grid {}x{}x{} block {}x{}x{} registers {} barriers {} shared {} {} {} local {} "
      "sass {:#x} bank {} args {:#x}",
      address("PROGRAM_ADDRESS"), f(grid + "WIDTH"),
      f(grid + "HEIGHT"), f(grid + "DEPTH"), f("CTA_THREAD_DIMENSION0"), f("CTA_THREAD_DIMENSION1"),
      f("CTA_THREAD_DIMENSION2"), f(v03 ? "REGISTER_COUNT_V" : "REGISTER_COUNT"),
      f("BARRIER_COUNT"), shifted("SHARED_MEMORY_SIZE"), f("MIN_SM_CONFIG_SHARED_MEM_SIZE"),
      f("MAX_SM_CONFIG_SHARED_MEM_SIZE"), shifted("SHADER_LOCAL_MEMORY_HIGH_SIZE"),
      f("SASS_VERSION"), bank_bytes, words[parameter] | uint64_t(words[parameter + 1]) << 32);
}

std::vector<std::string> Scene::done(const Encoded& encoded) const {
  const std::vector<uint32_t> launches = write(encoded.launches);
  std::vector<std::string> out;
  uint64_t source = 0, destination = 0, length = 0, qmd = 0;
  for (const MethodRun& m : decode_methods(write(encoded.methods))) {
    const auto& d = m.data;
    const auto pair = [&](size_t low, size_t high) { return d[low] | uint64_t(d[high]) << 32; };
    if (m.first == 0x5c) {
      EXPECT_LT(d[1], 256u);
      // 64 bits; a release waits for work before it.
      const std::string kind = d[4] == 0x1001003   ? "wait"
                               : d[4] == 0x1100001 ? "signal"
                               : d[4] == 0x3100001 ? "time"
                                                   : "BAD";
      out.push_back(fmt::format("{} {:#x}", kind, pair(0, 1)));
      if (kind != "time") out.back() += fmt::format(" {}", pair(2, 3));
    } else if (m.first == 0x78) {
      out.push_back(d[0] == 1 ? "idle" : "BAD");
    } else if (m.first == 0x20) {
      out.push_back("interrupt");
    } else if (m.first == 0x1698) {
      out.push_back(d[0] == 1 ? "invalidate code" : "BAD");
    } else if (m.first == 0x2b4) {
      qmd = uint64_t(d[0]) << 8;
    } else if (m.first == 0x2c0) {
      std::string then;
      for (uint64_t next = qmd; next != 0; then = "then ")
        out.push_back(d[0] == 9 ? then + done_launch(launches, next, &next) : "BAD");
    } else if (m.first == 0x400) {
      source = pair(1, 0), destination = pair(3, 2);
    } else if (m.first == 0x418) {
      length = d[0];
    } else if (m.first == 0x300) {
      out.push_back(fmt::format("copy {:#x} to {:#x} {}{}", source, destination, length,
                                d[0] == 0x186 ? "" : " BAD"));
    } else {
      out.push_back("BAD " + m.text());
    }
  }
  return out;
}

std::string golden_text(const Generation& g) {
  std::string text = "== setup\n";
  for (const PacketStream& s :
       {setup_compute(g), setup_local_memory(0x16'0000'0000, 0x20000), setup_copy(g)}) {
    for (const MethodRun& m : decode_methods(s.dwords)) text += m.text() + "\n";
  }
  for (bool copies : {false, true}) {
    Scene scene(g, copies);
    scene.sample();
    const Encoded encoded = scene.encode();
    text += copies ? "== copy\n" : "== compute\n";
    for (const MethodRun& m : decode_methods(scene.write(encoded.methods))) text += m.text() + "\n";
    const auto launches = scene.write(encoded.launches);
    for (uint32_t unit : encoded.launches.units) {
      const auto block = std::span(launches).subspan(unit, g.qmd_dwords);
      text += "qmd";
      for (const auto& [name, value] : decode_qmd(g.qmd_major, block))
        text += fmt::format("\n  {} {:#x}", name, value);
      text += "\n";
    }
  }
  return text;
}

TEST(NvEncode, GoldensOfEachGeneration) {
  for (const Generation* g : {&ampere(), &hopper(), &blackwell()}) {
    const std::string path =
        fmt::format("{}/tests/devices/nv/golden/{}.txt", TUFF_SOURCE_DIR, g->name);
    const std::string text = golden_text(*g);
    if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, text);
    EXPECT_EQ(os::read_text(path), text) << path;
  }
}

TEST(NvEncode, DecodedBackAsAsked) {
  SplitMix64 random(1);
  for (const Generation* g : {&ampere(), &hopper(), &blackwell()}) {
    for (bool copies : {false, true}) {
      for (int round = 0; round < 100; ++round) {
        Scene scene(*g, copies);
        scene.random(random, 1 + random.below(40));
        const Encoded encoded = scene.encode();
        ASSERT_EQ(scene.asked(), scene.done(encoded)) << g->name;
        // Another submission of the same list.
        scene.new_values(random);
        ASSERT_EQ(scene.asked(), scene.done(encoded)) << g->name;
      }
    }
  }
}

// A launch whose size comes from a slot does nothing where that is 0, and the next time again what
// it did.
TEST(NvEncode, ALaunchOfNoGroupsDoesNothing) {
  Scene scene(ampere(), false);
  scene.list.slot_count = 1;
  hcq::DispatchCmd d{&scene.programs[0], scene.span(0, 64), {1, 1, 1}, {}};
  d.group_slots[1] = 0;
  scene.add(d);
  const Encoded encoded = scene.encode();
  const auto launches = [&](uint64_t groups) {
    std::vector<uint32_t> out = encoded.methods.dwords;
    std::vector<uint64_t> values{groups, 1, kLaunch};
    encoded.patch_methods(values, out.data());
    size_t count = 0;
    for (const MethodRun& m : decode_methods(out)) count += m.first == 0x2c0;
    return count;
  };
  for (const uint64_t groups : {1, 0, 0, 5}) EXPECT_EQ(launches(groups), groups ? 1u : 0u);
}

TEST(NvEncode, TimestampsWant16Bytes) {
  Scene scene(hopper(), false);
  scene.list.timestamp_count = 1;
  scene.add(hcq::TimestampCmd{0});
  const EncodeInput in{scene.generation, scene.binding, scene.list, &scene.signals[0],
                       kTimestamps + 8};
  EXPECT_THROW(encode_compute(in), InvalidArgument);
}

// Banks beside bank 0, each by fields of its own (clc7c0qmd.h: 640+i, 1024+64i; clcbc0qmd.h:
// 416+4i, 1536+64i with addresses >> 6; clcec0qmd.h: 1856+4i, 1344+64i likewise).
TEST(NvEncode, FurtherConstantBanks) {
  for (const Generation* g : {&ampere(), &hopper(), &blackwell()}) {
    Scene scene(*g, false);
    scene.programs[0].kernel.banks = {{2, 100, 0x12'3456'7800}};
    scene.add(hcq::DispatchCmd{&scene.programs[0], scene.span(0, 64), {1, 1, 1}, {}});
    const std::vector<uint32_t> qmd = scene.write(scene.encode().launches);
    const auto bits = [&](uint32_t low, uint32_t width) {
      return qmd[low / 32] >> low % 32 & uint32_t((1ull << width) - 1);
    };
    const bool v03 = g->qmd_major == 3;
    const uint64_t address = 0x12'3456'7800ull >> (v03 ? 0 : 6);
    const bool v05 = g->qmd_major == 5;
    const uint32_t low = (v03 ? 1024 : v05 ? 1344 : 1536) + 128;
    EXPECT_EQ(bits(v03 ? 642 : v05 ? 1864 : 424, 1), 1u);
    EXPECT_EQ(bits(low, 32), uint32_t(address));
    EXPECT_EQ(bits(low + 32, v03 ? 17 : 19), uint32_t(address >> 32));
    EXPECT_EQ(bits(low + 32 + 19, 13), 112u / 16);
  }
}

// Every bit of a QMD belongs to a field that is read, or is refused.
TEST(NvDecoder, SeesEveryBitOfAQmd) {
  for (const Generation* g : {&ampere(), &hopper(), &blackwell()}) {
    Scene scene(*g, false);
    scene.sample();
    std::vector<uint32_t> qmd = scene.write(scene.encode().launches);
    qmd.resize(g->qmd_dwords);
    const auto read = [&] { return decode_qmd(g->qmd_major, qmd); };
    const QmdFields before = read();
    for (size_t bit = 0; bit < qmd.size() * 32; ++bit) {
      qmd[bit / 32] ^= 1u << bit % 32;
      QmdFields after;
      try {
        after = read();
      } catch (const BadStream&) {}
      EXPECT_NE(before, after) << g->name << " bit " << bit;
      qmd[bit / 32] ^= 1u << bit % 32;
    }
  }
}

TEST(NvEncode, GpfifoEntry) {
  // clc76f.h: GET 31:2, GET_HI 7:0, LEVEL 9:9 and LENGTH 30:10 of the second word.
  const uint64_t entry = gpfifo_entry(0xab'1234'5678, 1000);
  EXPECT_EQ(uint32_t(entry), 0x12345678u);
  EXPECT_EQ(entry >> 32 & 0xff, 0xabu);
  EXPECT_EQ(entry >> 41 & 1, 1u);
  EXPECT_EQ(entry >> 42, 1000u);
  EXPECT_THROW(gpfifo_entry(1ull << 40, 4), InternalError);
  EXPECT_THROW(gpfifo_entry(0x1000, 1u << 21), InternalError);
}

TEST(NvEncode, RefusesWhatChannelsCannotDo) {
  const auto refuses = [](bool copies, hcq::CommandBody body) {
    Scene scene(hopper(), copies);
    if (auto* d = std::get_if<hcq::DispatchCmd>(&body)) d->program = &scene.programs[0];
    scene.add(std::move(body));
    EXPECT_THROW(scene.encode(), Unsupported);
  };
  Scene memory(hopper(), false);
  refuses(false, hcq::DispatchCmd{nullptr, {}, {1, 1, 1}, memory.span(0, 12)});
  refuses(true, hcq::DispatchCmd{});
  for (bool copies : {false, true}) refuses(copies, hcq::HostCallCmd{});
}

TEST(NvEncode, RefusesLaunchesThatDoNotFitAQmd) {
  const auto refuses = [](auto change) {
    for (const Generation* g : {&hopper(), &blackwell()}) {
      Scene scene(*g, false);
      hcq::DispatchCmd d{&scene.programs[0], scene.span(0, 64), {1, 1, 1}, {}};
      change(scene, d);
      scene.add(d);
      EXPECT_THROW(scene.encode(), InvalidArgument) << g->name;
    }
  };
  refuses([](Scene&, hcq::DispatchCmd& d) { d.groups[1] = 65536; });
  refuses([](Scene& s, hcq::DispatchCmd&) { s.programs[0].kernel.shared_bytes = 228 * 1024 + 1; });
  refuses([](Scene& s, hcq::DispatchCmd&) { s.programs[0].kernel.registers = 512; });
}

}  // namespace
}  // namespace tuff::devices::nv
