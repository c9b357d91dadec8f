// Variable: a field of a command that comes from a slot of the submission instead of from the
// command, where a device can patch what it encoded. Given to the encoders of amd and nv beside a
// list. Knows no native encoding.
#pragma once

#include <cstdint>
#include <span>

#include "devices/packet_stream.h"
#include "hcq/command.h"

namespace tuff::devices {

struct Variable {
  enum class Field : uint8_t { Args, CopyDst, CopySrc };
  uint32_t command = 0;  // index in the list
  Field field = Field::Args;
  uint32_t slot = 0;
  uint64_t addend = 0;  // added to addresses
};

// `fixed`, or the variable of the command in its place.
inline Operand operand_of(std::span<const Variable> variables, uint32_t command,
                          Variable::Field field, uint64_t fixed) {
  for (const Variable& v : variables) {
    if (v.command == command && v.field == field) return Operand::of_slot(v.slot, v.addend);
  }
  return fixed;
}

// How many workgroups a launch takes along an axis, times `scale`.
inline Operand groups_of(const hcq::DispatchCmd& launch, size_t axis, uint16_t scale = 1) {
  const int32_t slot = launch.group_slots[axis];
  if (slot >= 0) return Operand::of_slot(static_cast<uint32_t>(slot), 0, scale);
  return uint64_t{launch.groups[axis]} * scale;
}

}  // namespace tuff::devices
