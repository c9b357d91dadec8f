// Quirks: what no feature bit tells about a driver, as a table of data rows.
// Used when a Target is filled. A new bug of a driver is a new row of quirks.cpp, never an `if` in
// the driver code.
#pragma once

#include <cstdint>

#include "devices/vulkan/api/api.h"

namespace tuff::devices::vulkan {

struct Quirks {
  uint64_t max_loop_trips = 0;  // 0: no limit known
  uint32_t access_bytes = 0;    // widest load or store; 0: no limit known
  uint32_t most_registers = 0;  // that an invocation can have; 0: not known
  bool u32_to_f32_rounds_twice = false;
  bool folds_zero_products = false;    // with a zero that the driver's compiler knows
  bool misreads_denormals = false;     // a kernel that asks to keep them computes with other values
  bool folds_f16_casts = false;        // a float that becomes f16 and float again stays as it was
  bool loses_wide_quotients = false;   // of 64 bits, where something is added to them
  bool shared_in_main_memory = false;  // workgroup memory is no faster than the caches
};
// All rows that match, the strictest value of each field.
Quirks quirks_of(VkDriverId driver, uint32_t version);

}  // namespace tuff::devices::vulkan
