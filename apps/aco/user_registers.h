// Where a compute shader that RADV compiled finds its inputs: descriptor sets, push constants and
// numbers of workgroups in user SGPRs, workgroup ids behind them. Read off the driver's listings by
// main.cpp, and compared with how many registers the compiler says to begin with: another driver's
// assignment is refused, never guessed. Knows no driver.
// Source: Mesa 22.3, src/amd/vulkan/radv_shader_args.c and radv_shader_info.c (compute shaders),
// src/amd/common/ac_shader_args.h (how many push constants are inlined).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "aco/radv.h"

namespace tuff::aco {

struct InputRegisters {
  // What s0 and on hold: "set.N": address of a descriptor set; "push": address of the push
  // constants; "push.BYTE": one of them; "groups.AXIS": how many workgroups; "": the driver's own.
  std::vector<std::string> user;
  std::array<bool, 3> workgroup_id{};  // by axis, behind them
  bool group_info = false;             // TG_SIZE, behind those
  std::array<uint32_t, 3> local{1, 1, 1};
  uint32_t push_bytes = 0;  // of the shader's block of push constants
};

// Unsupported where the listings say something that is not known here.
InputRegisters input_registers(const CompiledShader& shader, const ShaderInterface& interface);

}  // namespace tuff::aco
