// What the system processor (GSP) of a GPU and its starter read of the host's memory: the table of
// pages of its image, the description of protected memory (WPR2), the arguments of its kernel
// (libos) and of the resource manager, and the two messages that lie in its queue before it starts.
// For the boot by PCI. Bytes alone: reads no files, writes no registers. As firmware 570.144 has
// them.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/interface/gsp_abi_check.c (where
// fields are), src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c (kgspCreateRadix3, log buffers,
// kgspSetupLibosInitArgs, kgspPopulateGspRmInitArgs), arch/turing/kernel_gsp_tu102.c (the
// description), src/nvidia/arch/nvalloc/unix/src/registry.c (the registry); tinygrad @09f3aae,
// runtime/support/nv/ip.py and Linux, nova-core/gsp/commands.rs (which values are needed); of FSP:
// src/nvidia/arch/nvalloc/common/inc/gsp/gspifpub.h, src/nvidia/inc/kernel/gpu/fsp/
// kern_fsp_cot_payload.h; Linux, nouveau/nvkm/subdev/fsp/gh100.c @44f93b2 (values).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "devices/nv/pci/firmware.h"
#include "devices/nv/pci/memory_layout.h"
#include "devices/pci_functions.h"

namespace tuff::devices::nv {

using Bytes = std::vector<uint8_t>;

// Of the host's memory, as the GPU addresses it.
struct DmaRange {
  uint64_t address = 0, size_bytes = 0;
};

// ---- the image

// Three levels of tables of page addresses (radix-3), then the image. InvalidArgument where one
// table of the first level is not enough.
size_t image_table_bytes(size_t image_bytes);  // all of it
// `memory`, of image_table_bytes, is at `address` in one piece.
void write_image_table(std::span<std::byte> memory, uint64_t address,
                       std::span<const uint8_t> image);

// ---- what starts it

inline constexpr size_t kSignatureAlignment = 256;
// Of WPR2 (GspFwWprMeta, of kDescriptionBytes), for the booter. `image_bytes` is without tables,
// whose address is `image_table`.
Bytes memory_description(const MemoryLayout& layout, const Bootloader& bootloader,
                         uint64_t image_table, uint64_t image_bytes, DmaRange bootloader_range,
                         DmaRange signature);

// ---- what FSP starts (Hopper, Blackwell)

struct MemorySizes {
  uint64_t heap_bytes = 0, open_heap_bytes = 0, reserved_bytes = 0;
};
// The same struct, by sizes alone.
Bytes memory_wish(const MemorySizes& sizes, const Bootloader& bootloader, uint64_t image_table,
                  uint64_t image_bytes, DmaRange bootloader_range, DmaRange signature);

// GSP_FMC_BOOT_PARAMS: where the description of protected memory and libos's arguments are.
Bytes fmc_arguments(uint64_t description, uint64_t libos_arguments);
// The payload of FspMessage::ChainOfTrust. `version`: 1 of Hopper, 2 of Blackwell; `image` and
// `arguments` are addresses; `end_bytes` at the end of video memory are kept free.
Bytes chain_of_trust(const Fmc& fmc, uint16_t version, uint64_t image, uint64_t arguments,
                     uint64_t end_bytes);

// ---- arguments

inline constexpr size_t kLogBytes = 0x10000;
inline constexpr std::array<const char*, 5> kLogNames = {"LOGINIT", "LOGINTR", "LOGRM", "LOGMNOC",
                                                         "LOGKRNL"};
// A log of kLogBytes begins with where it ends, then has the addresses of its pages.
void write_log_header(std::span<std::byte> memory, uint64_t address);
// Of libos: ranges of memory by name, at most 8 characters.
Bytes libos_arguments(std::span<const std::pair<std::string, DmaRange>> ranges);
// Of the resource manager: `queues` is the memory of GspQueues.
inline constexpr const char* kRmArguments = "RMARGS";
Bytes rm_arguments(DmaRange queues);

// ---- messages before its start

inline constexpr uint32_t kSetSystemInfo = 72, kSetRegistry = 73;
struct PciIdentity {
  uint32_t device = 0, subsystem = 0;  // registers of configuration space at 0 and 0x2c
  uint8_t revision = 0;
};
// GspSystemInfo. InvalidArgument for an address of a function that is none.
Bytes system_info(const PciFunction& function, const PciIdentity& identity);
// What the resource manager needs where nothing else of a driver runs.
Bytes registry();

}  // namespace tuff::devices::nv
