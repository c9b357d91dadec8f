// What is taken from a GPU's VBIOS: FWSEC, a signed program for the GPU's falcon processors that
// sets up protected memory (WPR2) before the GSP starts, on Turing to Ada. For the boot by PCI.
// Knows no registers: it gets the bytes of the ROM, which may be damaged.
// Sources: open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/gsp/arch/turing/
// kernel_gsp_vbios_tu102.c @0b7b804 (images), kernel_gsp_fwsec.c @1739a20 (tables, descriptors),
// kernel_gsp_frts_tu102.c @0b7b804 (commands, signatures), inc/platform/pci_exp_table.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tuff::devices::nv {

inline constexpr size_t kVbiosBytes = 1u << 20;  // at most, with all images

// RSA, of 3072 bits.
using FalconSignature = std::array<uint8_t, 384>;

// Memory of a falcon and what is loaded there.
struct FalconSegment {
  std::vector<uint8_t> bytes;
  uint32_t physical = 0, virtual_address = 0;  // in IMEM or DMEM
};

struct Fwsec {
  FalconSegment code, data;
  uint32_t interface_offset = 0;  // of the table of interfaces, in the data
  // Descriptors of version 2 (Turing): its own code loads the part that is signed.
  bool has_loader = false;
  uint32_t entry = 0;                            // virtual
  uint32_t secure_offset = 0, secure_bytes = 0;  // in the code
  // Of version 3 (since Ampere): the falcon's boot ROM checks a signature in the data.
  uint32_t signature_offset = 0;
  uint16_t engine_mask = 0, signature_versions = 0;  // a bit for each version that is signed
  uint8_t ucode_id = 0;
  std::vector<FalconSignature> signatures;  // by rising version
};

// `rom` is what BAR 0 has from 0x300000 on. `debug`: that of GPUs that are fused for development.
// IoError, naming what is wrong.
Fwsec read_fwsec(std::span<const uint8_t> rom, bool debug = false);

enum class FwsecCommand : uint32_t {
  Frts = 0x15,  // protect a region of video memory, as WPR2
  Sb = 0x19,    // once the GSP has ended
};

// The data with a command in it, and with the signature for the version that the GPU's fuses have
// of this program. `frts_offset` is in video memory, in bytes: whole pages of 4 KiB. IoError where
// the program has no room for commands, or no signature of that version.
std::vector<uint8_t> fwsec_data(const Fwsec& fwsec, FwsecCommand command, uint64_t frts_offset,
                                uint32_t fuse_version);

inline constexpr uint64_t kFrtsBytes = 1u << 20;

}  // namespace tuff::devices::nv
