// An emulated PCI bus with two GPUs of NVIDIA's: one that its driver holds, with its audio function
// in another group, and one that VFIO has; a network card; and a function with a few registers.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <map>

#include "base/error_of.h"
#include "emu/kernel/pages.h"
#include "emu/pci/bus.h"

namespace tuff::devices::pci_test {

inline constexpr const char* kHeld = "0000:01:00.0";
inline constexpr const char* kHeldAudio = "0000:01:00.1";
inline constexpr const char* kFree = "0000:41:00.0";
inline constexpr const char* kFreeAudio = "0000:41:00.1";
inline constexpr const char* kNetwork = "0000:02:00.0";
inline constexpr uint64_t kRegisterBytes = 1u << 24, kApertureBytes = 1u << 20;

// Keeps what is written to its registers; BAR 1 is memory. A word written to 0x100 is the address
// of one in the host's memory, which it copies to 0x104 and adds one to.
class Registers final : public emu::pci::Function {
 public:
  Registers() : pages(emu::Pages::make(kApertureBytes, std::make_shared<emu::PageFile>())) {}
  uint32_t read(size_t, uint64_t offset) override { return values[offset]; }
  void write(size_t, uint64_t offset, uint32_t value) override {
    values[offset] = value;
    if (offset != 0x100 || !memory) return;
    std::byte* const at = memory->at(uint64_t(values[0xfc]) << 32 | value, 4);
    if (!at) return;
    auto& word = *reinterpret_cast<uint32_t*>(at);
    values[0x104] = word++;
  }
  intptr_t map(size_t bar, uint64_t offset, size_t size_bytes, int protection) override {
    if (bar != 1 || offset != 0) return -EINVAL;
    return pages.map_at(nullptr, size_bytes, protection, MAP_SHARED);
  }
  void reset() override { ++resets; }

  std::map<uint64_t, uint32_t> values;
  std::unique_ptr<emu::pci::HostMemory> memory;
  emu::Pages pages;
  int resets = 0;
};

struct Scene {
  Scene() {
    using Slot = emu::pci::Slot;
    const std::array<uint64_t, 6> bars = {kRegisterBytes, kApertureBytes};
    bus->add({kHeld, 0x10de, 0x2204, 0x030000, "nvidia", "16", bars, nullptr});
    bus->add(Slot{kHeldAudio, 0x10de, 0x1aef, 0x040300, "snd_hda_intel", "17", {}, nullptr});
    bus->add({kFree, 0x10de, 0x2684, 0x030200, "vfio-pci", "31", bars, gpu});
    bus->add(Slot{kFreeAudio, 0x10de, 0x22ba, 0x040300, "vfio-pci", "31", {}, nullptr});
    bus->add(Slot{kNetwork, 0x8086, 0x1533, 0x020000, "igb", "18", {}, nullptr});
    gpu->memory = bus->host_memory(kFree);
  }
  ~Scene() {
    if (!expect_findings) {
      EXPECT_EQ(found, std::vector<std::string>());
    }
    EXPECT_EQ(bus->stats().files, 0u) << "files that are still open";
    EXPECT_EQ(bus->stats().mappings, 0u);
  }
  std::string path(const char* address, const char* file) const {
    return fmt::format("/sys/bus/pci/devices/{}/{}", address, file);
  }

  std::vector<std::string> found;
  bool expect_findings = false;
  emu::Reports reports{[this](const emu::Finding& f) { found.push_back(to_text(f)); }};
  std::shared_ptr<Registers> gpu = std::make_shared<Registers>();
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
};

}  // namespace tuff::devices::pci_test
