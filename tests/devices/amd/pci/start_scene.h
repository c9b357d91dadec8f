// A GPU of scripted registers on the emulated bus, bound to VFIO, with firmware on the machine,
// that may be started; nothing stays open behind it.
#pragma once

#include "devices/amd/pci/pci_gpu.h"
#include "devices/amd/pci/scripted_gpu.h"

namespace tuff::devices::amd {

using namespace emu::amd::samples;

inline constexpr const char* kSlotOfGpu = "0000:03:00.0";

struct StartScene {
  StartScene() {
    bus->add({kSlotOfGpu,
              0x1002,
              0x744c,
              0x030000,
              "vfio-pci",
              "9",
              {ScriptedGpu::kMemoryBytes, 0, 1u << 20, 0, 0, ScriptedGpu::kRegisterBytes},
              gpu});
    gpu->needs_flushes = false;
    gpu->power_on();
    const auto add = [&](const std::string& name, const Bytes& bytes) {
      bus->files["/lib/firmware/amdgpu/" + name] = std::string(bytes.begin(), bytes.end());
    };
    add("psp_13_0_0_sos.bin", sample_sos());
    add("smu_13_0_0.bin", sample_smu());
    add("sdma_6_0_0.bin", sample_sdma());
    add("gc_11_0_0_mec.bin", sample_mec());
    add("gc_11_0_0_imu.bin", sample_imu());
    add("gc_11_0_0_rlc.bin", sample_rlc());
  }
  ~StartScene() {
    EXPECT_EQ(gpu->mistakes, std::vector<std::string>());
    EXPECT_EQ(found, std::vector<std::string>());
    EXPECT_EQ(bus->stats().files, 0u) << "files that are still open";
    EXPECT_EQ(bus->stats().mappings, 0u);
  }
  std::unique_ptr<PciGpu> open(uint64_t timeout_ms = 2000) {
    return std::make_unique<PciGpu>(bus, pci_function(*bus, kSlotOfGpu), timeout_ms);
  }
  uint32_t gc(uint32_t segment_begin, uint32_t n) const {
    return gpu->registers[4 * (segment_begin + n)];
  }

  std::vector<std::string> found;
  emu::Reports reports{[this](const emu::Finding& f) { found.push_back(to_text(f)); }};
  std::shared_ptr<ScriptedGpu> gpu = std::make_shared<ScriptedGpu>();
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
};

}  // namespace tuff::devices::amd
