// What a compute module of SPIR-V asks the hardware for: sizes, built-in inputs, float modes. Read
// off its words by main.cpp; knows no driver. Damaged modules throw CompileError.
// Source: SPIR-V specification, 2.3 (physical layout) and 3 (enumerants).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tuff::aco {

struct ShaderInterface {
  std::string entry;                         // the one entry point
  std::array<uint32_t, 3> local{1, 1, 1};    // of LocalSize
  std::array<bool, 3> uses_workgroup_id{};   // by component
  bool uses_num_workgroups = false;
  bool preserves_f32_denormals = false;      // execution mode DenormPreserve
  uint32_t descriptor_sets = 0;              // how many the module names
};

ShaderInterface interface_of(std::span<const uint32_t> words);

}  // namespace tuff::aco
