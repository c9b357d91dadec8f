// What `tuff gpu` and `tuff emu run --profile` print alike of a KernelProfile, as JSON. In a
// header, since the program and the emulator's library share no code.
#pragma once

#include "base/json.h"
#include "emu/api.h"

namespace tuff::emu_api {

inline Json instructions_json(const KernelProfile& p) {
  Json rows = Json::array();
  for (const KernelProfile::Instruction& i : p.instructions) {
    rows.push_back({{"address", i.address},
                    {"text", i.text},
                    {"executed", i.executed},
                    {"lanes", i.lanes},
                    {"bytes", i.bytes},
                    {"lines", i.lines},
                    {"least_lines", i.least_lines},
                    {"lds_cycles", i.lds_cycles},
                    {"conflict_cycles", i.conflict_cycles}});
  }
  return rows;
}

inline Json parts_json(const KernelProfile& p) {
  return {{"issue", p.issue_us}, {"lds", p.lds_us},   {"l0", p.l0_us},
          {"l2", p.l2_us},       {"mall", p.mall_us}, {"dram", p.dram_us},
          {"latency", p.latency_us}, {"launch", p.launch_us}};
}

}  // namespace tuff::emu_api
