#include "render/spirv_user.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"

namespace tuff::render {
namespace {

constexpr size_t kHeaderWords = 5;

struct Capability {
  uint32_t number;
  const char* name;
  bool TargetFeatures::* feature;  // null: every device has it
};
// Of the specification; what is not here is nothing that tuff asks a device for.
constexpr Capability kCapabilities[] = {
    {spv::CapabilityMatrix, "Matrix", nullptr},
    {spv::CapabilityShader, "Shader", nullptr},
    {spv::CapabilityGroupNonUniform, "GroupNonUniform", nullptr},
    {spv::CapabilityFloat16, "Float16", &TargetFeatures::f16},
    {spv::CapabilityFloat64, "Float64", &TargetFeatures::f64},
    {spv::CapabilityInt64, "Int64", &TargetFeatures::i64},
    {spv::CapabilityInt16, "Int16", &TargetFeatures::i16},
    {spv::CapabilityInt8, "Int8", &TargetFeatures::i8},
    {spv::CapabilityStorageBuffer16BitAccess, "StorageBuffer16BitAccess",
     &TargetFeatures::storage16},
    {spv::CapabilityStorageBuffer8BitAccess, "StorageBuffer8BitAccess", &TargetFeatures::storage8},
    {spv::CapabilityGroupNonUniformArithmetic, "GroupNonUniformArithmetic",
     &TargetFeatures::subgroup_arithmetic},
    {spv::CapabilityGroupNonUniformShuffle, "GroupNonUniformShuffle",
     &TargetFeatures::subgroup_shuffle},
    {spv::CapabilityAtomicFloat32AddEXT, "AtomicFloat32AddEXT", &TargetFeatures::atomic_f32_add},
};

bool has_pointer_first(uint32_t op) {
  return op == spv::OpAtomicStore || op == spv::OpAtomicFlagClear;
}
bool is_atomic(uint32_t op) {
  return (op >= spv::OpAtomicLoad && op <= spv::OpAtomicXor) ||
         op == spv::OpAtomicFlagTestAndSet || op == spv::OpAtomicFlagClear ||
         op == spv::OpAtomicFAddEXT || op == spv::OpAtomicFMinEXT || op == spv::OpAtomicFMaxEXT;
}
bool is_type(uint32_t op) {
  return op >= spv::OpTypeVoid && op <= spv::OpTypePipe;
}
bool is_constant(uint32_t op) {
  return op >= spv::OpConstantTrue && op <= spv::OpSpecConstantOp;
}

std::string literal_text(std::span<const uint32_t> words) {
  const auto* bytes = reinterpret_cast<const char*>(words.data());
  return {bytes, strnlen(bytes, words.size_bytes())};
}

class Reader {
 public:
  Reader(const std::string& kernel, std::span<const uint32_t> words,
         std::span<const UserArgument> arguments, const Target& target)
      : kernel_(kernel), words_(words), arguments_(arguments), target_(target) {}

  UserModule run(const std::string& entry) {
    split();
    for (const UserInstruction& i : out_.all) note(i);
    find_entry(entry);
    find_buffers();
    find_local();
    check_local();
    follow_pointers();
    check_writes();
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail<CompileError>("kernel {}: {}", kernel_, fmt::format(text, std::forward<Args>(args)...));
  }

  void split() {
    if (words_.size() < kHeaderWords || words_[0] != spv::MagicNumber)
      refuse("its SPIR-V is no module ({} words)", words_.size());
    out_.version = words_[1];
    out_.bound = words_[3];
    for (size_t at = kHeaderWords; at < words_.size();) {
      const uint32_t count = words_[at] >> 16;
      if (count == 0 || count > words_.size() - at)
        refuse("its SPIR-V is damaged at word {}", at);
      out_.all.push_back({words_[at] & 0xffff, words_.subspan(at, count)});
      at += count;
    }
    if (out_.all.empty() || out_.all.back().op != spv::OpFunctionEnd)
      refuse("its SPIR-V ends within a function, or has none");
  }

