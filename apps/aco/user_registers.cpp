#include "aco/user_registers.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "base/check.h"

namespace tuff::aco {
namespace {

constexpr uint32_t kUserRegisters = 16, kOwnRegisters = 2;  // the driver's: scratch memory
constexpr uint32_t kGroupRegisters = 3;                      // how many workgroups, by axis
constexpr uint32_t kMostInlined = 32, kMostInlinedBesidePointer = 8;

// What the last form of the shader reads, told by the driver's listing of NIR: one value of SSA a
// line, "vec4 32 con ssa_24 = intrinsic load_push_constant (ssa_23) (base=0, range=52)" by Mesa
// 22.3, "con 32x4  %24 = @load_smem_amd (%9, %17 (0x2c)) (align_mul=4, align_offset=0)" by Mesa 25.
class NirReader {
 public:
  explicit NirReader(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) take(line);
  }

  std::array<uint32_t, 3> local{1, 1, 1};
  uint32_t push_bytes = 0;
  uint64_t push_mask = 0;  // the dwords of push constants that are read at a constant offset
  bool reads_push = false, reads_push_elsewhere = false;
  bool reads_num_workgroups = false, reads_group_info = false;
  uint32_t sets = 0;  // that are used
  std::array<bool, 3> workgroup_id{};
  // Mesa 25 names arguments alone: which are read, and which of them are addresses.
  bool names_arguments = false;
  std::set<uint32_t> arguments, addresses;
  uint64_t memory_dwords(uint32_t argument) const {  // at constant offsets from an address
    const auto row = memory_dwords_.find(argument);
    return row == memory_dwords_.end() ? 0 : row->second;
  }

 private:
  void take(const std::string& line) {
    std::sscanf(line.c_str(), "workgroup-size: %u, %u, %u", &local[0], &local[1], &local[2]);
    std::sscanf(line.c_str(), "uniforms: %u", &push_bytes);
    names_arguments =
        std::sscanf(line.c_str(), "workgroup_size: %u, %u, %u", &local[0], &local[1], &local[2]) ==
            3 ||
        names_arguments;
    note_workgroup_ids(line, names_arguments ? "%" : "ssa_");
    if (names_arguments) take_arguments(line);
    unsigned components = 0, bits = 0, result = 0;
    char divergence[8] = {};
    if (std::sscanf(line.c_str(), " vec%u %u %7s ssa_%u =", &components, &bits, divergence,
                    &result) != 4)
      return;
    if (const size_t at = line.find("load_const (0x"); at != line.npos)
      constants_[result] = uint32_t(std::strtoul(line.c_str() + at + 12, nullptr, 16));
    const auto has = [&](const char* name) { return line.find(name) != line.npos; };
    if (has("intrinsic load_workgroup_id ")) workgroup_ids_.insert(result);
    if (has("intrinsic load_num_workgroups ")) reads_num_workgroups = true;
    if (has("intrinsic load_local_invocation_index ") || has("intrinsic load_subgroup_id ") ||
        has("intrinsic load_num_subgroups "))
      reads_group_info = true;
    if (has("intrinsic load_push_constant ")) push_constant(line, components, bits);
    // Arguments are counted from the driver's own on, which is 0; sets follow it.
    if (const size_t at = line.find("intrinsic load_scalar_arg_amd () (base="); at != line.npos)
      sets = std::max(sets, uint32_t(std::strtoul(line.c_str() + at + 39, nullptr, 10)));
  }

  void take_arguments(const std::string& line) {
    unsigned components = 1, bits = 0, result = 0, argument = 0, low = 0, address = 0, offset = 0;
    char divergence[8] = {};
    if (std::sscanf(line.c_str(), " %7s %ux%u %%%u =", divergence, &bits, &components, &result) !=
        4) {
      components = 1;
      if (std::sscanf(line.c_str(), " %7s %u %%%u =", divergence, &bits, &result) != 3) return;
    }
    const char* value = line.c_str() + line.find("= ") + 2;
    if (std::string_view(value).starts_with("@load_workgroup_id")) workgroup_ids_.insert(result);
    if (std::sscanf(value, "@load_scalar_arg_amd (base=%u", &argument) == 1) {
      arguments.insert(argument);
      argument_of_[result] = argument;
    }
    // Addresses of the driver's lie in its 4 GiB: their high halves are a number.
    if (std::sscanf(value, "pack_64_2x32_split %%%u, %%%*u (0x%x", &low, &offset) == 2 &&
        argument_of_.contains(low)) {
      addresses.insert(argument_of_[low]);
      argument_of_[result] = argument_of_[low];
    }
    const int read = std::sscanf(value, "@load_smem_amd (%%%u, %%%*u (0x%x)", &address, &offset);
    if (read == 2 && bits >= 32 && argument_of_.contains(address))
      for (uint32_t k = offset / 4; k < std::min(offset / 4 + components * bits / 32, kPushDwords);
           ++k)
        memory_dwords_[argument_of_[address]] |= uint64_t(1) << k;
  }

