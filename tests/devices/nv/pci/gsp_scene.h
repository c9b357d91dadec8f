// An emulated GPU of Ampere that no driver has, with firmware files and a VBIOS that tests write,
// and the objects of emu/nv/rm behind its firmware. What a driver must not do is a failure.
#pragma once

#include <gtest/gtest.h>

#include "devices/nv/pci/gsp.h"
#include "emu/nv/pci/sample_firmware.h"
#include "devices/nv/pci/vbios.h"
#include "emu/nv/pci/gpu_function.h"
#include "emu/pci/bus.h"

namespace tuff::devices::nv::test {

using namespace emu::nv::samples;

inline constexpr const char* kGspSlot = "0000:41:00.0";

inline Firmware sample_files() {
  Firmware f;
  f.version = "570.144";
  f.folder = "files of this test";
  f.gsp = read_gsp_image(sample_gsp(), "gsp", "ga10x");
  f.gsp.image.resize(0x9876, 0x5a);  // ten pages, the last not whole
  f.bootloader = read_bootloader(sample_bootloader(), "bootloader");
  f.load = read_booter(sample_booter(), "booter_load");
  f.unload = f.load;
  for (uint8_t& byte : f.unload.image) byte ^= 0xff;
  f.fmc = read_fmc(sample_fmc(), "fmc");
  return f;
}

inline Rom sample_rom() {
  VbiosForm form;
  form.code_bytes = 512;
  form.data_physical = 0;
  return sample_vbios(form);
}

// By which the GPU's boot ROM knows a booter, whose fuses ask for the second version.
inline emu::nv::SignedProgram signed_program(const Booter& b) {
  const auto code = b.image.begin() + b.code_offset;
  return {{code, code + b.code_bytes}, b.signatures[1], 0, b.code_offset, b.engine_mask,
          b.ucode_id,                  1};
}

inline emu::nv::GpuOptions sample_gpu(const Firmware& f) {
  emu::nv::GpuOptions o;
  o.rom = sample_rom();
  const Fwsec fwsec = read_fwsec(o.rom);
  const FalconSignature& signature = fwsec.signatures[0];  // of version 1
  o.fwsec = {fwsec.code.bytes, {signature.begin(), signature.end()}, fwsec.code.physical,
             fwsec.code.virtual_address, fwsec.engine_mask, fwsec.ucode_id, 1};
  o.fwsec_interfaces = fwsec.data.physical + fwsec.interface_offset;
  o.load = signed_program(f.load);
  o.unload = signed_program(f.unload);
  o.files = {f.gsp.image, f.gsp.signature, f.bootloader.image};
  return o;
}

// Of Hopper, which FSP starts.
inline void make_hopper(emu::nv::GpuOptions& o, const Fmc& fmc) {
  o.boot_0 = 0xb80000a1;
  o.boot_42 = 0x180a1000;
  o.fmc = {fmc.image, fmc.hash, fmc.public_key, fmc.signature, 1};
}
inline void make_blackwell(emu::nv::GpuOptions& o, const Fmc& fmc) {
  make_hopper(o, fmc);
  o.boot_0 = 0xbb2000a1;
  o.boot_42 = 0x1b2a1000;
  o.fmc->version = 2;
  o.fsp_ready = 0xad00bc;
}

struct GspScene {
  // `sm`: of the objects behind the firmware.
  explicit GspScene(const std::function<void(emu::nv::GpuOptions&)>& change = {},
                    uint32_t sm = 86)
      : options(options_of(sm)) {
    emu::nv::GpuOptions o = sample_gpu(files);
    if (change) change(o);
    bus->add({kGspSlot, 0x10de, 0x2204, 0x030000, "vfio-pci", "7", {1u << 24, 1u << 28}, nullptr});
    gpu = std::make_shared<emu::nv::GpuFunction>(
        std::move(o), bus->host_memory(kGspSlot), objects,
        [this](const std::string& why) { mistakes.push_back(why); });
    bus->add({kGspSlot, 0x10de, 0x2204, 0x030000, "vfio-pci", "7", {1u << 24, 1u << 28}, gpu});
  }
  ~GspScene() {
    engines.stop();
    EXPECT_EQ(mistakes, expected);
    EXPECT_EQ(bus->stats().files, 0u);
    EXPECT_EQ(objects.count(), 0u);
  }
  std::unique_ptr<PciDevice> take(std::shared_ptr<os::Kernel> kernel) const {
    auto device = std::make_unique<PciDevice>(kernel, pci_function(*kernel, kGspSlot));
    device->start_dma();
    return device;
  }
  std::unique_ptr<PciDevice> take() const { return take(bus); }

  Firmware files = sample_files();
  std::vector<std::string> mistakes, expected;
  emu::Reports reports{[this](const emu::Finding& f) { mistakes.push_back(to_text(f)); }};
  static emu::nv::MockOptions options_of(uint32_t sm) {
    emu::nv::MockOptions o;
    o.driver = 570;
    o.sm = sm;
    return o;
  }
  const emu::nv::MockOptions options;
  std::shared_ptr<emu::PageFile> pages = std::make_shared<emu::PageFile>();
  emu::nv::Engines engines{1, pages, reports, 1};
  emu::nv::Objects objects{options, pages, engines, reports};
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
  std::shared_ptr<emu::nv::GpuFunction> gpu;
};

}  // namespace tuff::devices::nv::test