  void note(const UserInstruction& i) {
    switch (i.op) {
      case spv::OpCapability: return check_capability(i.word(1));
      case spv::OpMemoryModel:
        if (i.word(1) != spv::AddressingModelLogical)
          refuse("it takes addresses: its arguments are storage buffers of set 0");
        return;
      case spv::OpEntryPoint: entries_.push_back(i); return;
      case spv::OpExecutionMode:
      case spv::OpExecutionModeId: modes_.push_back(i); return;
      case spv::OpDecorate: decorations_[i.word(1)][i.word(2)] = i.word(3); break;
      case spv::OpMemberDecorate: return note_member(i);
      default: break;
    }
    if (i.op == spv::OpDecorate && i.word(2) == spv::DecorationArrayStride)
      out_.strides[i.word(1)] = i.word(3);
    if (is_type(i.op)) out_.globals[i.word(1)] = i;
    if (is_constant(i.op) || (i.op == spv::OpVariable && i.word(3) != spv::StorageClassFunction))
      out_.globals[i.word(2)] = i;
  }
  void note_member(const UserInstruction& i) {
    const auto member = std::pair(i.word(1), i.word(2));
    const uint32_t what = i.word(3);
    if (what == spv::DecorationOffset) out_.offsets[member] = i.word(4);
    // Rows beside each other: a column is not, and is read component by component.
    uint32_t& stride = out_.matrix_strides[member];
    if (what == spv::DecorationMatrixStride) stride = std::gcd(stride, i.word(4));
    if (what == spv::DecorationRowMajor) stride = std::gcd(stride, uint32_t{sizeof(float)});
    if (what == spv::DecorationCoherent || what == spv::DecorationVolatile)
      changing_.insert(member.first);
  }
  void check_capability(uint32_t number) const {
    for (const Capability& c : kCapabilities) {
      if (c.number != number) continue;
      if (!c.feature || target_.features.*c.feature) return;
      fail<Unsupported>("kernel {}: it needs {} (SPIR-V's capability {}), which {} lacks", kernel_,
                        c.name, number, target_.describe());
    }
    fail<Unsupported>("kernel {}: it needs SPIR-V's capability {}, which tuff asks no device for",
                      kernel_, number);
  }

  void find_entry(const std::string& wanted) {
    std::string there;
    for (const UserInstruction& i : entries_) {
      const std::string name = literal_text(i.words.subspan(std::min<size_t>(3, i.words.size())));
      if (i.word(1) == spv::ExecutionModelGLCompute && name == wanted) entry_id_ = i.word(2);
      there += (there.empty() ? "" : ", ") + name;
    }
    if (!entry_id_)
      refuse("its SPIR-V has no compute shader \"{}\"; its entry points are: {}", wanted,
             there.empty() ? "none" : there);
    out_.entry = wanted;
  }

  bool has(uint32_t id, uint32_t decoration) const {
    const auto it = decorations_.find(id);
    return it != decorations_.end() && it->second.contains(decoration);
  }
  uint32_t decoration(uint32_t id, uint32_t which) const { return decorations_.at(id).at(which); }

  void find_buffers() {
    for (const auto& [id, i] : out_.globals) {
      if (i.op != spv::OpVariable) continue;
      switch (i.word(3)) {
        case spv::StorageClassInput:
        case spv::StorageClassPrivate:
        case spv::StorageClassWorkgroup: break;
        case spv::StorageClassStorageBuffer: add_buffer(id, i); break;
        case spv::StorageClassPushConstant:
          refuse("it has push constants: numbers are `constants` of the kernel, or inputs");
        case spv::StorageClassUniform:
          refuse("it has a uniform block, or a storage buffer as before SPIR-V 1.3: arguments are "
                 "storage buffers, compiled for Vulkan 1.1 or later");
        default:
          refuse("it has a resource of storage class {}: arguments are storage buffers of set 0",
                 i.word(3));
      }
    }
    std::vector<uint32_t> bound(arguments_.size());
    for (const auto& [id, b] : out_.buffers) bound[b.binding]++;
    for (size_t k = 0; k < bound.size(); k++)
      if (bound[k] != 1)
        refuse("{} buffers have binding {}, and one has to: {} is bound there", bound[k], k,
               arguments_[k].name);
  }
  void add_buffer(uint32_t id, const UserInstruction& i) {
    if (!has(id, spv::DecorationBinding) || !has(id, spv::DecorationDescriptorSet))
      refuse("a storage buffer has no set and binding");
    const uint32_t set = decoration(id, spv::DecorationDescriptorSet);
    const uint32_t binding = decoration(id, spv::DecorationBinding);
    if (set != 0 || binding >= arguments_.size())
      refuse("a storage buffer is at set {}, binding {}: its {} arguments are bindings 0 to {} of "
             "set 0, outputs first",
             set, binding, arguments_.size(), arguments_.size() - 1);
    const uint32_t pointer = i.word(1), block = out_.globals.at(pointer).word(3);
    if (out_.globals.at(block).op != spv::OpTypeStruct)
      refuse("the buffer at binding {} is an array of buffers", binding);
    const bool changes = changing_.contains(block) || has(id, spv::DecorationCoherent) ||
                         has(id, spv::DecorationVolatile);
    out_.buffers[id] = {pointer, block, binding, changes};
    out_.buffer_of[id] = id;
  }

