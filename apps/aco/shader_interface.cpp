#include "aco/shader_interface.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"

namespace tuff::aco {
namespace {

constexpr size_t kHeaderWords = 5;
constexpr uint32_t kComponents = 3;

// One walk over a module; an id is defined before it is used, but for entry points and decorations,
// which come first.
class Reader {
 public:
  Reader(std::span<const uint32_t> words, const std::string& entry)
      : words_(words), wanted_(entry) {
    if (words.size() < kHeaderWords || words[0] != spv::MagicNumber)
      fail<CompileError>("SPIR-V: {} words that begin with {:#x}, which is no module", words.size(),
                         words.empty() ? 0 : words[0]);
    for (size_t at = kHeaderWords; at < words.size();) {
      const uint32_t count = words[at] >> spv::WordCountShift;
      if (count == 0 || count > words.size() - at)
        fail<CompileError>("SPIR-V: an instruction of {} words at word {} of {}", count, at,
                           words.size());
      take(spv::Op(words[at] & spv::OpCodeMask), words.subspan(at + 1, count - 1));
      at += count;
    }
    if (out_.entry.empty())
      fail<CompileError>("SPIR-V: the module has no compute entry point{}",
                         wanted_.empty() ? "" : " '" + wanted_ + "'");
    add_buffers();
    set_local();
  }
  ShaderInterface result() && { return std::move(out_); }

 private:
  using Words = std::span<const uint32_t>;

  void take(spv::Op op, Words w) {
    switch (op) {
      case spv::OpEntryPoint: return entry_point(w);
      case spv::OpExecutionMode: return execution_mode(w);
      case spv::OpExecutionModeId:
        if (w.size() >= 5 && w[0] == entry_id_ && w[1] == spv::ExecutionModeLocalSizeId)
          local_ids_.assign(w.begin() + 2, w.begin() + 5);
        return;
      case spv::OpDecorate: return decorate(w);
      case spv::OpVariable: return variable(w);
      case spv::OpTypePointer:
        if (w.size() >= 3) pointees_[w[0]] = w[2];
        if (w.size() >= 3 && w[1] == spv::StorageClassPhysicalStorageBuffer) dwords_[w[0]] = 2;
        return;
      case spv::OpTypeStruct:
        if (!w.empty()) structs_[w[0]].assign(w.begin() + 1, w.end());
        return;
      case spv::OpTypeInt:
      case spv::OpTypeFloat:
        if (w.size() >= 2) dwords_[w[0]] = std::max(w[1] / 32, 1u);
        return;
      case spv::OpTypeVector:
        if (w.size() >= 3) dwords_[w[0]] = dwords_[w[1]] * w[2];
        return;
      case spv::OpTypeArray:
        if (w.size() >= 3) dwords_[w[0]] = dwords_[w[1]] * constants_[w[2]];
        return;
      case spv::OpMemberDecorate:
        if (w.size() >= 4 && w[2] == spv::DecorationOffset) offsets_[{w[0], w[1]}] = w[3];
        return;
      case spv::OpConstant:
        if (w.size() >= 3) constants_[w[1]] = w[2];
        return;
      case spv::OpSpecConstant:
        if (w.size() >= 3) defaults_[w[1]] = w[2];
        return;
      case spv::OpConstantComposite:
      case spv::OpSpecConstantComposite: return composite(w);
      case spv::OpAccessChain:
      case spv::OpInBoundsAccessChain: return access_chain(w);
      case spv::OpLoad:
        if (w.size() >= 3 && workgroup_ids_.contains(w[2])) loaded_ids_.insert(w[1]);
        return;
      case spv::OpCompositeExtract:
        if (w.size() >= 4 && loaded_ids_.contains(w[2])) use_id(w[3]);
        return;
      case spv::OpStore:
        if (w.size() >= 2 && loaded_ids_.contains(w[1])) use_all_ids();
        return;
      case spv::OpVectorShuffle: return whole_uses(w.size() >= 4 ? w.subspan(2, 2) : Words{});
      default:
        // Conversions, arithmetic, comparisons and bits: result type, result, operands.
        if (op >= spv::OpConvertFToU && op <= spv::OpBitCount && w.size() > 2)
          whole_uses(w.subspan(2));
        return;
    }
  }

  void entry_point(Words w) {
    if (w.size() < 3 || w[0] != spv::ExecutionModelGLCompute) return;
    const char* text = reinterpret_cast<const char*>(w.data() + 2);
    const std::string name(text, strnlen(text, (w.size() - 2) * sizeof(uint32_t)));
    if (!wanted_.empty() && name != wanted_) return;
    if (!out_.entry.empty())
      fail<CompileError>("SPIR-V: the module has several entry points: '{}', '{}'", out_.entry,
                         name);
    out_.entry = name;
    entry_id_ = w[1];
  }

  void execution_mode(Words w) {
    if (w.empty() || w[0] != entry_id_) return;
    if (w.size() >= 5 && w[1] == spv::ExecutionModeLocalSize)
      std::copy_n(w.begin() + 2, kComponents, out_.local.begin());
    if (w.size() >= 3 && w[1] == spv::ExecutionModeDenormPreserve && w[2] == 32)
      out_.preserves_f32_denormals = true;
  }

