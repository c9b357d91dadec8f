// PSP, SMU and memory hubs through the emulated bus, against scripted registers: what they are told
// and in which order, what they refuse, and each of them falling silent at any step.
#include <tuff/error.h>

#include "devices/amd/pci/memory_hub.h"
#include "devices/amd/pci/scripted_gpu.h"
#include "devices/amd/pci/smu.h"

namespace tuff::devices::amd {
namespace {

using namespace emu::amd::samples;

AmdFirmware firmware() {
  AmdFirmware f;
  f.sos = read_sos(sample_sos(), "sos");
  f.smu = read_smu(sample_smu(), "smu");
  const auto add = [&](const std::vector<FirmwarePart>& parts) {
    f.parts.insert(f.parts.end(), parts.begin(), parts.end());
  };
  add(read_sdma(sample_sdma(), "sdma"));
  add(read_mec(sample_mec(), "mec").parts);
  add(read_imu(sample_imu(), "imu"));
  add(read_rlc(sample_rlc(), "rlc"));
  return f;
}

TEST(AmdPsp, TheOrderOfItsStart) {
  GpuScene s;
  Psp psp(s.registers, s.psp_memory());
  EXPECT_FALSE(psp.is_alive());
  psp.start(firmware());
  EXPECT_TRUE(psp.is_alive());
  const std::vector<std::string> expected = {
      "boot 0x80000 of type 3",  "boot 0x10000000 of type 5", "boot 0x10000 of type 2",
      "boot 0xb0000 of type 7",  "boot 0xd0000 of type 8",    "boot 0xc0000 of type 9",
      "boot 0xe0000 of type 10", "boot 0x20000 of type 1",    "ring control 0x20000",
      "toc of 64 bytes",         "load 18 of 128 bytes",      "command 0x5 0x400000 0x200000",
      "load 72 of 128 bytes",    "load 71 of 64 bytes",       "load 89 of 128 bytes",
      "load 94 of 64 bytes",     "load 95 of 64 bytes",       "load 96 of 64 bytes",
      "load 97 of 64 bytes",     "load 68 of 96 bytes",       "load 69 of 64 bytes",
      "load 26 of 32 bytes",     "load 48 of 32 bytes",       "load 25 of 32 bytes",
      "load 7 of 32 bytes",      "load 8 of 64 bytes",        "command 0x21 0x0 0x0"};
  EXPECT_EQ(s.gpu->done, expected);
  psp.destroy_ring();
  psp.destroy_ring();  // once is enough
  EXPECT_EQ(s.gpu->done.size(), expected.size() + 1);
  EXPECT_EQ(s.gpu->done.back(), "ring control 0x30000");
  EXPECT_NE(error_of<DeviceLost>([&] { psp.start(firmware()); }).find("has not been reset"),
            std::string::npos);
}

// A ring has 64 frames: more commands go round it.
TEST(AmdPsp, TheRingGoesRound) {
  GpuScene s;
  AmdFirmware f = firmware();
  for (int i = 0; i < 120; ++i) f.parts.push_back(f.parts[0]);
  Psp(s.registers, s.psp_memory()).start(f);
  EXPECT_EQ(s.gpu->done.size(), 27u + 120u);
}

TEST(AmdPsp, IsSilentAtAnyStep) {
  for (uint32_t step = 1; step <= 27; ++step) {
    GpuScene s(5);
    s.gpu->hung_after = step;
    Psp psp(s.registers, s.psp_memory());
    const std::string why = error_of<DeviceLost>([&] { psp.start(firmware()); });
    EXPECT_NE(why.find("0000:03:00.0: the PSP"), std::string::npos) << step << ": " << why;
    EXPECT_NE(why.find("within 5 ms"), std::string::npos) << why;
    EXPECT_EQ(s.gpu->done.size(), step) << "nothing is asked of it after that";
  }
}

TEST(AmdPsp, WhatItRefusesIsNamed) {
  GpuScene s;
  s.gpu->refused_type = 89;
  Psp psp(s.registers, s.psp_memory());
  const std::string why = error_of<DeviceLost>([&] { psp.start(firmware()); });
  EXPECT_NE(why.find("firmware of type 89: status 0xffff000a"), std::string::npos) << why;
  GpuScene large;
  large.gpu->toc_bytes = 64u << 20;
  Psp other(large.registers, large.psp_memory());
  EXPECT_THROW(other.start(firmware()), Unsupported) << "more protected memory than there is";
  AmdFirmware f = firmware();
  f.sos[0].bytes.resize((1u << 20) + 1);
  GpuScene small;
  Psp third(small.registers, small.psp_memory());
  EXPECT_THROW(third.start(f), Unsupported) << "a component that the message has no room for";
  PspMemory m = small.psp_memory();
  m.message.address += 4096;
  EXPECT_THROW(Psp(small.registers, m), InvalidArgument);
}

TEST(AmdSmu, MessagesOfItsStart) {
  GpuScene s;
  s.gpu->registers[ScriptedGpu::kSmu + 4 * 0x29a] = 1;  // as its firmware leaves it
  Smu smu(s.registers);
  EXPECT_TRUE(smu.is_alive());
  smu.start(0x80'1234'5000);
  EXPECT_EQ(s.gpu->done, (std::vector<std::string>{"smu 0x2 0x0", "smu 0x2 0x0", "smu 0xe 0x80",
                                                   "smu 0xf 0x12345000", "smu 0x6 0x0"}));
  s.gpu->log.clear();
  smu.reset();
  const uint64_t at = ScriptedGpu::kSmu;
  EXPECT_EQ(s.gpu->log, (std::vector<std::pair<uint64_t, uint32_t>>{
                            {at + 4 * 0x275, 0}, {at + 4 * 0x28b, 2}, {at + 4 * 0x276, 0}}));
}

TEST(AmdSmu, RefusesOrIsSilent) {
  for (const auto& [answer, text] : {std::pair(0xffu, "it has failed"),
                                     {0xfeu, "does not know"},
                                     {0xfdu, "has to come before"},
                                     {0xfcu, "it is busy"},
                                     {0x77u, "no answer that is known (0x77)"}}) {
    GpuScene s;
    s.gpu->registers[ScriptedGpu::kSmu + 4 * 0x29a] = 1;
    s.gpu->smu_answer = answer;
    const std::string why = error_of<DeviceLost>([&] { Smu(s.registers).start(0); });
    EXPECT_NE(why.find(text), std::string::npos) << why;
    EXPECT_NE(why.find("GetSmuVersion"), std::string::npos) << why;
  }
  GpuScene s(5);
  EXPECT_FALSE(Smu(s.registers).is_alive()) << "no firmware has been loaded";
  EXPECT_TRUE(s.gpu->done.empty());
  s.gpu->registers[ScriptedGpu::kSmu + 4 * 0x29a] = 1;
  s.gpu->hung_after = 2;
  EXPECT_NE(error_of<DeviceLost>([&] { Smu(s.registers).start(0); }).find("SetDriverDramAddrHigh"),
            std::string::npos);
}

// Where both hubs have a register, by their headers.
struct HubPlace {
  Hub hub;
  uint64_t base;
  uint32_t memory_base, root, control, first, last, status, address, fault_control, l1;
};
constexpr HubPlace kHubs[] = {{Hub::Graphics, ScriptedGpu::kGc, 0x1678, 0x16f3, 0x1688, 0x1713,
                               0x1733, 0x15c8, 0x15c9, 0x15c4, 0x167f},
                              {Hub::Multimedia, ScriptedGpu::kMmhub, 0x8ec, 0x7ab, 0x740, 0x7cb,
                               0x7eb, 0x70c, 0x70d, 0x708, 0x8f3}};

TEST(AmdMemoryHub, Starts) {
  for (const HubPlace& h : kHubs) {
    GpuScene s;
    const auto reg = [&](uint32_t n) -> uint32_t& { return s.gpu->registers[h.base + 4 * n]; };
    reg(h.memory_base) = 0x8000;
    reg(h.memory_base + 1) = 0x85ff;
    reg(h.l1) = 0xffff'ffff;
    const MemoryHub hub(s.registers, h.hub);
    const auto [begin, end] = hub.memory();
    EXPECT_EQ(begin, 0x80'0000'0000u);
    EXPECT_EQ(end, 0x85'ffff'ffffu);
    hub.start({begin, end, 0x1000, 0x2000, 0x1'2345'6000, 0x2000'0000'0000, 0x2fff'ffff'ffff});
    EXPECT_EQ(reg(h.root), 0x2345'6001u);
    EXPECT_EQ(reg(h.root + 1), 1u);
    EXPECT_EQ(reg(h.first), 0u);
    EXPECT_EQ(reg(h.first + 1), 2u);
    EXPECT_EQ(reg(h.last), 0xffff'ffffu);
    EXPECT_EQ(reg(h.last + 1), 2u);
    EXPECT_EQ(reg(h.control) & 7, 7u) << "on, three levels below the root";
    // What is not the driver's stays, MTYPE is uncached.
    EXPECT_EQ(reg(h.l1), (0xffff'ffffu & ~(1u << 5) & ~(0x7fu << 7)) | 3u << 11);
    reg(h.memory_base + 1) = 0x10;
    EXPECT_THROW(hub.memory(), DeviceLost);
  }
}

TEST(AmdMemoryHub, ForgetsOrIsSilent) {
  for (const HubPlace& h : kHubs) {
    GpuScene s(5);
    const MemoryHub hub(s.registers, h.hub);
    s.gpu->memory.data()[17] = std::byte{5};
    hub.flush();
    EXPECT_EQ(s.gpu->seen[17], std::byte{5}) << "what was written comes first";
    s.gpu->hung = true;
    s.gpu->registers[h.base + 4 * (h.hub == Hub::Graphics ? 0x16ce : 0x786)] = 0;
    s.gpu->registers[ScriptedGpu::kMmhub + 4 * 0x762] = 1;
    EXPECT_NE(error_of<DeviceLost>([&] { hub.flush(); }).find("does not forget"),
              std::string::npos);
  }
  GpuScene s(5);
  s.gpu->registers[ScriptedGpu::kMmhub + 4 * 0x762] = 0;
  EXPECT_NE(error_of<DeviceLost>([&] {
              MemoryHub(s.registers, Hub::Multimedia).flush();
            }).find("semaphore"),
            std::string::npos);
}

TEST(AmdMemoryHub, FaultsSayWhereAndWhat) {
  for (const HubPlace& h : kHubs) {
    GpuScene s;
    const auto reg = [&](uint32_t n) -> uint32_t& { return s.gpu->registers[h.base + 4 * n]; };
    const MemoryHub hub(s.registers, h.hub);
    EXPECT_FALSE(hub.take_fault());
    reg(h.status) = 1u << 18 | 5u << 9 | 1u << 4;
    reg(h.address) = 0xdead'b;
    reg(h.address + 1) = 2;
    const auto fault = hub.take_fault();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->address, 0x2'000d'eadb'000u);
    EXPECT_TRUE(fault->write);
    EXPECT_EQ(to_text(*fault),
              "memory access fault at 0x2000deadb000: a write: the page is not mapped for this GPU "
              "(client 5, VMID 0)");
    EXPECT_EQ(reg(h.fault_control) & 1, 1u) << "it is told to keep the next one";
    reg(h.status) = 1u << 6;
    EXPECT_NE(to_text(*hub.take_fault()).find("a read: the page does not allow it"),
              std::string::npos);
  }
}

TEST(AmdRegisters, BeyondTheBarByIndexAndData) {
  GpuScene s;
  constexpr GpuRegister far{"far", Hwid::Gc, 3, 0x10};  // from 0x2402c00 on
  s.registers.write(far, 77);
  EXPECT_EQ(s.gpu->registers[4 * (0x2402c00 + 0x10)], 77u);
  EXPECT_EQ(s.registers.read(far), 77u);
  EXPECT_THROW(s.registers.read({"none", Hwid::Gc, 4, 0}), Unsupported);
}

}  // namespace
}  // namespace tuff::devices::amd