  void push_constant(const std::string& line, uint32_t components, uint32_t bits) {
    reads_push = true;
    unsigned offset_value = 0, base = 0;
    const size_t at = line.find("load_push_constant");
    const bool known = std::sscanf(line.c_str() + at, "load_push_constant (ssa_%u) (base=%u",
                                   &offset_value, &base) == 2;
    const auto offset = constants_.find(offset_value);
    if (!known || offset == constants_.end() || bits < 32) {
      reads_push_elsewhere = true;
      return;
    }
    const uint32_t first = (base + offset->second) / 4, count = components * (bits / 32);
    if (first + count > kPushDwords)
      reads_push_elsewhere = true;
    else
      for (uint32_t k = first; k < first + count; ++k) push_mask |= uint64_t(1) << k;
  }

  // "ssa_0.z" reads one component of a value, "ssa_0.xy" two, "ssa_0" all.
  void note_workgroup_ids(const std::string& line, std::string_view prefix) {
    for (size_t at = line.find(prefix); at != line.npos; at = line.find(prefix, at + 1)) {
      char* end = nullptr;
      const auto id = uint32_t(std::strtoul(line.c_str() + at + prefix.size(), &end, 10));
      if (!workgroup_ids_.contains(id)) continue;
      if (*end != '.') workgroup_id = {true, true, true};
      for (++end; *end >= 'x' && *end <= 'z'; ++end) workgroup_id[size_t(*end - 'x')] = true;
    }
  }

