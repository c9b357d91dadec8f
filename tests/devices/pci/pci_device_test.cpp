// A PCI function in a process's hands, on the emulated bus: registers, mappings, memory of the
// host, reset, and every call that fails once.
#include "devices/pci_device.h"

#include <tuff/error.h>

#include <cstring>

#include "devices/pci/pci_scene.h"

namespace tuff::devices {
namespace {

using namespace pci_test;

std::unique_ptr<PciDevice> taken(Scene& scene, const char* address = kFree) {
  return std::make_unique<PciDevice>(scene.bus, pci_function(*scene.bus, address));
}

TEST(PciDevice, ReadsWritesMapsAndResets) {
  Scene scene;
  const auto device = taken(scene);
  EXPECT_EQ(device->bar_bytes(0), kRegisterBytes);
  EXPECT_EQ(device->bar_bytes(5), 0u);
  device->write(0, 0x40, 0x12345678);
  EXPECT_EQ(scene.gpu->values[0x40], 0x12345678u);
  scene.gpu->values[0x44] = 7;
  EXPECT_EQ(device->read(0, 0x44), 7u);
  std::byte* const memory = device->map(1, 0, 8192);
  memory[5000] = std::byte(9);
  EXPECT_EQ(scene.gpu->pages.data()[5000], std::byte(9));
  device->unmap(memory, 8192);
  device->reset();
  EXPECT_EQ(scene.gpu->resets, 1);
  EXPECT_THROW(device->map(1, 0, kApertureBytes + 4096), Unsupported);
  EXPECT_THROW(device->map(5, 0, 4096), Unsupported);
}

TEST(PciDevice, ReachesTheMemoryThatIsItsOwnOnceItMay) {
  Scene scene;
  scene.expect_findings = true;
  const auto device = taken(scene);
  uint64_t address = 0;
  const auto run = [&] {
    device->write(0, 0xfc, uint32_t(address >> 32));
    device->write(0, 0x100, uint32_t(address));
  };
  {
    const DmaMemory memory(*device, 5000), other(*device, 1);
    EXPECT_EQ(memory.size_bytes(), 8192u);
    EXPECT_GE(other.address(), memory.address() + 8192 + 4096);
    auto& word = *reinterpret_cast<uint32_t*>(memory.host() + 4096);
    word = 41;
    address = memory.address() + 4096;
    run();
    EXPECT_EQ(word, 41u) << "it is no bus master yet";
    ASSERT_EQ(scene.found.size(), 1u);
    EXPECT_NE(scene.found[0].find("it is no bus master"), std::string::npos);
    device->start_dma();
    run();
    EXPECT_EQ(word, 42u);
    EXPECT_EQ(scene.gpu->values[0x104], 41u);
    address = memory.address() + 8190;  // across the end
    run();
    ASSERT_EQ(scene.found.size(), 2u);
    EXPECT_EQ(scene.bus->stats().mappings, 2u);
  }
  EXPECT_EQ(scene.bus->stats().mappings, 0u);
  address -= 4094;
  run();
  EXPECT_EQ(scene.found.size(), 3u) << "it was given back";
}

TEST(PciDevice, OneProcessHasIt) {
  Scene scene;
  const auto device = taken(scene);
  const std::string said = error_of<Unsupported>([&] { taken(scene); });
  EXPECT_NE(said.find("0000:41:00.0: open(/dev/vfio/31) failed"), std::string::npos) << said;
  EXPECT_NE(said.find("another process has it"), std::string::npos) << said;
}

TEST(PciDevice, WhatADriverHoldsIsNeverOpened) {
  Scene scene;
  const std::string said = error_of<Unsupported>([&] { taken(scene, kHeld); });
  EXPECT_NE(said.find("0000:01:00.0: the driver nvidia holds it"), std::string::npos) << said;
  EXPECT_EQ(scene.bus->stats().calls, 0u);
}

// sysfs and the kernel disagree when something was bound in between.
TEST(PciDevice, TheKernelHasTheLastWord) {
  Scene scene;
  scene.bus->add({kFreeAudio, 0x10de, 0x22ba, 0x040300, "snd_hda_intel", "31", {}, nullptr});
  scene.bus->files[scene.path(kFreeAudio, "uevent")] = "";
  const std::string said = error_of<Unsupported>([&] { taken(scene); });
  EXPECT_NE(said.find("a driver holds another function of its IOMMU group 31"), std::string::npos)
      << said;
}

// The kernel switches bus mastering off with the file; the driver does so before its memory goes.
TEST(PciDevice, IsGivenBack) {
  Scene scene;
  scene.expect_findings = true;
  taken(scene)->start_dma();
  EXPECT_EQ(scene.bus->stats().files, 0u);
  EXPECT_EQ(scene.gpu->memory->at(1ull << 32, 4), nullptr);
  taken(scene)->write(0, 0x40, 1);
}

TEST(PciDevice, EveryCallMayFail) {
  uint64_t calls = 0;
  const auto work = [](Scene& scene) {
    const auto device = taken(scene);
    const DmaMemory memory(*device, 4096);
    device->start_dma();
    device->write(0, 0x100, uint32_t(memory.address()));
    device->read(0, 0x40);
    device->unmap(device->map(1, 0, 4096), 4096);
    device->reset();
  };
  {
    Scene scene;
    scene.expect_findings = true;
    work(scene);
    calls = scene.bus->stats().calls;
  }
  ASSERT_GT(calls, 25u);
  size_t errors = 0;
  for (uint64_t n = 1; n <= calls; ++n) {
    for (const int error : {EIO, ENOMEM, EPERM, EINVAL}) {
      Scene scene;
      scene.expect_findings = true;
      scene.bus->fail_at = n;
      scene.bus->fail_with = error;
      try {
        work(scene);
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(std::strerror(error)), std::string::npos) << e.what();
        ++errors;
      }
      scene.bus->fail_at = 0;
      EXPECT_EQ(scene.bus->stats().files, 0u) << "call " << n;
      EXPECT_EQ(scene.bus->stats().mappings, 0u) << "call " << n;
      work(scene);  // the next one works
    }
  }
  // What is given back is tried twice or left to the kernel, which takes all back with the files.
  EXPECT_EQ(errors, 4 * (calls - 3));
}

}  // namespace
}  // namespace tuff::devices