  void check_local() const {
    uint64_t all = 1;
    bool fits = true;
    for (size_t d = 0; d < 3; d++) {
      fits = fits && out_.local[d] > 0 && out_.local[d] <= target_.max_local[d];
      all *= fits ? out_.local[d] : 1;
    }
    if (!fits || all > target_.max_invocations)
      refuse("its workgroup has {}x{}x{} invocations; {} takes 1x1x1 to {}x{}x{}, {} in all",
             out_.local[0], out_.local[1], out_.local[2], target_.describe(), target_.max_local[0],
             target_.max_local[1], target_.max_local[2], target_.max_invocations);
  }

  void find_local() {
    for (const UserInstruction& i : modes_) {
      if (i.word(1) != entry_id_) continue;
      const bool by_id = i.word(2) == spv::ExecutionModeLocalSizeId;
      if (!by_id && i.word(2) != spv::ExecutionModeLocalSize) continue;
      for (size_t d = 0; d < 3; d++)
        out_.local[d] = by_id ? out_.constant(i.word(3 + d)) : i.word(3 + d);
    }
    for (const auto& [id, which] : decorations_) {
      const auto it = which.find(spv::DecorationBuiltIn);
      if (it == which.end() || it->second != spv::BuiltInWorkgroupSize) continue;
      const auto size = out_.globals.find(id);
      if (size == out_.globals.end()) continue;
      for (size_t d = 0; d < 3; d++) out_.local[d] = out_.constant(size->second.word(3 + d));
    }
  }

  // Pointers are made of pointers in order: without variable pointers, which are refused, one is
  // of one buffer.
  void follow_pointers() {
    for (const UserInstruction& i : out_.all) {
      if (i.op == spv::OpFunctionParameter) check_parameter(i.word(1));
      const PointerUse use = pointers_of(i.op);
      if (use.base) {
        const auto it = out_.buffer_of.find(i.word(use.base));
        if (it != out_.buffer_of.end()) out_.buffer_of[i.word(2)] = it->second;
      }
      if (!use.written) continue;
      const auto it = out_.buffer_of.find(i.word(use.written));
      if (it != out_.buffer_of.end()) written_.insert(out_.buffers.at(it->second).binding);
    }
  }
  void check_parameter(uint32_t type) const {
    const auto it = out_.globals.find(type);
    if (it != out_.globals.end() && it->second.op == spv::OpTypePointer &&
        it->second.word(2) == spv::StorageClassStorageBuffer)
      refuse("a function takes a pointer into a buffer: let it read the buffer itself");
  }

  void check_writes() const {
    for (size_t k = 0; k < arguments_.size(); k++) {
      const UserArgument& a = arguments_[k];
      if (!a.written && written_.contains(uint32_t(k)))
        refuse("it writes to binding {}, which is declared as {}: what runs before and after it "
               "would not wait for that. Declare it as an output, or write elsewhere",
               k, a.name);
      if (a.written && !written_.contains(uint32_t(k)))
        refuse("it writes nothing to binding {}, which is declared as {}: bindings are the outputs "
               "first, then the inputs",
               k, a.name);
    }
  }

  const std::string& kernel_;
  const std::span<const uint32_t> words_;
  const std::span<const UserArgument> arguments_;
  const Target& target_;
  UserModule out_;
  uint32_t entry_id_ = 0;
  UserInstructions entries_, modes_;
  std::map<uint32_t, std::map<uint32_t, uint32_t>> decorations_;  // by id: their first words
  std::set<uint32_t> changing_;  // structs with members that are coherent or volatile
  std::set<uint32_t> written_;   // bindings
};

}  // namespace

uint32_t UserModule::constant(uint32_t id) const {
  const auto it = globals.find(id);
  const bool is_word = it != globals.end() && it->second.words.size() == 4 &&
                       (it->second.op == spv::OpConstant || it->second.op == spv::OpSpecConstant);
  return is_word ? it->second.words[3] : 0;
}

PointerUse pointers_of(uint32_t op) {
  switch (op) {
    case spv::OpAccessChain:
    case spv::OpInBoundsAccessChain:
    case spv::OpPtrAccessChain:
    case spv::OpInBoundsPtrAccessChain:
    case spv::OpCopyObject: return {.base = 3};
    case spv::OpLoad:
    case spv::OpArrayLength: return {.read = 3};
    case spv::OpStore: return {.written = 1};
    case spv::OpCopyMemory: return {.read = 2, .written = 1};
    case spv::OpAtomicLoad: return {.read = 3};
    default: break;
  }
  if (!is_atomic(op)) return {};
  return {.written = has_pointer_first(op) ? 1u : 3u};
}

UserModule read_user_module(const std::string& kernel, std::span<const uint32_t> words,
                            const std::string& entry, std::span<const UserArgument> arguments,
                            const Target& target) {
  return Reader(kernel, words, arguments, target).run(entry);
}

}  // namespace tuff::render
