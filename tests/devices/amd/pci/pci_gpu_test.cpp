// A GPU's start as a whole on scripted registers: its order, what is refused before anything is
// touched, GPUs that were started before, every call of VFIO that fails, and the end.
#include "devices/amd/pci/pci_gpu.h"

#include <tuff/error.h>

#include "devices/amd/pci/start_scene.h"
#include "devices/nv/pci/killed_kernel.h"

namespace tuff::devices::amd {
namespace {

TEST(AmdPciGpu, StartsMapsAndEnds) {
  StartScene s;
  {
    const auto gpu = s.open();
    EXPECT_EQ(gpu->memory_bytes(), 1u << 30);
    EXPECT_EQ(gpu->discovery().gc.engines, 6u);
    EXPECT_EQ(s.gpu->resets, 0) << "it was as after power on";
    ASSERT_EQ(s.gpu->done.size(), 27u + 4u);
    EXPECT_EQ(s.gpu->done[27], "smu 0x2 0x0") << "behind all of the firmware";
    EXPECT_EQ(s.gc(0xa000, 0x2904) & 1u << 26, 1u << 26) << "MEC runs";
    // One table for both hubs, in memory where the host has written it.
    const uint64_t root = gpu->table().root();
    EXPECT_EQ(s.gc(0x1260, 0x16f3), uint32_t(root) | 1);
    EXPECT_EQ(s.gc(0x1a000, 0x7ab), uint32_t(root) | 1);
    gpu->table().map(0x1000, 4096, 0x7000, {.system = true});
    uint64_t entry = 0;
    std::memcpy(&entry, s.gpu->memory.data() + root, sizeof entry);
    EXPECT_EQ(entry & 1, 1u);
    EXPECT_EQ(gpu->descriptor_memory().address % 4096, 0u);
    EXPECT_FALSE(gpu->take_fault());
  }
  EXPECT_EQ(s.gpu->resets, 1) << "nothing is left running";
  EXPECT_NE(s.open(), nullptr);
}

TEST(AmdPciGpu, WhatIsNotKnownIsNotTouched) {
  StartScene s;
  for (const auto& [block, what] : {std::pair(0, "GC"), {1, "MMHUB"}, {7, "MP0"}, {8, "MP1"}}) {
    s.gpu->blocks = {};
    s.gpu->blocks.blocks[size_t(block)].revision = 9;
    s.gpu->log.clear();
    const std::string why = error_of<Unsupported>([&] { s.open(); });
    EXPECT_NE(why.find(fmt::format("the GPU's {} has version", what)), std::string::npos) << why;
    EXPECT_TRUE(s.gpu->done.empty());
    for (const auto& [at, value] : s.gpu->log) EXPECT_LT(at, 32u) << "only the table was read";
  }
  s.gpu->blocks = {};
  s.bus->files.erase("/lib/firmware/amdgpu/gc_11_0_0_mec.bin");
  EXPECT_NE(error_of<Unsupported>([&] { s.open(); }).find("gc_11_0_0_mec.bin"), std::string::npos);
  EXPECT_TRUE(s.gpu->done.empty());
  s.gpu->registers[4 * 0xde3] = ~0u;
  EXPECT_NE(error_of<DeviceLost>([&] { s.open(); }).find("does not answer"), std::string::npos);
  EXPECT_EQ(s.gpu->resets, 0);
}

TEST(AmdPciGpu, AGpuThatWasStartedIsReset) {
  for (const bool smu_answers : {true, false}) {
    StartScene s;
    s.gpu->psp(ScriptedGpu::C81) = 1;
    s.gpu->registers[ScriptedGpu::kSmu + 4 * 0x29a] = smu_answers;
    const auto gpu = s.open(smu_answers ? 2000 : 20);
    EXPECT_EQ(s.gpu->resets, 1);
  }
  StartScene s;
  s.gpu->psp(ScriptedGpu::C81) = 1;
  s.gpu->ignores_reset = true;
  EXPECT_NE(error_of<DeviceLost>([&] { s.open(5); }).find("does not obey a reset"),
            std::string::npos);
  EXPECT_TRUE(s.gpu->done.empty()) << "no firmware is given to it";
}

TEST(AmdPciGpu, FallsSilentAtAnyStep) {
  for (const uint32_t step : {1u, 8u, 9u, 10u, 12u, 20u, 27u, 28u, 31u}) {
    StartScene s;
    s.gpu->hung_after = step;
    EXPECT_THROW(s.open(5), DeviceLost) << step;
    EXPECT_GE(s.gpu->resets, step >= 9 ? 1 : 0) << step << ": sOS ran";
  }
}

// The table is read by thousands of calls that are alike, before the last few hundred.
uint64_t step_of(uint64_t n, uint64_t calls) { return n <= 60 ? 7 : n + 900 < calls ? 997 : 83; }

// Whichever call fails: one error, and nothing stays open.
TEST(AmdPciGpu, EveryCallMayFail) {
  uint64_t calls = 0;
  {
    StartScene s;
    const uint64_t before = s.bus->stats().calls;
    const auto gpu = s.open();
    calls = s.bus->stats().calls - before;
  }
  ASSERT_GT(calls, 1000u);
  for (uint64_t n = 1; n <= calls; n += step_of(n, calls)) {
    StartScene s;
    s.bus->fail_at = n;
    try {
      s.open(50);
      ADD_FAILURE() << "the failure of call " << n << " is lost";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()), "");
    }
  }
}

// The next process finds the GPU as a killed one has left it, and starts it all the same.
TEST(AmdPciGpu, StartsAfterAProcessThatWasKilled) {
  uint64_t calls = 0;
  {
    StartScene s;
    const uint64_t before = s.bus->stats().calls;
    const auto gpu = s.open();
    calls = s.bus->stats().calls - before;
  }
  int left_started = 0;
  for (uint64_t n = 40; n <= calls; n += step_of(n, calls)) {
    StartScene s;
    const auto killed = std::make_shared<nv::test::KilledKernel>(s.bus, n);
    EXPECT_THROW(PciGpu(killed, pci_function(*s.bus, kSlotOfGpu), 50), Error) << n;
    left_started += s.gpu->psp(ScriptedGpu::C81) != 0;
    s.gpu->done.clear();
    const auto gpu = s.open();
    EXPECT_EQ(s.gpu->done.back(), "smu 0x6 0x0") << n;
  }
  EXPECT_GT(left_started, 0);
}

}  // namespace
}  // namespace tuff::devices::amd
