// The firmware of a GPU's system processor (GSP), as distributions install it, in the containers
// that NVIDIA makes for nouveau: the resource manager itself, what loads it, and the signed
// programs that start that. For the boot by PCI. Knows no registers; files may be damaged or
// missing. Sources: open-gpu-kernel-modules, nouveau/extract-firmware-nouveau.py (containers and
// names; a version of 2023), src/nvidia/src/kernel/gpu/gsp/kernel_gsp_booter.c (which signature);
// Linux, drivers/gpu/drm/nouveau/include/nvfw/{fw,hs}.h (headers), nvkm/subdev/gsp/gh100.c @32cb1cc
// (FMC).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tuff::devices::nv {

// A signed program for the falcon SEC2 (Turing to Ada). Offsets are in `image`.
struct Booter {
  std::vector<uint8_t> image;
  uint32_t code_offset = 0, code_bytes = 0;  // secure; where it is loaded to, too
  uint32_t data_offset = 0, data_bytes = 0;
  uint32_t signature_offset = 0;
  uint32_t engine_mask = 0, ucode_id = 0;
  std::vector<std::vector<uint8_t>> signatures;  // the newest version's last one is for fuses of 0
};

// What the GSP's RISC-V runs first. Offsets are in `image`.
struct Bootloader {
  std::vector<uint8_t> image;
  uint32_t app_version = 0;
  uint32_t code_offset = 0, data_offset = 0, manifest_offset = 0;
};

// The resource manager: an ELF file whose sections are of NVIDIA's own making.
struct GspImage {
  std::vector<uint8_t> image, signature;
  std::string version;  // "570.144"; empty where the file does not say
};

// What FSP checks and starts on the GSP, before the bootloader (Hopper, Blackwell).
struct Fmc {
  std::vector<uint8_t> image, hash, public_key, signature;
};

// IoError, naming what is wrong in the file `name`.
Booter read_booter(std::span<const uint8_t> file, const std::string& name);
Bootloader read_bootloader(std::span<const uint8_t> file, const std::string& name);
// `family`: "ga10x", whose signature is wanted.
GspImage read_gsp_image(std::span<const uint8_t> file, const std::string& name,
                        const std::string& family);

// An ELF file of 32 bits.
Fmc read_fmc(std::span<const uint8_t> file, const std::string& name);

// The image with the signature for the version of it that the GPU's fuses have. IoError where there
// is none.
std::vector<uint8_t> signed_image(const Booter& booter, uint32_t fuse_version);

}  // namespace tuff::devices::nv
