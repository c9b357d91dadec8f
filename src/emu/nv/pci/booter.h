// What the booter reads of the host's memory before it starts the GSP's firmware: the description
// of protected memory (WPR2), by which it finds the firmware, its signature and its loader. The
// emulated one checks all of it as far as it can be known. Called by gpu_function. Shares nothing
// with the driver. Source: open-gpu-kernel-modules @8ec351a (570.144), the struct GspFwWprMeta
// (gsp_fw_wpr_meta.h) and the map of memory before kgspCalculateFbLayout_TU102.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emu/pci/bus.h"

namespace tuff::emu::nv {

// What NVIDIA has signed, by which the emulated GPU knows it.
struct GspFiles {
  std::vector<uint8_t> image, signature, bootloader;
};

struct BootedFirmware {
  std::string refusal;  // empty: all is as it should be
  uint64_t protected_begin = 0, protected_end = 0;
  uint64_t host_end = 0;  // of the memory that is left to the host
};
// `frts` is where FWSEC has protected memory up to `protected_end`.
BootedFirmware boot_firmware(pci::HostMemory& memory, uint64_t description, const GspFiles& files,
                             uint64_t video_bytes, uint64_t frts, uint64_t protected_end);

// What FSP starts, by which it knows it, and what the message that asks for that says.
struct FmcFiles {
  std::vector<uint8_t> image, hash, public_key, signature;
  uint16_t version = 1;  // of messages
};
struct FspRequest {
  std::string refusal;  // empty: all is as it should be
  uint64_t arguments = 0, description = 0, libos_arguments = 0;
  uint64_t end_bytes = 0;  // to be kept free at the end of memory
};
FspRequest read_request(pci::HostMemory& memory, const std::vector<uint32_t>& payload,
                        const FmcFiles& files);
// As boot_firmware, where only sizes are asked for.
BootedFirmware place_firmware(pci::HostMemory& memory, uint64_t description, const GspFiles& files,
                              uint64_t video_bytes, uint64_t end_bytes);

}  // namespace tuff::emu::nv
