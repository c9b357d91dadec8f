// The driver's start by PCI on the emulated Navi 31, whose models are written apart from it: what
// it maps is what the GPU's own walk finds, GPUs that fall silent at any step, a second run.
#include <tuff/error.h>

#include "base/error_of.h"
#include "devices/amd/pci/pci_gpu.h"
#include "emu/amd/pci/gpu_function.h"
#include "emu/amd/pci/sample_firmware.h"

#include <gtest/gtest.h>

namespace tuff::devices::amd {
namespace {

using namespace emu::amd::samples;
constexpr const char* kSlot = "0000:03:00.0";

struct EmulatedGpu {
  EmulatedGpu() {
    bus->add({kSlot, 0x1002, 0x744c, 0x030000, "vfio-pci", "9",
              {1u << 30, 0, emu::amd::GpuFunction::kDoorbellBytes, 0, 0,
               emu::amd::GpuFunction::kRegisterBytes},
              gpu});
    for (const auto& [name, bytes] :
         {std::pair("psp_13_0_0_sos.bin", sample_sos()), {"smu_13_0_0.bin", sample_smu()},
          {"sdma_6_0_0.bin", sample_sdma()}, {"gc_11_0_0_mec.bin", sample_mec()},
          {"gc_11_0_0_imu.bin", sample_imu()}, {"gc_11_0_0_rlc.bin", sample_rlc()}})
      bus->files[std::string("/lib/firmware/amdgpu/") + name] = {bytes.begin(), bytes.end()};
  }
  ~EmulatedGpu() {
    EXPECT_EQ(mistakes, std::vector<std::string>());
    EXPECT_EQ(bus->stats().files, 0u);
    EXPECT_EQ(bus->stats().mappings, 0u);
  }
  std::unique_ptr<PciGpu> open(uint64_t timeout_ms = 2000) {
    return std::make_unique<PciGpu>(bus, pci_function(*bus, kSlot), timeout_ms);
  }
  std::vector<std::string> mistakes;
  emu::Reports reports{[this](const emu::Finding& f) { mistakes.push_back(to_text(f)); }};
  emu::amd::Told told = [this](const std::string& m) { mistakes.push_back(m); };
  std::shared_ptr<emu::amd::GpuFunction> gpu =
      std::make_shared<emu::amd::GpuFunction>(emu::amd::PciGpuOptions{1u << 30, {}, told});
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
};

TEST(AmdEmulatedPciGpu, StartsAndIsResetAtTheEnd) {
  EmulatedGpu s;
  {
    const auto gpu = s.open();
    EXPECT_TRUE(s.gpu->psp().is_autoloaded());
    EXPECT_TRUE(s.gpu->smu().has_features());
    EXPECT_EQ(s.gpu->resets(), 0u);
  }
  EXPECT_EQ(s.gpu->resets(), 1u);
  EXPECT_FALSE(s.gpu->psp().is_autoloaded());
  EXPECT_NE(s.open(), nullptr) << "a second run";
}

TEST(AmdEmulatedPciGpu, FindsWhatIsMappedAndForgetsWhatIsNot) {
  EmulatedGpu s;
  const auto gpu = s.open();
  const uint64_t address = 0x2000'0000'0000;
  for (auto* const hub : {&s.gpu->graphics(), &s.gpu->multimedia()}) {
    const uint32_t before = hub->invalidations();
    gpu->map(address, 8192, 0x70000, {.system = true});
    EXPECT_GT(hub->invalidations(), before);
    const auto page = hub->translate(address + 4096 + 12, true);
    ASSERT_TRUE(page);
    EXPECT_EQ(page->physical, 0x7100cu);
    EXPECT_TRUE(page->system && page->snooped);
    EXPECT_FALSE(gpu->take_fault());
    gpu->unmap(address, 8192);
    EXPECT_FALSE(hub->translate(address + 4096, true));
    const auto fault = gpu->take_fault();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->address, address + 4096);
    EXPECT_TRUE(fault->write);
    EXPECT_FALSE(gpu->take_fault()) << "it was cleared";
  }
}

TEST(AmdEmulatedPciGpu, APspThatFallsSilentIsLostAndTheNextRunStarts) {
  for (const uint32_t step : {0u, 7u, 8u, 9u, 10u, 26u}) {
    EmulatedGpu s;
    s.gpu->psp().hang_after(step);
    EXPECT_THROW(s.open(30), DeviceLost) << step;
    s.gpu->psp().hang_after(~0u);
    s.gpu->reset();
    EXPECT_NE(s.open(), nullptr) << step;
  }
}

TEST(AmdEmulatedPciGpu, AnSmuThatFallsSilentIsNamed) {
  EmulatedGpu s;
  s.gpu->smu().hang();
  const std::string why = error_of<DeviceLost>([&] { s.open(30); });
  EXPECT_NE(why.find("SMU"), std::string::npos) << why;
}

}  // namespace
}  // namespace tuff::devices::amd