  void decorate(Words w) {
    if (w.size() >= 3 && w[1] == spv::DecorationBuiltIn) built_ins_[w[0]] = w[2];
    if (w.size() >= 3 && w[1] == spv::DecorationDescriptorSet) {
      sets_[w[0]] = w[2];
      out_.descriptor_sets = std::max(out_.descriptor_sets, w[2] + 1);
    }
    if (w.size() >= 3 && w[1] == spv::DecorationBinding) bindings_[w[0]] = w[2];
    if (w.size() >= 3 && w[1] == spv::DecorationSpecId) {
      out_.constants.insert(w[2]);
      spec_ids_[w[0]] = w[2];
    }
    if (w.size() >= 2 && w[1] == spv::DecorationBufferBlock) buffer_blocks_.insert(w[0]);
  }

  // The built-in WorkgroupSize is an object, which takes precedence over modes (SPIR-V, 3.21).
  void composite(Words w) {
    const auto built_in = w.size() == 2 + kComponents ? built_ins_.find(w[1]) : built_ins_.end();
    if (built_in != built_ins_.end() && built_in->second == spv::BuiltInWorkgroupSize)
      local_ids_.assign(w.begin() + 2, w.end());
  }

  // What is computed from constants stays as the mode has it.
  void set_local() {
    for (size_t c = 0; c < local_ids_.size(); ++c) {
      const uint32_t id = local_ids_[c];
      if (const auto known = constants_.find(id); known != constants_.end())
        out_.local[c] = known->second;
      const auto changed = defaults_.find(id);
      if (changed == defaults_.end()) continue;
      out_.local[c] = changed->second;
      if (const auto spec = spec_ids_.find(id); spec != spec_ids_.end())
        out_.local_constants[c] = spec->second;
    }
  }

  void variable(Words w) {
    if (w.size() >= 3 && w[2] == spv::StorageClassPushConstant)
      push_blocks_[w[1]] = pointees_[w[0]];
    if (w.size() >= 3 && sets_.contains(w[1])) descriptors_.push_back({w[1], w[0], w[2]});
    if (w.size() < 3 || !built_ins_.contains(w[1])) return;
    const uint32_t which = built_ins_[w[1]];
    if (which == spv::BuiltInWorkgroupId || which == spv::BuiltInGlobalInvocationId)
      workgroup_ids_.insert(w[1]);
    if (which == spv::BuiltInNumWorkgroups) out_.uses_num_workgroups = true;
    if (which == spv::BuiltInSubgroupId || which == spv::BuiltInNumSubgroups)
      out_.uses_group_info = true;
  }

  void access_chain(Words w) {
    if (w.size() >= 4 && push_blocks_.contains(w[2])) return use_push(push_blocks_[w[2]], w[3]);
    if (w.size() < 4 || !workgroup_ids_.contains(w[2])) return;
    const auto index = constants_.find(w[3]);
    index == constants_.end() ? use_all_ids() : use_id(index->second);
  }

  void whole_uses(Words operands) {
    if (std::ranges::any_of(operands, [&](uint32_t id) { return loaded_ids_.contains(id); }))
      use_all_ids();
  }

  // A buffer is a struct: of storage class StorageBuffer, or Uniform, where a decoration of the
  // struct tells the two apart. Arrays of them, images and samplers are something else.
  void add_buffers() {
    for (const Descriptor& d : descriptors_) {
      const Binding at{sets_[d.id], bindings_[d.id]};
      const uint32_t type = pointees_[d.pointer];
      const bool is_storage =
          d.storage_class == spv::StorageClassStorageBuffer || buffer_blocks_.contains(type);
      if (!structs_.contains(type) || (!is_storage && d.storage_class != spv::StorageClassUniform))
        out_.other_descriptor = fmt::format("{}:{}", at.first, at.second);
      else
        out_.buffers[at] = is_storage ? BufferKind::Storage : BufferKind::Uniform;
    }
  }

  void use_push(uint32_t block, uint32_t member) {
    const auto index = constants_.find(member);
    const std::vector<uint32_t>& members = structs_[block];
    if (index == constants_.end() || index->second >= members.size()) return;
    const uint32_t first = offsets_[{block, index->second}] / 4;
    const uint32_t end = first + std::max(dwords_[members[index->second]], 1u);
    for (uint32_t k = first; k < std::min(end, kPushDwords); ++k)
      out_.push_dwords |= uint64_t(1) << k;
  }
  void use_id(uint32_t component) {
    if (component < kComponents) out_.uses_workgroup_id[component] = true;
  }
  void use_all_ids() { out_.uses_workgroup_id = {true, true, true}; }

  struct Descriptor {
    uint32_t id, pointer, storage_class;
  };

  Words words_;
  std::string wanted_;
  uint32_t entry_id_ = 0;
  ShaderInterface out_;
  std::map<uint32_t, uint32_t> built_ins_, constants_, sets_, bindings_, pointees_;
  std::map<uint32_t, uint32_t> defaults_, spec_ids_;  // of specialization constants
  std::vector<uint32_t> local_ids_;
  std::map<uint32_t, uint32_t> dwords_, push_blocks_;  // of types; the structs of variables
  std::map<uint32_t, std::vector<uint32_t>> structs_;  // their members' types
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> offsets_;  // in bytes, by struct and member
  std::set<uint32_t> workgroup_ids_, loaded_ids_, buffer_blocks_;
  std::vector<Descriptor> descriptors_;
};

}  // namespace

ShaderInterface interface_of(std::span<const uint32_t> words, const std::string& entry) {
  return Reader(words, entry).result();
}

}  // namespace tuff::aco