  std::map<uint32_t, uint32_t> constants_, argument_of_;
  std::map<uint32_t, uint64_t> memory_dwords_;  // by the argument that is their address
  std::set<uint32_t> workgroup_ids_;
};

// Push constants that lie in registers: all that are read, or the first so many beside the address
// of them all.
void add_push_constants(const NirReader& nir, uint32_t remaining, std::vector<std::string>& user) {
  if (!nir.reads_push) return;
  uint64_t mask = nir.push_mask;
  const auto count = uint32_t(std::popcount(mask));
  const bool all = count > 0 && !nir.reads_push_elsewhere &&
                   count <= std::min(remaining + 1, kMostInlined);
  if (!all) {
    user.push_back("push");
    const uint32_t most = std::min(remaining, kMostInlinedBesidePointer);
    while (uint32_t(std::popcount(mask)) > most)
      mask &= ~(uint64_t(1) << (63 - std::countl_zero(mask)));
  }
  for (uint32_t k = 0; k < kPushDwords; ++k)
    if (mask >> k & 1) user.push_back(fmt::format("push.{}", 4 * k));
}

std::vector<uint32_t> sets_of(const ShaderInterface& interface, const NirReader& nir) {
  std::set<uint32_t> named;
  for (const auto& [at, kind] : interface.buffers) named.insert(at.first);
  if (nir.sets == 0) return {};
  if (nir.sets != named.size())
    fail<Unsupported>("RADV: the shader uses {} of its {} descriptor sets; it is not known which",
                      nir.sets, named.size());
  return {named.begin(), named.end()};
}

// How many scalar registers the compiled code begins with: the first line of ACO's form has them
// all, "s2: (kill)%2145:s[0-1],  s1: %2146:s[2], ... = p_startpgm", some as parts of vectors.
uint32_t scalar_registers(const std::string& aco_ir) {
  const size_t end = aco_ir.find(" = p_startpgm");
  if (end == aco_ir.npos) return 0;
  const size_t before = aco_ir.rfind('\n', end);
  std::istringstream words(aco_ir.substr(before + 1, end - before));
  uint32_t count = 0;
  for (std::string word; words >> word;) {
    unsigned size = 0;
    if (word.ends_with(':') && std::sscanf(word.c_str(), "s%u:", &size) == 1) count += size;
  }
  return count;
}

void compare(const InputRegisters& in, const CompiledShader& shader) {
  const auto ids = size_t(std::ranges::count(in.workgroup_id, true));
  const size_t wanted = in.user.size() + ids + in.group_info;
  const uint32_t there = scalar_registers(shader.aco_ir);
  if (there != wanted)
    fail<Unsupported>("RADV gives the shader {} scalar registers, where {} are expected ({}, {} of "
                      "workgroup ids): this driver's assignment is not known; Mesa 22.3's is",
                      there, wanted, fmt::join(in.user, " "), ids + in.group_info);
}

// Mesa 25: arguments are numbered in the order of their registers, the driver's own first. Those
// between the sets and the ids of workgroups are push constants, beside an address of the rest or
// all that are read.
InputRegisters numbered_registers(const CompiledShader& shader, const NirReader& nir,
                                  const ShaderInterface& interface, InputRegisters in) {
  std::set<uint32_t> named;
  for (const auto& [at, kind] : interface.buffers) named.insert(at.first);
  const auto sets = uint32_t(named.size()), pushes = sets + 1;
  const bool pointer = nir.addresses.contains(pushes);
  if (nir.addresses.size() != sets + pointer)
    fail<Unsupported>("RADV: the shader has {} addresses in registers for its {} descriptor sets",
                      nir.addresses.size(), sets);
  for (const uint32_t set : named) in.user.push_back(fmt::format("set.{}", set));
  if (pointer) in.user.push_back("push");
  const uint32_t groups = interface.uses_num_workgroups ? kGroupRegisters : 0;
  const uint32_t there = scalar_registers(shader.aco_ir);
  const uint32_t last = there - kOwnRegisters - (groups ? groups - 1 : 0);
  in.group_info = nir.arguments.contains(last);
  const auto ids = uint32_t(std::ranges::count(in.workgroup_id, true));
  const uint32_t others = uint32_t(in.user.size()) + groups + ids + in.group_info;
  const uint32_t room = there - std::min(there, others);
  const uint64_t inlined =
      room > 0 ? interface.push_dwords & ~nir.memory_dwords(pushes) : uint64_t(0);
  if (uint32_t(std::popcount(inlined)) != room)
    fail<Unsupported>("RADV gives the shader {} push constants in registers, and it is not known "
                      "which of the {} that it names; Mesa 22.3's order is",
                      room, std::popcount(inlined));
  for (uint32_t k = 0; k < kPushDwords; ++k)
    if (inlined >> k & 1) in.user.push_back(fmt::format("push.{}", 4 * k));
  for (uint32_t axis = 0; axis < groups; ++axis) in.user.push_back(fmt::format("groups.{}", axis));
  return in;
}

}  // namespace

InputRegisters input_registers(const CompiledShader& shader, const ShaderInterface& interface) {
  const NirReader nir(shader.nir);
  InputRegisters in;
  in.local = nir.local;
  in.push_bytes = nir.push_bytes;
  in.workgroup_id = nir.workgroup_id;
  in.group_info = nir.reads_group_info;
  in.user.resize(kOwnRegisters);
  if (nir.names_arguments) return numbered_registers(shader, nir, interface, std::move(in));
  const std::vector<uint32_t> sets = sets_of(interface, nir);
  for (const uint32_t set : sets) in.user.push_back(fmt::format("set.{}", set));
  const uint32_t groups = nir.reads_num_workgroups ? kGroupRegisters : 0;
  const uint32_t pointer = nir.reads_push ? 1 : 0;
  const size_t taken = in.user.size() + groups + pointer;
  if (taken > kUserRegisters)
    fail<Unsupported>("the shader has {} descriptor sets, more than lie in registers", sets.size());
  add_push_constants(nir, uint32_t(kUserRegisters - taken), in.user);
  for (uint32_t axis = 0; axis < groups; ++axis) in.user.push_back(fmt::format("groups.{}", axis));
  compare(in, shader);
  return in;
}

}  // namespace tuff::aco
