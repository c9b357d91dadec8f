#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/env.h"
#include "base/os.h"
#include "devices/amd/scene.h"

namespace tuff::devices::amd {
namespace {

struct Setting {
  QueueKind kind;
  uint32_t xccs;
  const char* name;
};
std::vector<Setting> settings(const Generation& g) {
  std::vector<Setting> out{{QueueKind::Pm4, 1, "pm4"}, {QueueKind::Sdma, 1, "sdma"}};
  if (g.can_be_several) {
    out.push_back({QueueKind::Aql, 1, "aql of one XCC"});
    out.push_back({QueueKind::Aql, 8, "aql of eight XCCs"});
  }
  return out;
}

std::string golden_text(const Generation& g) {
  std::string text;
  for (const Setting& s : settings(g)) {
    Scene scene(g, s.kind, s.xccs);
    scene.sample();
    const Encoded encoded = scene.encode();
    text += fmt::format("== {}\n", s.name);
    if (s.kind == QueueKind::Aql)
      text += to_text(disassemble_aql(scene.packets(encoded))) + "-- indirect buffer\n";
    const auto ib = scene.ib(encoded);
    text += to_text(s.kind == QueueKind::Sdma ? disassemble_sdma(ib, scene.dialect)
                                              : disassemble_pm4(ib, scene.dialect));
  }
  return text;
}

Encoded without_unit(const Encoded& whole, size_t unit) {
  Encoded out = whole;
  const PacketStream& from = whole.ib;
  const uint32_t begin = from.units[unit];
  const uint32_t end =
      unit + 1 < from.units.size() ? from.units[unit + 1] : uint32_t(from.dwords.size());
  out.ib.dwords.erase(out.ib.dwords.begin() + begin, out.ib.dwords.begin() + end);
  out.ib.patches.clear();
  for (Patch p : from.patches) {
    if (p.dword >= begin && p.dword < end) continue;
    if (p.dword >= end) p.dword -= end - begin;
    out.ib.patches.push_back(p);
  }
  return out;
}

TEST(AmdEncode, GoldensOfEveryGeneration) {
  for (const Generation& g : generations()) {
    const std::string path =
        fmt::format("{}/tests/devices/amd/golden/{}.txt", TUFF_SOURCE_DIR, g.name);
    const std::string text = golden_text(g);
    if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, text);
    std::stringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(golden.str(), text) << path;
  }
}

// What was asked for is what is decoded, whatever the list.
TEST(AmdEncode, DecodedBackAsAsked) {
  SplitMix64 random(1);
  for (const Generation& g : generations()) {
    for (const Setting& s : settings(g)) {
      for (int round = 0; round < 40; ++round) {
        Scene scene(g, s.kind, s.xccs);
        scene.random(random, 1 + random.below(40));
        const Encoded encoded = scene.encode();
        ASSERT_EQ(scene.asked(), scene.done(encoded)) << g.name << " " << s.name;
      }
    }
  }
}

// New values through the patches give the dwords of a list that had them from the start.
TEST(AmdEncode, PatchedIsEncodedAnew) {
  SplitMix64 random(2);
  for (const Generation& g : generations()) {
    for (const Setting& s : settings(g)) {
      Scene scene(g, s.kind, s.xccs);
      scene.random(random, 60);
      const Encoded encoded = scene.encode();
      std::vector<uint32_t> ib = scene.ib(encoded), packets = scene.packets(encoded);
      // Another submission over the same memory.
      Scene other(g, s.kind, s.xccs);
      other.random(random, 0);
      scene.slots = other.slots;
      scene.timeline_value = other.timeline_value;
      scene.ib_address += 0x100000;
      for (size_t i = 0; i < scene.signals.size(); ++i)
        scene.signals[i].slot = other.signals[i].slot;
      const auto values = scene.values(encoded);
      encoded.ib.patch(values, ib.data());
      encoded.packets.patch(values, packets.data());
      EXPECT_EQ(ib, scene.ib(encoded));
      EXPECT_EQ(packets, scene.packets(encoded));
      ASSERT_EQ(scene.asked(), scene.done(encoded)) << g.name << " " << s.name;

      Scene fixed(g, s.kind, s.xccs);
      fixed.take_with_values(scene);
      const Encoded anew = fixed.encode();
      EXPECT_EQ(fixed.ib(anew), ib) << g.name << " " << s.name;
      EXPECT_EQ(fixed.packets(anew), packets) << g.name << " " << s.name;
    }
  }
}

TEST(AmdEncode, PatchesNameEachDwordOnce) {
  SplitMix64 random(3);
  for (const Setting& s : settings(*find_generation("gfx942"))) {
    Scene scene(*find_generation("gfx942"), s.kind, s.xccs);
    scene.random(random, 100);
    const Encoded encoded = scene.encode();
    for (const PacketStream* stream : {&encoded.ib, &encoded.packets}) {
      for (size_t i = 0; i < stream->patches.size(); ++i) {
        EXPECT_LT(stream->patches[i].dword, stream->dwords.size());
        if (i > 0) {
          EXPECT_LT(stream->patches[i - 1].dword, stream->patches[i].dword);
        }
        EXPECT_EQ(stream->dwords[stream->patches[i].dword], 0u);
      }
    }
  }
}

TEST(AmdEncode, RefusesWhatQueuesCannotDo) {
  const Generation& g = *find_generation("gfx1100");
  const auto refuses = [&](QueueKind kind, hcq::CommandBody body) {
    Scene scene(kind == QueueKind::Aql ? *find_generation("gfx942") : g, kind);
    scene.add(std::move(body));
    EXPECT_THROW(scene.encode(), Unsupported);
  };
  for (QueueKind kind : {QueueKind::Pm4, QueueKind::Aql, QueueKind::Sdma})
    refuses(kind, hcq::HostCallCmd{});
  Scene programs(g, QueueKind::Pm4);
  const auto launch = [&] {
    return hcq::DispatchCmd{&programs.programs[0], programs.span(0, 64), {1, 1, 1}, {}};
  };
  refuses(QueueKind::Sdma, launch());
  refuses(QueueKind::Aql, launch());  // of wave32
  for (uint16_t property : {kDispatchPtr, kQueuePtr, kDispatchId}) {
    programs.programs[0].kernel.properties = property;
    refuses(QueueKind::Pm4, launch());
  }
  programs.programs[0].kernel.properties = kKernargSegmentPtr;
  hcq::DispatchCmd indirect = launch();
  indirect.indirect = programs.span(0, 12);
  refuses(QueueKind::Aql, indirect);
}

// What comes from a slot may be 0; HSA allows no such packet.
TEST(AmdEncode, AqlLaunchesGuardTheirSlots) {
  Scene s(*find_generation("gfx942"), QueueKind::Aql);
  s.list.slot_count = 2;
  s.add(hcq::DispatchCmd{&s.programs[2], s.span(0, 64), {5, 6, 7}, {}, {-1, 1, -1}});
  s.add(hcq::DispatchCmd{&s.programs[2], s.span(0, 64), {5, 6, 7}, {}});
  const Encoded encoded = s.encode();
  ASSERT_EQ(encoded.packets.guards.size(), 1u);
  const PacketStream::Guard guard = encoded.packets.guards[0];
  s.slots = {3, 4};
  EXPECT_EQ(s.packets(encoded)[guard.dword], 4 * s.programs[2].kernel.local[1]);
  EXPECT_EQ(guard.dword, encoded.packets.units[guard.unit] + 4);
  s.slots = {3, 0};
  EXPECT_EQ(s.packets(encoded)[guard.dword], 0u);
  s.list.commands.clear();
  s.add(hcq::DispatchCmd{&s.programs[2], s.span(0, 64), {5, 6, 7}, {}, {-1, 2, -1}});
  EXPECT_THROW(s.encode(), InvalidArgument);
}

TEST(AmdEncode, RefusesMalformedLists) {
  const auto refuses = [](hcq::CommandBody body, auto change) {
    Scene scene(*find_generation("gfx1201"), QueueKind::Pm4);
    if (auto* s = std::get_if<hcq::SignalCmd>(&body)) s->signal = &scene.signals[1];
    if (auto* c = std::get_if<hcq::CopyCmd>(&body)) *c = {scene.span(0, 64), scene.span(64, 32)};
    if (auto* d = std::get_if<hcq::DispatchCmd>(&body)) d->program = &scene.programs[1];
    change(scene);
    scene.add(std::move(body));
    EXPECT_THROW(scene.encode(), InvalidArgument);
  };
  const auto nothing = [](Scene&) {};
  refuses(hcq::SignalCmd{nullptr, 0}, nothing);
  refuses(hcq::TimestampCmd{0}, nothing);
  refuses(hcq::CopyCmd{}, nothing);
  refuses(hcq::DispatchCmd{},
          [](Scene& s) { s.programs[1].kernel.private_bytes = s.scratch.size.bytes_per_lane + 1; });
}

// Nothing is written that nobody would miss.
TEST(AmdEncode, EveryPacketIsNeeded) {
  SplitMix64 random(4);
  for (const Generation& g : generations()) {
    for (QueueKind kind : {QueueKind::Pm4, QueueKind::Sdma}) {
      Scene scene(g, kind);
      scene.random(random, 15);
      const Encoded whole = scene.encode();
      ASSERT_EQ(scene.asked(), scene.done(whole));
      for (size_t i = 0; i < whole.ib.units.size(); ++i) {
        std::vector<std::string> done;
        try {
          done = scene.done(without_unit(whole, i));
        } catch (const BadPacket&) {}
        EXPECT_NE(scene.asked(), done) << g.name << " unit " << i;
      }
    }
  }
}

// One list, submitted while its timeline passes 2^31 and 2^32.
TEST(AmdEncode, TimelinePassesWrapsOf32Bits) {
  for (uint64_t around : {1ull << 31, 1ull << 32}) {
    Scene scene(*find_generation("gfx1100"), QueueKind::Pm4);
    scene.sample();
    const Encoded encoded = scene.encode();
    TestSignal& timeline = scene.signals[0];
    timeline.slot = (around - 1) / SignalEpoch::kStep << 32 | (around - 1) % SignalEpoch::kStep;
    timeline.epoch.set(around - 9);
    for (uint64_t v = around - 8; v < around + 8; ++v) {
      scene.timeline_value = v;
      if (timeline.epoch.must_rebase(v)) timeline.epoch.rebase(v);
      ASSERT_EQ(scene.asked(), scene.done(encoded));
      // The GPU writes the word that the completion's packet holds.
      const Packet done = disassemble_pm4(scene.ib(encoded), scene.dialect).end()[-2];
      ASSERT_EQ(done["address"], timeline.address);
      timeline.slot = (timeline.slot & ~0xffffffffull) | done["value"];
      EXPECT_EQ(timeline.value(), v);
    }
  }
}

// The disassembler is no rubber stamp: any single bit flipped in what it reads is either refused or
// changes what is read.
TEST(AmdDisassembler, SeesEveryBit) {
  for (const char* name : {"gfx942", "gfx1030", "gfx1100", "gfx1200"}) {
    const Generation& g = *find_generation(name);
    for (const Setting& s : settings(g)) {
      Scene scene(g, s.kind, s.xccs);
      scene.sample();
      const Encoded encoded = scene.encode();
      const bool aql = s.kind == QueueKind::Aql;
      std::vector<uint32_t> dwords = aql ? scene.packets(encoded) : scene.ib(encoded);
      const auto read = [&] {
        if (aql) return to_text(disassemble_aql(dwords));
        return to_text(s.kind == QueueKind::Sdma ? disassemble_sdma(dwords, scene.dialect)
                                                 : disassemble_pm4(dwords, scene.dialect));
      };
      const std::string before = read();
      for (size_t bit = 0; bit < dwords.size() * 32; ++bit) {
        dwords[bit / 32] ^= 1u << bit % 32;
        std::string after;
        try {
          after = read();
        } catch (const BadPacket&) {}
        EXPECT_NE(before, after) << g.name << " " << s.name << " bit " << bit;
        dwords[bit / 32] ^= 1u << bit % 32;
      }
    }
  }
}

}  // namespace
}  // namespace tuff::devices::amd
