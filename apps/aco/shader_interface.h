// What a compute module of SPIR-V asks the hardware for: sizes, built-in inputs, float modes. Read
// off its words by main.cpp; knows no driver. Damaged modules throw CompileError.
// Source: SPIR-V specification, 2.3 (physical layout) and 3 (enumerants).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace tuff::aco {

constexpr uint32_t kPushDwords = 64;  // RADV's maxPushConstantsSize

enum class BufferKind : uint8_t { Storage, Uniform };
using Binding = std::pair<uint32_t, uint32_t>;  // a descriptor's set and its number there

struct ShaderInterface {
  std::string entry;                         // the one entry point, or the one of that name
  // As LocalSize, LocalSizeId or the built-in WorkgroupSize of the module says.
  std::array<uint32_t, 3> local{1, 1, 1};
  std::array<std::optional<uint32_t>, 3> local_constants;  // their SpecId, where it can be changed
  std::array<bool, 3> uses_workgroup_id{};   // by component
  bool uses_group_info = false;              // which subgroup of how many
  bool uses_num_workgroups = false;
  bool preserves_f32_denormals = false;      // execution mode DenormPreserve
  uint64_t push_dwords = 0;                  // of push constants, those that the module names
  uint32_t descriptor_sets = 0;              // how many the module names
  std::map<Binding, BufferKind> buffers;     // several variables of one binding are one buffer
  std::string other_descriptor;              // "1:0" where that is no buffer; else ""
  std::set<uint32_t> constants;              // that can be specialized: their SpecId
};

// For the entry point of a name; for the only one if the name is empty.
ShaderInterface interface_of(std::span<const uint32_t> words, const std::string& entry = {});

}  // namespace tuff::aco
