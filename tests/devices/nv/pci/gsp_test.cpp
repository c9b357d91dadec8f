// The whole boot on the emulated GPU of Ampere, up to calls of the resource calls, and its end;
// programs and firmware that fail; calls of VFIO that fail; and a second boot after one that was
// killed at any step.
#include "devices/nv/pci/gsp.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include "base/error_of.h"
#include "devices/nv/pci/gsp_facts.h"
#include "devices/nv/pci/gsp_scene.h"
#include "devices/nv/pci/killed_kernel.h"

namespace tuff::devices::nv::test {
namespace {

TEST(NvGsp, StartsAndEnds) {
  GspScene s;
  const auto device = s.take();
  {
    Gsp gsp(*device, s.files, 1000);
    EXPECT_STREQ(gsp.chip().name, "GA102");
    EXPECT_TRUE(s.gpu->is_protected());
    EXPECT_TRUE(s.gpu->gsp().riscv);
    EXPECT_EQ(s.objects.count(), 1u) << "the root object";
    EXPECT_EQ(s.gpu->gsp().get(0x80), s.files.bootloader.app_version);
  }
  EXPECT_FALSE(s.gpu->is_protected());
  EXPECT_FALSE(s.gpu->firmware());
  EXPECT_EQ(s.gpu->resets, 0u);
  Gsp again(*device, s.files, 1000);
  EXPECT_EQ(s.gpu->resets, 0u) << "nothing was left behind";
}

// Ada goes the same way, with other files and classes.
TEST(NvGsp, AdaByItsTable) {
  GspScene s([](auto& o) { o.boot_0 = 0xb92000a1, o.boot_42 = 0x192a1000; });
  const auto device = s.take();
  const Gsp gsp(*device, s.files, 1000);
  EXPECT_STREQ(gsp.chip().name, "AD102");
  EXPECT_STREQ(gsp.chip().family->firmware, "ad102");
  EXPECT_TRUE(s.gpu->gsp().riscv);
}

// Objects over calls, by the same class that has them from NVIDIA's driver.
TEST(NvGsp, ObjectsByItsCalls) {
  GspScene s;
  const auto device = s.take();
  Gsp gsp(*device, s.files, 1000);
  const std::shared_ptr<GspCalls> calls = gsp.calls();
  nvrm::DeviceParameters parameters{};
  parameters.client_share = calls->root();
  const Object gpu(calls, calls->root(), nvrm::object::Device, "device", parameters);
  nvrm::SubdeviceParameters none{};
  const Object part(calls, gpu.handle(), nvrm::object::Subdevice, "subdevice", none);
  EXPECT_EQ(s.objects.count(), 3u);
  nvrm::NameString name{};
  calls->control(part.handle(), nvrm::control::GetName, "GPU_GET_NAME_STRING", name);
  EXPECT_STREQ(name.text, "NVIDIA RTX A6000");
  const GspFacts facts = read_gsp_facts(*calls, part.handle(), gsp.chip(), 1u << 28);
  EXPECT_EQ(facts.gpu.name, "NVIDIA RTX A6000");
  EXPECT_EQ(facts.gpu.uuid, s.objects.uuid_of(0));
  EXPECT_EQ(facts.gpu.sm, 86u);
  EXPECT_EQ(facts.gpu.generation, &ampere());
  EXPECT_EQ(facts.gpu.sms(), 84u);
  EXPECT_EQ(facts.gpu.warps_per_sm, 48u);
  EXPECT_EQ(facts.gpu.l2_bytes, 6u << 20);
  EXPECT_EQ(facts.gpu.memory_bytes, 8ull << 30);
  EXPECT_EQ(facts.gpu.gpfifo_class, 0xc56fu);
  EXPECT_EQ(facts.gpu.missing, "");
  EXPECT_FALSE(facts.gpu.host_maps_all());
  ASSERT_EQ(facts.usable.size(), 1u);
  EXPECT_EQ(facts.usable[0].begin, 0u);
  const MemoryLayout layout =
      memory_layout(8ull << 30, 1u << 20, s.files.gsp.image.size(), 0x400);
  EXPECT_EQ(facts.usable[0].end, layout.open_heap) << "the firmware's memory is left out";
}

// The firmware resets its own core by the host, and is started again by the booter.
TEST(NvGsp, SequencesBeforeItIsReady) {
  for (const bool resumes : {false, true}) {
    GspScene s([&](emu::nv::GpuOptions& o) {
      o.sequences = {{0, 0x110040, 7, 3, 1}, {1, 0x110044, 0xf, 2}};
      if (resumes) o.sequences[1].insert(o.sequences[1].end(), {5, 8});
    });
    const auto device = s.take();
    Gsp gsp(*device, s.files, 1000);
    EXPECT_EQ(s.gpu->sec2().starts, resumes ? 2u : 1u);
    EXPECT_TRUE(s.gpu->gsp().riscv);
  }
}

// ---- failures

TEST(NvGsp, WhatProgramsSayWentWrong) {
  struct Row {
    std::function<void(emu::nv::GpuOptions&)> change;
    const char* said;
  };
  const Row rows[] = {
      {[](auto& o) { o.frts_error = 5; }, "FWSEC did not protect memory at"},
      {[](auto& o) { o.booter_error = 0x21; }, "0000:41:00.0: the booter failed: 0x21"},
      {[](auto& o) { o.sequences = {{9}}; }, "a sequence of the GSP has command 9"},
  };
  for (const Row& row : rows) {
    GspScene s(row.change);
    const auto device = s.take();
    const std::string text = error_of<DeviceLost>([&] { Gsp(*device, s.files, 1000); });
    EXPECT_NE(text.find(row.said), std::string::npos) << text;
    EXPECT_EQ(s.gpu->resets, 1u);
    EXPECT_FALSE(s.gpu->is_protected());
  }
}

// A GPU that ends otherwise than it should is reset.
TEST(NvGsp, AnEndThatFails) {
  GspScene s([](auto& o) { o.sb_error = 3; });
  const auto device = s.take();
  { Gsp gsp(*device, s.files, 1000); }
  EXPECT_EQ(s.gpu->resets, 1u);
  EXPECT_FALSE(s.gpu->is_protected());
}

// Each of what NVIDIA has signed: the GPU takes no other.
TEST(NvGsp, AnotherFileIsRefusedByTheGpu) {
  using Change = std::function<void(Firmware&)>;
  const std::pair<Change, const char*> rows[] = {
      {[](Firmware& f) { f.gsp.image[0x9000] ^= 1; }, "the booter finds another image"},
      {[](Firmware& f) { f.gsp.signature[3] ^= 1; }, "the booter finds another signature"},
      {[](Firmware& f) { f.bootloader.image[9] ^= 1; }, "the booter finds another bootloader"},
      {[](Firmware& f) { f.load.signatures[1][0] ^= 1; }, "SEC2 takes no such program"},
      {[](Firmware& f) { f.load.image[f.load.code_offset] ^= 1; }, "SEC2 takes no such program"},
  };
  for (const auto& [change, mistake] : rows) {
    GspScene s;
    s.expected = {mistake};
    change(s.files);
    const auto device = s.take();
    EXPECT_THROW(Gsp(*device, s.files, 20), DeviceLost) << mistake;
    EXPECT_EQ(s.gpu->resets, 1u);
  }
}

TEST(NvGsp, OtherFirmwareIsRefusedBeforeAnythingIsTouched) {
  GspScene s;
  s.files.version = "535.113.01";
  const auto device = s.take();
  EXPECT_EQ(error_of<Unsupported>([&] { Gsp(*device, s.files, 1000); }),
            "NV: firmware 535.113.01 is in files of this test; known are the calls of 570.144");
  EXPECT_EQ(s.gpu->resets, 0u);
}

// ---- by FSP

using MakeFspGpu = void (*)(emu::nv::GpuOptions&, const Fmc&);

TEST(NvGsp, HopperAndBlackwellStartByFsp) {
  const std::tuple<MakeFspGpu, uint32_t, const char*, const Generation*> rows[] = {
      {make_hopper, 90, "GH100", &hopper()}, {make_blackwell, 120, "GB202", &blackwell()}};
  for (const auto& [make, sm, name, generation] : rows) {
    const Fmc fmc = sample_files().fmc;
    GspScene s([&, make = make](auto& o) { make(o, fmc); }, sm);
    const auto device = s.take();
    {
      Gsp gsp(*device, s.files, 1000);
      EXPECT_STREQ(gsp.chip().name, name);
      EXPECT_TRUE(s.gpu->is_protected());
      nvrm::DeviceParameters parameters{};
      parameters.client_share = gsp.calls()->root();
      const Object gpu(gsp.calls(), gsp.calls()->root(), nvrm::object::Device, "device",
                       parameters);
      nvrm::SubdeviceParameters none{};
      const Object part(gsp.calls(), gpu.handle(), nvrm::object::Subdevice, "subdevice", none);
      const GspFacts facts = read_gsp_facts(*gsp.calls(), part.handle(), gsp.chip(), 1u << 28);
      EXPECT_EQ(facts.gpu.generation, generation);
      ASSERT_EQ(facts.usable.size(), 1u);
      EXPECT_LT(facts.usable[0].end, 8ull << 30) << "FSP has decided";
    }
    EXPECT_EQ(s.gpu->resets, 0u);
    EXPECT_TRUE(s.gpu->firmware()->has_ended());
    // Protected memory stays: the next boot begins with a reset.
    const Gsp again(*device, s.files, 1000);
    EXPECT_EQ(s.gpu->resets, 1u);
  }
}

TEST(NvGsp, WhatFspAndTheFirstProgramRefuse) {
  const Fmc fmc = sample_files().fmc;
  {
    GspScene s([&](auto& o) { make_hopper(o, fmc); }, 90);
    s.expected = {"FSP finds another first program"};
    s.files.fmc.signature[5] ^= 1;
    const auto device = s.take();
    EXPECT_EQ(error_of<DeviceLost>([&] { Gsp(*device, s.files, 1000); }),
              "0000:41:00.0: FSP refused message 0x14: error 0x2");
    EXPECT_EQ(s.gpu->resets, 1u);
  }
  GspScene s([&](auto& o) { make_hopper(o, fmc), o.booter_error = 0x17; }, 90);
  const auto device = s.take();
  EXPECT_EQ(error_of<DeviceLost>([&] { Gsp(*device, s.files, 1000); }),
            "0000:41:00.0: the GSP's first program failed: 0x17");
}

// ---- calls that fail, and processes that are killed

// One call fails: an error, or a warning at the end; what comes after works. How many were errors.
uint64_t fail_each_call(GspScene& s) {
  uint64_t failed = 0;
  for (uint64_t at = 1;; at += at < 100 ? 1 : 13) {
    s.bus->fail_at = s.bus->stats().calls + at;
    try {
      const auto device = s.take();
      const Gsp gsp(*device, s.files, 1000);
    } catch (const Error&) {
      ++failed;
    }
    const bool done = s.bus->stats().calls < s.bus->fail_at;
    s.bus->fail_at = 0;
    const auto device = s.take();
    const Gsp gsp(*device, s.files, 1000);
    EXPECT_EQ(s.mistakes, std::vector<std::string>()) << "call " << at;
    if (done || !s.mistakes.empty()) return failed;
  }
}

TEST(NvGsp, EveryCallOfVfioFailsOnce) {
  {
    GspScene s;
    EXPECT_GT(fail_each_call(s), 100u);
  }
  const Fmc fmc = sample_files().fmc;
  GspScene s([&](auto& o) { make_hopper(o, fmc); }, 90);
  EXPECT_GT(fail_each_call(s), 100u);
}

// How many times a process was killed, and found to have left a running firmware.
std::pair<uint32_t, uint32_t> kill_and_boot(GspScene& s) {
  uint32_t kills = 0, found_running = 0;
  for (uint64_t calls = 1;; calls += 3) {
    const auto killed = std::make_shared<KilledKernel>(s.bus, calls);
    try {
      const auto device = s.take(killed);
      const Gsp gsp(*device, s.files, 50);
    } catch (const Error&) {
    }
    if (!killed->is_dead()) break;
    ++kills;
    found_running += s.gpu->is_protected();
    const auto device = s.take();
    const Gsp gsp(*device, s.files, 1000);
    EXPECT_TRUE(s.gpu->gsp().riscv) << "after " << calls << " calls";
    if (!s.mistakes.empty()) break;
  }
  return {kills, found_running};
}

TEST(NvGsp, ASecondBootAfterAKillAtAnyStep) {
  {
    GspScene s;
    const auto [kills, found_running] = kill_and_boot(s);
    EXPECT_GT(kills, 30u);
    EXPECT_GT(found_running, 10u);
  }
  const Fmc fmc = sample_files().fmc;
  GspScene s([&](auto& o) { make_hopper(o, fmc); }, 90);
  const auto [kills, found_running] = kill_and_boot(s);
  EXPECT_GT(kills, 30u);
  EXPECT_GT(found_running, 10u);
}

}  // namespace
}  // namespace tuff::devices::nv::test
