#include "emu/rdna/initial_state.h"

#include "base/arith.h"
#include "base/check.h"

namespace tuff::emu::rdna {
namespace {

void set_scalar(Wave& w, uint32_t index, uint32_t value) {
  w.s[index] = value;
  w.s_written[index] = true;
}

uint32_t set_user_registers(Wave& w, const Launch& launch) {
  const uint32_t count = launch.rsrc2 >> 1 & 31;
  for (uint32_t k = 0; k < count && k < launch.user_data.size(); ++k) {
    if (launch.user_data_written >> k & 1) set_scalar(w, k, launch.user_data[k]);
  }
  return count;
}

void set_group_ids(Wave& w, const Launch& launch, uint32_t next) {
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (launch.rsrc2 >> (7 + axis) & 1) set_scalar(w, next++, w.group->id[axis]);
  }
  // TG_SIZE_EN: how many waves the workgroup has, and which of them this is, where Mesa looks for
  // it: above that in 22.3, in bits 20 to 24 in 25.0 (aco_instruction_selection.cpp,
  // load_subgroup_id and load_num_subgroups).
  const auto [x, y, z] = launch.group_size;
  if (launch.rsrc2 >> 10 & 1)
    set_scalar(w, next, ceil_div(x * y * z, kLanes) | w.number << 6 | w.number << 20);
}

// The position within the workgroup, ten bits per axis, in v0: as many axes as rsrc2 asks for.
void set_lane_ids(Wave& w, const Launch& launch) {
  const auto [x, y, z] = launch.group_size;
  const uint32_t axes = launch.rsrc2 >> 11 & 3;
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t flat = w.number * kLanes + lane;
    if (flat >= x * y * z) break;
    const uint32_t second = axes > 0 ? flat / x % y : 0, third = axes > 1 ? flat / (x * y) : 0;
    w.v[0][lane] = flat % x | second << 10 | third << 20;
    lanes |= 1u << lane;
  }
  w.v_written[0] = lanes;
  w.s[source::ExecLo] = lanes;
}

// FLOAT_MODE, DX10_CLAMP and IEEE_MODE; FP16_OVFL and the exceptions of rsrc2 have no meaning here.
void set_initial_mode(Wave& w, const Launch& launch) {
  const uint32_t rsrc1 = launch.rsrc1, exceptions = launch.rsrc2 >> 24 & 127;
  w.mode = (rsrc1 >> 12 & kFloatBits) | (rsrc1 >> 21 & 1 ? kDx10Clamp : 0) |
           (rsrc1 >> 23 & 1 ? kIeee : 0);
  if (exceptions == 0 && !(rsrc1 >> 26 & 1)) return;
  w.machine->current = nullptr;
  w.machine->report(w, FindingKind::ModeNotEmulated, 0, 0,
                    fmt::format("the kernel asks for exceptions {:#x} and FP16_OVFL {}", exceptions,
                                rsrc1 >> 26 & 1));
  w.machine->stop();
}

void forget(Wave& w) {
  w.scc = w.ended = w.at_barrier = w.outstanding = false;
  w.issued = w.completed = {};
  w.unfinished_since = 0;
  w.lds_on_the_way.clear();
  w.v_vector_load.fill(0);
  w.v_lds_load.fill(0);
  w.v_load_lanes.fill(0);
  w.s_load.fill(0);
  w.v_written.fill(0);
  w.s_written.fill(false);
}

}  // namespace

void set_initial_state(Wave& w, const Launch& launch, SplitMix64& random) {
  forget(w);
  // What was never written is neither zero nor the same twice.
  for (auto& words : w.v) words.fill(0xDEAD0000u | uint32_t(random.below(0x10000)));
  w.s.fill(0xDEAD5555u);
  for (const uint16_t index : {source::VccLo, uint16_t(source::VccLo + 1), source::M0,
                               source::ExecLo, uint16_t(source::ExecLo + 1)}) {
    set_scalar(w, index, 0);
  }
  w.pc = launch.entry_address;
  set_initial_mode(w, launch);
  w.scratch_bytes = launch.scratch_bytes;
  w.scratch.assign(size_t(w.scratch_bytes) * kLanes, 0xCD);
  set_group_ids(w, launch, set_user_registers(w, launch));
  set_lane_ids(w, launch);
}

}  // namespace tuff::emu::rdna
