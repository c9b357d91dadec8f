// A queue meta data block as the compute engine reads it: the fields of QMD V03_00, V04_00 and
// V05_00 that are known, every other bit 0. Read by compute_engine.cpp. Places of fields come from the driver's
// table of constants, meanings do not.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "emu/nv/chip.h"

namespace tuff::emu::nv {

struct Qmd {
  uint64_t program = 0;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t registers = 0, barriers = 0, shared_bytes = 0, local_bytes = 0, sass_version = 0;
  uint32_t shared_configs[3] = {};  // least, target, most; in KiB
  bool invalidates_data = false, invalidates_constants = false;
  uint64_t next = 0;       // the QMD that is launched when this has ended; 0: none
  bool publishes = false;  // a membar of the system at its end
  struct Bank {
    uint32_t number = 0, bytes = 0;
    uint64_t address = 0;
  };
  std::vector<Bank> banks;
};

// Throws BadMethod for what no driver writes so.
Qmd decode_qmd(const ChipKind& chip, std::span<const uint32_t> dwords);

}  // namespace tuff::emu::nv
