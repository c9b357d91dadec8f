// The command processors of an emulated GPU on packets written by hand: what each does, and that
// each field that is wrong stops the queue with a finding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "emu/amd/clock.h"
#include "emu/gpu_scene.h"
#include "emu/llvm_tools.h"

namespace tuff::emu::amd {
namespace {

using Dwords = std::vector<uint32_t>;
using Block = GpuScene::Block;

uint32_t lo(uint64_t v) { return uint32_t(v); }
uint32_t hi(uint64_t v) { return uint32_t(v >> 32); }
Dwords pm4(uint32_t opcode, Dwords body) {
  body.insert(body.begin(), 3u << 30 | uint32_t(body.size() - 1) << 16 | opcode << 8);
  return body;
}
Dwords operator+(Dwords a, const Dwords& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

constexpr uint32_t kReleaseWb = 0x514 | 1u << 21, kWord = 1u << 29, kClock = 3u << 29;
Dwords release(uint64_t address, uint32_t value, uint32_t event = kReleaseWb,
               uint32_t select = kWord, uint32_t context = 0) {
  return pm4(0x49, {event, select, lo(address), hi(address), value, 0, context});
}
Dwords wait_for(uint64_t address, uint32_t value, uint32_t control = 5 | 1u << 4) {
  return pm4(0x3c, {control, lo(address), hi(address), value, ~0u, 4});
}
Dwords acquire(uint32_t gcr) { return pm4(0x58, {0, ~0u, 0xff, 0, 0, 10, gcr}); }
Dwords dma(uint64_t dst, uint64_t src, uint32_t bytes,
           uint32_t control = 3u << 20 | 3u << 29 | 1u << 31) {
  return pm4(0x50, {control, lo(src), hi(src), lo(dst), hi(dst), bytes});
}
Dwords hdp_flush() { return pm4(0x3c, {3 | 1u << 6, 0xe26, 0xe27, 4, 4, 4}); }
const Dwords kIdle = pm4(0x46, {7 | 4u << 8});
constexpr uint32_t kAcquireAll = 1 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 14 | 1 << 15;

// A queue, some memory, and what came of packets.
struct Bed : GpuScene {
  explicit Bed(QueueKind kind = QueueKind::Pm4, uint32_t ring_bytes = 4096,
               const emu_api::ProfileOptions& profile = {})
      : GpuScene(1, 1, profile), ring(queue(0, kind, ring_bytes)) {}
  void send(const Dwords& dwords) {
    ring.push(dwords);
    ring.announce();
    run();
  }
  Ring& ring;
  Block word = system(4096), a = vram(0, 4096), b = vram(0, 4096);
};

// ---- PM4

TEST(GpuPm4, ReleaseWritesWordsClocksAndInterrupts) {
  Bed bed;
  const uint64_t before = gpu_clock();
  bed.send(release(bed.word.address, 7) +
           release(bed.word.address + 8, 5, 0x514, kWord | 2u << 24, 33) +
           release(bed.word.address + 16, 0, 0x514, kClock));
  EXPECT_EQ(bed.findings_text(), "");
  EXPECT_EQ(bed.word.word(0), 7u);
  EXPECT_EQ(bed.word.word(2), 5u);
  EXPECT_EQ(bed.interrupts, std::vector<uint32_t>{33});
  uint64_t clock;
  std::memcpy(&clock, bed.word.host + 16, 8);
  EXPECT_GE(clock, before);
  EXPECT_LE(clock, gpu_clock());
  EXPECT_EQ(bed.gpu(0).stats().packets, 3u);
}

TEST(GpuPm4, WaitsForWordsAndSaysSo) {
  Bed bed;
  bed.send(wait_for(bed.word.address, 3) + release(bed.word.address + 4, 1));
  EXPECT_EQ(bed.word.word(1), 0u);
  EXPECT_NE(bed.gpu(0).blocked().find(fmt::format("{:#x}", bed.word.address)), std::string::npos);
  EXPECT_NE(bed.gpu(0).blocked().find(">= 0x3"), std::string::npos) << bed.gpu(0).blocked();
  bed.word.set(0, 4);
  bed.run();
  EXPECT_EQ(bed.word.word(1), 1u);
  EXPECT_EQ(bed.gpu(0).blocked(), "");
}

TEST(GpuPm4, CopiesThroughTheL2) {
  Bed bed;
  bed.a.set(9, 99);
  const Dwords copy = hdp_flush() + acquire(kAcquireAll) + dma(bed.b.address, bed.a.address, 4096);
  bed.send(copy);
  EXPECT_EQ(bed.b.word(9), 0u);  // not written back yet
  bed.send(release(bed.word.address, 1));
  EXPECT_EQ(bed.b.word(9), 99u);
  EXPECT_EQ(bed.findings_text(), "");
}

TEST(GpuPm4, TheRingWrapsAndItsReadPointerToo) {
  Bed bed(QueueKind::Pm4, 4096);
  for (uint32_t i = 1; i <= 1000; ++i) {
    bed.send(release(bed.word.address, i));
    ASSERT_EQ(bed.word.word(0), i);
    ASSERT_EQ(bed.ring.read_pointer(), i * 8 % 1024);
  }
  EXPECT_EQ(bed.findings_text(), "");
}

TEST(GpuPm4, RunsIndirectBuffers) {
  Bed bed;
  const Block ib = bed.system(4096);
  const Dwords body = release(bed.word.address, 3) + pm4(0x10, {1, 2}) + Dwords{0xffff1000} +
                      pm4(0x23, {2u << 24 | 8}) + release(bed.word.address, 4) +
                      release(bed.word.address + 4, 5);
  for (size_t i = 0; i < body.size(); ++i) ib.set(i, body[i]);
  bed.send(pm4(0x3f, {lo(ib.address), hi(ib.address), uint32_t(body.size()) | 1u << 23}));
  EXPECT_EQ(bed.findings_text(), "");
  EXPECT_EQ(bed.word.word(0), 3u);  // what another XCC alone executes is left out
  EXPECT_EQ(bed.word.word(1), 5u);
}

struct Wrong {
  const char* name;
  Dwords (*packets)(const Bed& bed);
  const char* text;  // part of the finding
};

const Wrong kWrong[] = {
    {"opcode", [](const Bed&) { return pm4(0x2a, {0}); }, "opcode 0x2a"},
    {"type 2", [](const Bed&) { return Dwords{2u << 30}; }, "type 2"},
    {"predicate", [](const Bed&) { return Dwords{pm4(0x10, {0})[0] | 1, 0}; }, "predicate"},
    {"too long", [](const Bed&) { return pm4(0x46, {7 | 4u << 8, 0}); }, "EVENT_WRITE has 2"},
    {"event", [](const Bed&) { return pm4(0x46, {8 | 4u << 8}); }, "event 0x8"},
    {"release event", [](const Bed& b) { return release(b.word.address, 1, 0x50f); }, "event 0xf"},
    {"release bit", [](const Bed& b) { return release(b.word.address, 1, 0x514 | 1u << 31); },
     "reserved bits"},
    {"release select", [](const Bed& b) { return release(b.word.address, 1, 0x514, 4u << 29); },
     "DATA_SEL 4"},
    {"release address", [](const Bed& b) { return release(b.word.address + 2, 1); },
     "multiple of 4"},
    {"clock address", [](const Bed& b) { return release(b.word.address + 4, 0, 0x514, kClock); },
     "multiple of 8"},
    {"canonical", [](const Bed&) { return release(1ull << 50, 1); }, "canonical"},
    {"wait function", [](const Bed& b) { return wait_for(b.word.address, 1, 7 | 1u << 4); },
     "function 7"},
    {"wait register", [](const Bed&) { return pm4(0x3c, {3 | 1u << 6, 0xe28, 0xe27, 4, 4, 4}); },
     "registers 0xe28"},
    {"HDP of gfx", [](const Bed&) { return pm4(0x3c, {3 | 1u << 6, 0xe26, 0xe27, 1, 1, 4}); },
     "HDP flush of 0x1"},
    {"part of memory", [](const Bed&) { return pm4(0x58, {0, 16, 0, 0, 0, 10, 1 << 8}); },
     "only all"},
    {"GCR", [](const Bed&) { return acquire(1u << 13); }, "GCR_CNTL"},
    {"copy past the L2", [](const Bed& b) { return dma(b.b.address, b.a.address, 4, 1u << 31); },
     "only through"},
    {"copy of nothing", [](const Bed& b) { return dma(b.b.address, b.a.address, 0); }, "no bytes"},
    {"register", [](const Bed&) { return pm4(0x76, {0x219, 0}); }, "register 0x219"},
    {"no register", [](const Bed&) { return pm4(0x76, {0x20c}); }, "sets nothing"},
    {"predication in the ring", [](const Bed&) { return pm4(0x23, {1u << 24}); }, "outside"},
    {"no valid bit",
     [](const Bed& b) { return pm4(0x3f, {lo(b.word.address), hi(b.word.address), 4}); },
     "not VALID"},
    {"dispatch of nothing known", [](const Bed&) { return pm4(0x15, {1, 1, 1, 5 | 1u << 15}); },
     "never written"},
    {"dispatch of waves of 64", [](const Bed&) { return pm4(0x15, {1, 1, 1, 5}); }, "64 lanes"},
    {"initiator", [](const Bed&) { return pm4(0x15, {1, 1, 1, 4 | 1u << 15}); }, "SHADER_EN"},
};

TEST(GpuPm4, WhatIsWrongStopsTheQueue) {
  for (const Wrong& wrong : kWrong) {
    Bed bed;
    bed.send(wrong.packets(bed) + release(bed.word.address + 64, 1));
    ASSERT_EQ(bed.findings.size(), 1u) << wrong.name;
    EXPECT_EQ(bed.findings[0].kind, FindingKind::BadPacket) << wrong.name;
    EXPECT_NE(bed.findings[0].what.find(wrong.text), std::string::npos)
        << wrong.name << ": " << bed.findings[0].what;
    EXPECT_EQ(bed.errors.size(), 1u) << wrong.name;
    EXPECT_EQ(bed.word.word(16), 0u) << wrong.name;
    EXPECT_NE(bed.gpu(0).blocked().find("stands still"), std::string::npos);
  }
}

TEST(GpuPm4, AnnouncedPacketsAreWhole) {
  Bed bed;
  bed.send({pm4(0x49, Dwords(7))[0], 0});
  ASSERT_EQ(bed.findings.size(), 1u);
  EXPECT_NE(bed.findings[0].what.find("announced"), std::string::npos) << bed.findings[0].what;
}

TEST(GpuPm4, FaultsOfTheProcessorHaveAddresses) {
  Bed bed;
  bed.send(dma(bed.b.address, bed.a.address + 4096, 64));
  ASSERT_EQ(bed.faults.size(), 1u);
  EXPECT_EQ(bed.faults[0].address, bed.a.address + 4096);
  EXPECT_FALSE(bed.faults[0].write);
  EXPECT_EQ(bed.count(FindingKind::PageFault), 1u);
}

TEST(GpuPm4, ReleaseNeedsAnEndOfPipeBuffer) {
  GpuScene scene(1, 1);
  GpuScene::Ring ring = scene.queue(0, QueueKind::Pm4);
  const Block word = scene.system(4096);
  ring.ring = scene.system(4096);
  ring.pointers = scene.system(4096);
  ring.setup.id = 9;
  ring.setup.ring_address = ring.ring.address;
  ring.setup.read_pointer_address = ring.pointers.address;
  ring.setup.write_pointer_address = ring.pointers.address + 8;
  ring.setup.eop_address = 0;
  GpuScene::Ring& bare = scene.attach(0, ring);
  bare.push(release(word.address, 1));
  bare.announce();
  scene.run();
  EXPECT_EQ(scene.count(FindingKind::BadPacket), 1u) << scene.findings_text();
}

TEST(GpuPm4, TheWritePointerComesBeforeTheDoorbell) {
  Bed bed;
  bed.ring.push(release(bed.word.address, 1));
  bed.ring.doorbell = bed.ring.written;
  bed.run();
  ASSERT_EQ(bed.findings.size(), 1u);
  EXPECT_NE(bed.findings[0].what.find("write pointer"), std::string::npos);
}

TEST(GpuPm4, StopsWhereItsListenerSays) {
  Bed bed;
  bed.packets_left = 1;
  bed.send(release(bed.word.address, 1) + release(bed.word.address, 2));
  EXPECT_EQ(bed.word.word(0), 1u);
  bed.packets_left = 9;
  bed.run();
  EXPECT_EQ(bed.word.word(0), 2u);
}

TEST(GpuPm4, AResetEndsAllQueues) {
  Bed bed;
  bed.gpu(0).reset();
  bed.send(release(bed.word.address, 1));
  EXPECT_EQ(bed.word.word(0), 0u);
  EXPECT_NE(bed.gpu(0).blocked().find("reset"), std::string::npos);
}

// ---- SDMA

Dwords sdma_copy(uint64_t dst, uint64_t src, uint32_t bytes) {
  return {1, bytes - 1, 0, lo(src), hi(src), lo(dst), hi(dst)};
}
Dwords fence(uint64_t address, uint32_t value, uint32_t header = 5 | 3u << 16) {
  return {header, lo(address), hi(address), value};
}
Dwords gcr(uint32_t control) { return {0x111, 0, control << 16, 0, 0}; }

TEST(GpuSdma, CopiesFencesTrapsAndTells) {
  Bed bed(QueueKind::Sdma);
  bed.a.set(3, 21);
  const Dwords flush{8, 0, 1u << 31, 0, 0, 0}, trap{6, 12};
  const Dwords time{0x20d, lo(bed.word.address + 32), hi(bed.word.address + 32)};
  bed.send(flush + gcr(1 << 14 | 1 << 15) + sdma_copy(bed.b.address, bed.a.address, 256) +
           Dwords{0} + gcr(1 << 15) + fence(bed.word.address, 4) + time + trap);
  EXPECT_EQ(bed.findings_text(), "");
  EXPECT_EQ(bed.b.word(3), 21u);
  EXPECT_EQ(bed.word.word(0), 4u);
  EXPECT_NE(bed.word.word(8), 0u);
  EXPECT_EQ(bed.interrupts, std::vector<uint32_t>{12});
  EXPECT_EQ(bed.ring.read_pointer(), bed.ring.written);
}

TEST(GpuSdma, WaitsForWords) {
  Bed bed(QueueKind::Sdma);
  const uint64_t at = bed.word.address;
  bed.send(Dwords{8 | 5u << 28 | 1u << 31, lo(at), hi(at), 2, ~0u, 0xfff0004} + fence(at + 4, 1));
  EXPECT_EQ(bed.word.word(1), 0u);
  bed.word.set(0, 2);
  bed.run();
  EXPECT_EQ(bed.word.word(1), 1u);
}

const Wrong kWrongSdma[] = {
    {"op", [](const Bed&) { return Dwords{2}; }, "op 0x2"},
    {"fence", [](const Bed& b) { return fence(b.word.address, 1, 5); }, "MTYPE 0"},
    {"fence address", [](const Bed& b) { return fence(b.word.address + 1, 1); }, "multiple of 4"},
    {"time address",
     [](const Bed& b) { return Dwords{0x20d, lo(b.word.address + 8), hi(b.word.address)}; },
     "multiple of 32"},
    {"copy",
     [](const Bed& b) {
       Dwords d = sdma_copy(b.b.address, b.a.address, 8);
       d[2] = 1;
       return d;
     },
     "parameters"},
    {"range", [](const Bed&) { return Dwords{0x111, 1 << 7, 1u << 31, 0, 0}; }, "range"},
    {"register", [](const Bed&) { return Dwords{8, 4, 0, 1, 1, 0}; }, "flushes HDP"},
    {"gives up",
     [](const Bed& b) {
       return Dwords{8 | 3u << 28 | 1u << 31, lo(b.word.address), hi(b.word.address), 0, ~0u, 4};
     },
     "gives up"},
    {"cut off", [](const Bed&) { return Dwords{6}; }, "announced"},
};

TEST(GpuSdma, WhatIsWrongStopsTheQueue) {
  for (const Wrong& wrong : kWrongSdma) {
    Bed bed(QueueKind::Sdma);
    bed.send(wrong.packets(bed));
    ASSERT_EQ(bed.findings.size(), 1u) << wrong.name;
    EXPECT_NE(bed.findings[0].what.find(wrong.text), std::string::npos)
        << wrong.name << ": " << bed.findings[0].what;
  }
}

TEST(GpuSdma, PacketsDoNotStraddleTheEnd) {
  Bed bed(QueueKind::Sdma, 4096);
  bed.send(Dwords(1022, 0));
  EXPECT_EQ(bed.findings_text(), "");
  bed.send(fence(bed.word.address, 1));
  ASSERT_EQ(bed.findings.size(), 1u);
  EXPECT_NE(bed.findings[0].what.find("straddles"), std::string::npos);
}

// ---- AQL

TEST(GpuAql, RunsBarriersAndVendorPacketsAndFreesThem) {
  Bed bed(QueueKind::Aql);
  const Block ib = bed.system(4096);
  const Dwords body = release(bed.word.address, 3);
  for (size_t i = 0; i < body.size(); ++i) ib.set(i, body[i]);
  Dwords barrier(16), jump(16);
  barrier[0] = 3 | 1 << 8 | 2 << 9 | 2 << 11;
  jump[0] = 1 << 8 | 1u << 16;
  jump[1] = 0xc0023f00;
  jump[2] = lo(ib.address);
  jump[3] = hi(ib.address);
  jump[4] = uint32_t(body.size()) | 1u << 23;
  jump[5] = 10;
  for (uint32_t round = 1; round <= 100; ++round) {  // more than the ring holds
    bed.word.set(0, 0);
    bed.send(barrier + jump);
    ASSERT_EQ(bed.word.word(0), 3u) << round << bed.findings_text();
    ASSERT_EQ(bed.ring.read_pointer(), 2 * round);
  }
  for (uint32_t i = 0; i < 1024; i += 16) EXPECT_EQ(bed.ring.ring.word(i) & 0xff, 1u);
}

TEST(GpuAql, AnInvalidPacketIsWaitedFor) {
  Bed bed(QueueKind::Aql);
  Dwords barrier(16);
  barrier[0] = 1;
  bed.send(barrier);
  EXPECT_EQ(bed.ring.read_pointer(), 0u);
  bed.ring.ring.set(0, 3);
  bed.run();
  EXPECT_EQ(bed.ring.read_pointer(), 1u);
  EXPECT_EQ(bed.findings_text(), "");
}

TEST(GpuAql, WhatIsWrongStopsTheQueue) {
  for (const auto& [at, value, text] :
       {std::tuple{0, 4u, "type 4"}, std::tuple{0, 3u | 3 << 9, "header"},
        std::tuple{3, 1u, "dependency"}, std::tuple{14, 8u, "signal"}}) {
    Bed bed(QueueKind::Aql);
    Dwords barrier(16);
    barrier[0] = 3;
    barrier[at] = value;
    bed.send(barrier);
    ASSERT_EQ(bed.findings.size(), 1u) << text;
    EXPECT_NE(bed.findings[0].what.find(text), std::string::npos) << bed.findings[0].what;
  }
}

// ---- kernels

struct KernelBed : Bed {
  explicit KernelBed(const emu_api::ProfileOptions& profile = {})
      : Bed(QueueKind::Pm4, 4096, profile) {
    file = testing::assemble(scene_kernels());
    code = vram(0, 16384);
  }
  // Everything that a dispatch of one group needs, and the dispatch.
  Dwords launch(const std::string& name, const Block& args, uint32_t at = 0) {
    const rdna::Kernel k = place(code, file, name);
    const uint64_t entry = k.entry_address >> 8, block = args.address + at;
    return pm4(0x76, {0x20c, lo(entry), hi(entry)}) +
           pm4(0x76, {0x212, k.descriptor.rsrc1, k.descriptor.rsrc2}) + pm4(0x76, {0x228, 0}) +
           pm4(0x76, {0x215, 0}) + pm4(0x76, {0x218, 0}) + pm4(0x76, {0x210, 0, 0}) +
           pm4(0x76, {0x21b, 0, 0, 0}) + pm4(0x76, {0x204, 0, 0, 0, 32, 1, 1}) +
           pm4(0x76, {0x240, lo(block), hi(block)}) + pm4(0x15, {1, 1, 1, 5 | 1u << 15});
  }
  void arguments(const Block& args, size_t at, uint64_t dst, uint64_t src, uint32_t k) {
    args.set64(at, dst);
    args.set64(at + 8, src);
    args.set(at / 4 + 4, k);
  }
  const Dwords begin = kIdle + hdp_flush() + acquire(kAcquireAll);
  std::vector<uint8_t> file;
  Block code, args = system(4096);
};

TEST(GpuKernels, WriteWhatTheHostSeesAfterARelease) {
  KernelBed bed;
  bed.a.set(4, 40);
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
  bed.send(bed.begin + bed.launch("add", bed.args) + release(bed.word.address, 1));
  EXPECT_EQ(bed.findings_text(), "");
  EXPECT_EQ(bed.b.word(4), 42u);
  EXPECT_EQ(bed.gpu(0).stats().dispatches, 1u);
}

TEST(GpuKernels, AreProfiledInTheirOrderWithTheL2AsItWasLeft) {
  std::vector<emu_api::KernelProfile> profiles;
  KernelBed bed({"780m", true, [&](const emu_api::KernelProfile& p) { profiles.push_back(p); }});
  bed.a.set(4, 40);
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
  const Dwords add = bed.launch("add", bed.args);
  bed.send(bed.begin + add + kIdle + acquire(kAcquireAll) + add + release(bed.word.address, 1));
  EXPECT_EQ(bed.findings_text(), "");
  EXPECT_EQ(bed.b.word(4), 42u);
  ASSERT_EQ(profiles.size(), 2u);
  for (const auto& p : profiles) {
    EXPECT_EQ(p.kernel, "add");
    EXPECT_EQ(p.chip, "780m");
    EXPECT_EQ(p.waves, 1u);
    EXPECT_EQ(p.bytes_loaded, 128u);
    EXPECT_EQ(p.bytes_stored, 128u);
    EXPECT_EQ(p.lines_loaded, 1u);
    EXPECT_EQ(p.instructions.size(), 10u);
  }
  EXPECT_EQ(profiles[0].dram_bytes_read, 256u);
  EXPECT_EQ(profiles[1].dram_bytes_read, 0u);
  EXPECT_LT(profiles[1].latency_us, profiles[0].latency_us);
}

TEST(GpuKernels, FaultsNameKernelInstructionAndAddress) {
  KernelBed bed;
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address + 4096, 2);
  bed.send(bed.begin + bed.launch("add", bed.args));
  ASSERT_EQ(bed.faults.size(), 1u);
  EXPECT_EQ(bed.faults[0].address, bed.a.address + 4096);
  ASSERT_EQ(bed.findings.size(), 1u);
  EXPECT_EQ(bed.findings[0].kind, FindingKind::Kernel);
  EXPECT_NE(bed.findings[0].what.find("add: "), std::string::npos) << bed.findings[0].what;
  EXPECT_NE(bed.findings[0].what.find("global_load_b32"), std::string::npos);
}

// Two kernels and what stands between them; what is found without it.
void expect_between(const Dwords& between, FindingKind kind, const char* second, const char* text) {
  KernelBed bed;
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
  bed.arguments(bed.args, 128, bed.a.address, bed.b.address, 2);
  bed.send(bed.begin + bed.launch("add", bed.args) + between + bed.launch(second, bed.args, 128) +
           release(bed.word.address, 1));
  ASSERT_GE(bed.findings.size(), 1u) << text;
  EXPECT_EQ(bed.findings[0].kind, kind) << bed.findings_text();
  EXPECT_NE(bed.findings[0].what.find(text), std::string::npos) << bed.findings_text();
}

TEST(GpuKernels, WhatIsMissingBetweenThemIsNamed) {
  const uint32_t k = 1 << 7, v = 1 << 8, one = 1 << 9;
  expect_between(acquire(k | v | one), FindingKind::ConcurrentUse, "add", "kernel `add`");
  expect_between(kIdle, FindingKind::StaleData, "add", "GLV_INV");
  expect_between(kIdle + acquire(k | one), FindingKind::StaleData, "add", "GLV_INV");
  expect_between(kIdle + acquire(k | v), FindingKind::StaleData, "add", "GL1_INV");
  expect_between(kIdle + acquire(v | one), FindingKind::StaleData, "scalar", "GLK_INV");
  expect_between(acquire(k | v | one) + kIdle, FindingKind::StaleData, "add", "invalidated");
  expect_between(kIdle + acquire(k | v | one | 1 << 14), FindingKind::StaleData, "add",
                 "GL2_INV without GL2_WB");
}

// The host loads other code where some has run.
TEST(GpuKernels, LoadedCodeThatNobodyInvalidatedForIsNamed) {
  for (const bool invalidates : {true, false}) {
    KernelBed bed;
    bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
    const Dwords launch = bed.launch("set", bed.args);
    const rdna::Kernel set = bed.place(bed.code, bed.file, "set"),
                       set2 = bed.place(bed.code, bed.file, "set2");
    bed.send(bed.begin + launch + release(bed.word.address, 1));
    EXPECT_EQ(bed.findings_text(), "");
    EXPECT_EQ(bed.b.word(0), 2u);
    const auto code_of = [&](const rdna::Kernel& k) {
      return bed.code.host + (k.entry_address - bed.code.address);
    };
    std::memcpy(code_of(set), code_of(set2), 256);
    const uint32_t caches = invalidates ? kAcquireAll : kAcquireAll & ~1u;
    bed.send(kIdle + hdp_flush() + acquire(caches) + launch + release(bed.word.address, 2));
    EXPECT_EQ(bed.b.word(0), invalidates ? 3u : 2u);
    if (invalidates) {
      EXPECT_EQ(bed.findings_text(), "");
      continue;
    }
    ASSERT_GE(bed.findings.size(), 1u);
    EXPECT_EQ(bed.findings[0].kind, FindingKind::StaleCode) << bed.findings_text();
    EXPECT_NE(bed.findings[0].what.find("set: "), std::string::npos) << bed.findings_text();
    EXPECT_NE(bed.findings[0].what.find("GLI_INV"), std::string::npos) << bed.findings_text();
  }
}

TEST(GpuKernels, OneThatRunsForEverIsNamedWithItsInstruction) {
  KernelBed bed;
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
  const Dwords launch = bed.launch("set", bed.args);
  const rdna::Kernel set = bed.place(bed.code, bed.file, "set");
  bed.code.set((set.entry_address - bed.code.address) / 4, 0xBFA0FFFF);  // s_branch to itself
  bed.ring.push(bed.begin + launch);
  bed.ring.announce();
  for (int k = 0; k < 100; ++k) bed.step();
  const std::string text = bed.gpu(0).blocked();
  EXPECT_NE(text.find("kernel `set`"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("workgroup 0 wave 0 at {:#x} `s_branch", set.entry_address)),
            std::string::npos)
      << text;
}

// Kernels that write bytes beside each other's are no conflict, however they overlap in time.
TEST(GpuKernels, NeighboursInAWordAreApart) {
  KernelBed bed;
  std::string text = scene_kernels();
  for (size_t at; (at = text.find("global_store_b32")) != std::string::npos;) {
    text.replace(at, 16, "global_store_b8");
  }
  bed.file = testing::assemble(text);
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
  bed.arguments(bed.args, 128, bed.b.address + 1, bed.a.address, 3);
  bed.send(bed.begin + bed.launch("add", bed.args) + bed.launch("add", bed.args, 128) +
           release(bed.word.address, 1));
  EXPECT_EQ(bed.findings_text(), "");
  EXPECT_EQ(bed.b.word(3), 0x302u);
}

TEST(GpuKernels, AUnmappedRangeLosesNothingThatWasWritten) {
  KernelBed bed;
  bed.arguments(bed.args, 0, bed.b.address, bed.a.address, 2);
  bed.send(bed.begin + bed.launch("add", bed.args) + kIdle);
  EXPECT_EQ(bed.b.word(4), 0u);
  bed.gpu(0).forget(bed.space(0).find(bed.b.address)->serial);
  bed.space(0).unmap(bed.b.address);
  EXPECT_EQ(bed.b.word(4), 2u);
  bed.send(bed.begin + bed.launch("add", bed.args));
  ASSERT_EQ(bed.faults.size(), 1u);
  EXPECT_TRUE(bed.faults[0].write);
}

}  // namespace
}  // namespace tuff::emu::amd
