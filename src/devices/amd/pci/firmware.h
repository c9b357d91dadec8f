// The firmware of a GPU of RDNA3, as distributions install it (linux-firmware, amdgpu/*.bin): what
// the bootloader of its security processor (PSP) loads, and what that checks and loads for the
// other blocks. For the start by PCI. Knows no registers; files may be damaged or missing.
// Downloads nothing. Sources: Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_ucode.h and .c (layouts,
// what is loaded from where), amdgpu_psp.c (psp_init_sos_microcode), amdgpu_rlc.c (RLC's parts),
// psp_gfx_if.h (types).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/os_kernel.h"
#include "devices/amd/pci/discovery.h"

namespace tuff::devices::amd {

using FirmwareBytes = std::vector<uint8_t>;

// What a file of the PSP has, as enum psp_fw_type numbers it.
enum class SosType : uint32_t {
  Sos = 1,
  SystemDriver = 2,
  KeyDatabase = 3,
  Toc = 4,
  Spl = 5,
  SocDriver = 7,
  InterfaceDriver = 8,
  DebugDriver = 9,
  RasDriver = 10,
};
struct SosComponent {
  SosType type = SosType::Sos;
  FirmwareBytes bytes;
};

// What the PSP is told of a part, as enum psp_gfx_fw_type numbers it.
enum class FirmwareType : uint32_t {
  RlcV = 7,
  RlcG = 8,
  Smu = 18,
  RlcRestoreListGpm = 20,
  RlcRestoreListSrm = 21,
  RlcRestoreListCntl = 22,
  RlcP = 25,
  RlcIram = 26,
  RlcDramBoot = 48,
  ImuI = 68,
  ImuD = 69,
  SdmaThread0 = 71,
  SdmaThread1 = 72,
  Mec = 89,
  MecStack0 = 94,
  MecStack1 = 95,
  MecStack2 = 96,
  MecStack3 = 97,
};
struct FirmwarePart {
  FirmwareType type = FirmwareType::Smu;
  FirmwareBytes bytes;
};

struct MecFirmware {
  std::vector<FirmwarePart> parts;  // code, then a stack for each pipe
  uint64_t start = 0;               // the first instruction's address
};

// IoError, naming what is wrong in the file `name`. Parts are in the order in which they are
// loaded.
std::vector<SosComponent> read_sos(std::span<const uint8_t> file, const std::string& name);
FirmwarePart read_smu(std::span<const uint8_t> file, const std::string& name);
std::vector<FirmwarePart> read_sdma(std::span<const uint8_t> file, const std::string& name);
MecFirmware read_mec(std::span<const uint8_t> file, const std::string& name);
std::vector<FirmwarePart> read_imu(std::span<const uint8_t> file, const std::string& name);
std::vector<FirmwarePart> read_rlc(std::span<const uint8_t> file, const std::string& name);

struct AmdFirmware {
  std::string folder;
  std::vector<SosComponent> sos;
  FirmwarePart smu;                 // before the others
  std::vector<FirmwarePart> parts;  // SDMA, MEC, IMU, RLC
  uint64_t mec_start = 0;
  const SosComponent* find(SosType type) const;  // null: the file has none
};
// For the versions that the GPU's blocks have. Unsupported, naming the file and the package, where
// one is missing or compressed.
AmdFirmware load_amd_firmware(os::Kernel& kernel, const Discovery& discovery);

}  // namespace tuff::devices::amd
