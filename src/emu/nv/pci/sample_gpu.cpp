#include "emu/nv/pci/sample_gpu.h"

#include <fmt/format.h>

#include "base/check.h"
#include "emu/nv/pci/sample_firmware.h"

namespace tuff::emu::nv {
namespace {

using namespace samples;

constexpr const char* kVersion = "570.144";
constexpr size_t kImageBytes = 40'000;  // ten pages, the last not whole

struct SampleChip {
  uint32_t sm, boot_0, boot_42;
  uint16_t device;
  const char* folder;  // of its firmware
  uint64_t fsp_ready;  // its register; 0: it is started by a booter
  uint16_t fsp_version;
};
constexpr SampleChip kSampleChips[] = {
    {86, 0xb72000a1, 0x172a1000, 0x2230, "ga102", 0, 0},
    {90, 0xb80000a1, 0x180a1000, 0x2330, "gh100", 0x200bc, 1},
    {120, 0xbb2000a1, 0x1b2a1000, 0x2b85, "gb202", 0xad00bc, 2},
};

std::string text_of(const Rom& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<uint8_t> filled(size_t size_bytes, char with) {
  return std::vector<uint8_t>(size_bytes, uint8_t(with));
}

// What containers have for data.
std::vector<uint8_t> counted(size_t size_bytes, uint8_t flipped = 0) {
  std::vector<uint8_t> bytes(size_bytes);
  for (size_t n = 0; n < size_bytes; ++n) bytes[n] = uint8_t(n) ^ flipped;
  return bytes;
}

// The second version of a booter's signature, which fuses ask for.
SignedProgram booter(uint8_t flipped) {
  const std::vector<uint8_t> image = counted(kBooterBytes, flipped);
  return {{image.begin() + kBooterCode, image.begin() + kBooterCode + kBooterCodeBytes},
          filled(32, char(0xb1)), 0, kBooterCode, 1, 3, 1};
}

}  // namespace

SampleGpu sample_gpu(uint32_t sm, uint64_t video_bytes) {
  const SampleChip* chip = nullptr;
  for (const SampleChip& c : kSampleChips)
    if (c.sm == sm) chip = &c;
  TUFF_CHECK(chip, "sm_{}", sm);
  SampleGpu gpu;
  gpu.device = chip->device;
  const auto add = [&](const char* part, const Rom& bytes) {
    gpu.files[fmt::format("/lib/firmware/nvidia/{}/gsp/{}-{}.bin", chip->folder, part, kVersion)] =
        text_of(bytes);
  };
  add("gsp", sample_gsp(kVersion, kImageBytes));
  add("bootloader", sample_bootloader());
  GpuOptions& o = gpu.options;
  o.boot_0 = chip->boot_0;
  o.boot_42 = chip->boot_42;
  o.video_bytes = video_bytes;
  o.files = {filled(kImageBytes, 'g'), filled(64, sm == 86 ? 's' : sm == 90 ? 'u' : 'v'),
             counted(kBootloaderBytes)};
  if (chip->fsp_ready) {
    add("fmc", sample_fmc());
    o.fmc = {filled(500, 'i'), filled(48, 'h'), filled(97, 'k'), filled(96, 's'),
             chip->fsp_version};
    o.fsp_ready = chip->fsp_ready;
    return gpu;
  }
  VbiosForm form;
  form.code_bytes = 512;
  form.data_physical = 0;
  o.rom = sample_vbios(form);
  o.fwsec = {counted(form.code_bytes), filled(384, char(0xa0)), 0x100, 0x2000, 0x400, 9, 1};
  o.fwsec_interfaces = kSampleInterfaces;
  constexpr uint8_t other = 0xff;
  add("booter_load", sample_booter());
  add("booter_unload", sample_booter(3, other));
  o.load = booter(0);
  o.unload = booter(other);
  return gpu;
}

}  // namespace tuff::emu::nv
