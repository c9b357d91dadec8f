#include "render/spirv_arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"

namespace tuff::render {
namespace {

// An argument's address as far as it is counted on: std430 aligns nothing wider.
constexpr uint32_t kBaseAlignment = 16;
constexpr uint32_t kAddressBytes = 8;
constexpr uint32_t kVersion14 = 0x10400, kVersion15 = 0x10500;
constexpr const char* kExtension = "SPV_KHR_physical_storage_buffer";

class Rewriter {
 public:
  Rewriter(const UserModule& m, std::span<const UserArgument> arguments)
      : m_(m), arguments_(arguments), bound_(m.bound) {
    for (const auto& [id, b] : m.buffers) alignment_[id] = {kBaseAlignment, b.block};
    name_ids();
  }

  WithAddresses run() {
    put_.words = {spv::MagicNumber, m_.version, 0, 0, 0};
    size_t at = 0;
    for (; at < m_.all.size() && m_.all[at].op != spv::OpFunction; at++) global(m_.all[at]);
    declare();
    while (at < m_.all.size()) at = function(at);
    put_.words[3] = bound_;
    put_.alignment = claimed_;
    return std::move(put_);
  }

 private:
  using Words = std::vector<uint32_t>;
  uint32_t fresh() { return bound_++; }
  void emit(uint32_t op, const Words& operands) {
    put_.words.push_back(uint32_t(operands.size() + 1) << 16 | op);
    put_.words.insert(put_.words.end(), operands.begin(), operands.end());
  }
  void copy(const UserInstruction& i) {
    put_.words.insert(put_.words.end(), i.words.begin(), i.words.end());
  }

  // ---- declarations ---------------------------------------------------------------------------
  void name_ids() {
    for (uint32_t* id : {&args_struct_, &args_pointer_, &push_struct_, &push_pointer_,
                         &push_member_, &push_})
      *id = fresh();
    for (const auto& [id, i] : m_.globals)
      if (i.op == spv::OpTypeInt && i.word(2) == 32 && (!word_type_ || i.word(3) == 0))
        word_type_ = id;
  }

  void global(const UserInstruction& i) {
    const bool is_capability = i.op == spv::OpCapability, is_extension = i.op == spv::OpExtension;
    if (!is_capability && step_ == 0) {
      step_ = 1;
      emit(spv::OpCapability, {spv::CapabilityPhysicalStorageBufferAddresses});
    }
    if (!is_capability && !is_extension && step_ == 1) {
      step_ = 2;
      if (m_.version < kVersion15) emit(spv::OpExtension, literal(kExtension));
    }
    const bool declares =
        (i.op >= spv::OpTypeVoid && i.op <= spv::OpVariable) || i.op == spv::OpUndef;
    if (declares && step_ == 2) {
      step_ = 3;
      decorate();
    }
    switch (i.op) {
      case spv::OpMemoryModel:
        return emit(i.op, {spv::AddressingModelPhysicalStorageBuffer64, i.word(2)});
      case spv::OpEntryPoint: return entry_point(i);
      case spv::OpName:
      case spv::OpDecorate:
        if (!m_.buffers.contains(i.word(1))) copy(i);
        return;
      case spv::OpTypePointer:
        if (i.word(2) != spv::StorageClassStorageBuffer) return copy(i);
        return emit(i.op, {i.word(1), spv::StorageClassPhysicalStorageBuffer, i.word(3)});
      case spv::OpVariable:
        if (!m_.buffers.contains(i.word(2))) copy(i);
        return;
      default: return copy(i);
    }
  }
  static Words literal(const std::string& text) {
    Words out(text.size() / 4 + 1, 0);
    std::memcpy(out.data(), text.data(), text.size());
    return out;
  }

  // From version 1.4 on the interface names all variables that are used.
  void entry_point(const UserInstruction& i) {
    Words operands{i.word(1), i.word(2)};
    size_t at = 3;
    for (bool ends = false; !ends && at < i.words.size(); at++) {
      const uint32_t w = i.word(at);
      ends = !(w & 0xff) || !(w & 0xff00) || !(w & 0xff0000) || !(w & 0xff000000);
      operands.push_back(w);
    }
    for (; at < i.words.size(); at++)
      if (!m_.buffers.contains(i.word(at))) operands.push_back(i.word(at));
    if (m_.version >= kVersion14) operands.push_back(push_);
    emit(i.op, operands);
  }

  void decorate() {
    for (uint32_t k = 0; k < arguments_.size(); k++) {
      emit(spv::OpMemberDecorate, {args_struct_, k, spv::DecorationOffset, k * kAddressBytes});
      emit(spv::OpMemberDecorate, {args_struct_, k, spv::DecorationNonWritable});
    }
    emit(spv::OpDecorate, {args_struct_, spv::DecorationBlock});
    emit(spv::OpMemberDecorate, {push_struct_, 0, spv::DecorationOffset, 0});
    emit(spv::OpDecorate, {push_struct_, spv::DecorationBlock});
  }

  // The argument block, the push constant, numbers of arguments, and lengths.
  void declare() {
    Words members(arguments_.size());
    for (const auto& [id, b] : m_.buffers) members[b.binding] = b.pointer_type;
    Words operands{args_struct_};
    operands.insert(operands.end(), members.begin(), members.end());
    emit(spv::OpTypeStruct, operands);
    emit(spv::OpTypePointer,
         {args_pointer_, spv::StorageClassPhysicalStorageBuffer, args_struct_});
    emit(spv::OpTypeStruct, {push_struct_, args_pointer_});
    emit(spv::OpTypePointer, {push_pointer_, spv::StorageClassPushConstant, push_struct_});
    emit(spv::OpTypePointer, {push_member_, spv::StorageClassPushConstant, args_pointer_});
    emit(spv::OpVariable, {push_pointer_, push_, spv::StorageClassPushConstant});
    for (uint32_t t : members) {
      if (pointer_to_.contains(t)) continue;
      pointer_to_[t] = fresh();
      emit(spv::OpTypePointer, {pointer_to_[t], spv::StorageClassPhysicalStorageBuffer, t});
    }
    if (!word_type_) {
      word_type_ = fresh();
      emit(spv::OpTypeInt, {word_type_, 32, 0});
    }
    for (uint32_t k = 0; k < std::max<size_t>(arguments_.size(), 1); k++) {
      numbers_.push_back(fresh());
      emit(spv::OpConstant, {word_type_, numbers_.back(), k});
    }
    for (const UserInstruction& i : m_.all) {
      if (i.op != spv::OpArrayLength) continue;
      lengths_[i.word(2)] = fresh();
      emit(spv::OpConstant, {i.word(1), lengths_[i.word(2)], length_of(i)});
    }
  }
  uint32_t length_of(const UserInstruction& i) const {
    const UserBuffer& b = m_.buffers.at(m_.buffer_of.at(i.word(3)));
    const uint32_t array = m_.globals.at(b.block).word(2 + i.word(4));
    const uint64_t bytes = arguments_[b.binding].size_bytes;
    const uint64_t begin = m_.offsets.at({b.block, i.word(4)});
    const uint32_t stride = m_.strides.at(array);
    if (stride == 0) throw std::out_of_range("an array without a stride");
    return bytes < begin ? 0 : uint32_t((bytes - begin) / stride);
  }

  // ---- functions ------------------------------------------------------------------------------
  // One function; returns where the next begins. It reads its pointers at its head.
  size_t function(size_t at) {
    size_t end = at;
    while (end < m_.all.size() && m_.all[end].op != spv::OpFunctionEnd) end++;
    end = std::min(end + 1, m_.all.size());
    local_.clear();
    for (size_t k = at; k < end; k++) {
      const PointerUse use = pointers_of(m_.all[k].op);
      for (uint32_t n : {use.read, use.written, use.base})
        if (n && m_.buffers.contains(m_.all[k].word(n))) local_[m_.all[k].word(n)] = 0;
    }
    bool in_head = true, labelled = false;
    for (; at < end; at++) {
      const uint32_t op = m_.all[at].op;
      const bool stays = op == spv::OpVariable || op == spv::OpLine || op == spv::OpNoLine;
      if (in_head && labelled && !stays) {
        in_head = false;
        read_pointers();
      }
      labelled = labelled || op == spv::OpLabel;
      body(m_.all[at]);
    }
    return end;
  }
  void read_pointers() {
    if (local_.empty()) return;
    const uint32_t member = fresh(), args = fresh();
    emit(spv::OpAccessChain, {push_member_, member, push_, numbers_[0]});
    emit(spv::OpLoad, {args_pointer_, args, member});
    for (auto& [variable, pointer] : local_) {
      const UserBuffer& b = m_.buffers.at(variable);
      const uint32_t place = fresh();
      pointer = fresh();
      emit(spv::OpAccessChain, {pointer_to_[b.pointer_type], place, args, numbers_[b.binding]});
      emit(spv::OpLoad, {b.pointer_type, pointer, place, spv::MemoryAccessAlignedMask,
                         kAddressBytes});
    }
  }

  void body(const UserInstruction& i) {
    if (i.op == spv::OpArrayLength)
      return emit(spv::OpCopyObject, {i.word(1), i.word(2), lengths_.at(i.word(2))});
    const PointerUse use = pointers_of(i.op);
    if (use.base) follow(i);
    Words operands(i.words.begin() + 1, i.words.end());
    for (uint32_t n : {use.read, use.written, use.base}) {
      const auto it = n ? local_.find(i.word(n)) : local_.end();
      if (it != local_.end()) operands[n - 1] = it->second;
    }
    const uint32_t through = use.read ? use.read : use.written;
    const bool is_plain = i.op == spv::OpLoad || i.op == spv::OpStore || i.op == spv::OpCopyMemory;
    if (is_plain && through) align(i, operands);
    emit(i.op, operands);
  }

  // ---- alignment ------------------------------------------------------------------------------
  struct Place {
    uint32_t alignment = kBaseAlignment;
    uint32_t type = 0;
    uint32_t matrix_stride = 0;  // of the matrix that it is
  };

  // Where a chain of indices leads, and what its address is a multiple of.
  void follow(const UserInstruction& i) {
    const auto from = alignment_.find(i.word(3));
    if (from == alignment_.end()) return;
    Place p = from->second;
    const bool is_chain = i.op == spv::OpAccessChain || i.op == spv::OpInBoundsAccessChain;
    if (!is_chain && i.op != spv::OpCopyObject) p.alignment = kAtLeast;
    for (size_t k = 4; is_chain && k < i.words.size(); k++) step(p, i.word(k));
    alignment_[i.word(2)] = p;
  }
  void step(Place& p, uint32_t index) const {
    const UserInstruction& type = m_.globals.at(p.type);
    const auto by = [&](uint32_t bytes) { p.alignment = std::gcd(p.alignment, bytes); };
    switch (type.op) {
      case spv::OpTypeStruct: {
        const uint32_t member = m_.constant(index);
        by(m_.offsets.at({p.type, member}));
        const auto stride = m_.matrix_strides.find({p.type, member});
        p.matrix_stride = stride == m_.matrix_strides.end() ? 0 : stride->second;
        p.type = type.word(2 + member);
        break;
      }
      case spv::OpTypeArray:
      case spv::OpTypeRuntimeArray:
        by(m_.strides.at(p.type));
        p.type = type.word(2);
        break;
      case spv::OpTypeMatrix:
        by(p.matrix_stride);
        p.type = type.word(2);
        break;
      default:  // a vector
        p.type = type.word(2);
        by(m_.globals.at(p.type).word(2) / 8);
        break;
    }
  }

  // Memory operands: a mask, then the alignment, then what the others take.
  void align(const UserInstruction& i, Words& operands) {
    const bool copies = i.op == spv::OpCopyMemory;
    const size_t mask_at = i.op == spv::OpLoad ? 3 : 2;
    uint32_t alignment = 0, extra = 0;
    for (uint32_t n : copies ? Words{1, 2} : Words{i.op == spv::OpLoad ? 3u : 1u}) {
      const auto it = alignment_.find(i.word(n));
      if (it == alignment_.end()) continue;
      alignment = alignment ? std::min(alignment, it->second.alignment) : it->second.alignment;
      if (m_.buffers.at(m_.buffer_of.at(i.word(n))).is_volatile)
        extra = spv::MemoryAccessVolatileMask;
    }
    if (!alignment) return;
    claimed_ = std::max(claimed_, alignment);
    if (operands.size() <= mask_at) operands.push_back(0);
    const bool said = operands[mask_at] & spv::MemoryAccessAlignedMask;
    operands[mask_at] |= spv::MemoryAccessAlignedMask | extra;
    if (!said) operands.insert(operands.begin() + std::ptrdiff_t(mask_at) + 1, alignment);
  }

  static constexpr uint32_t kAtLeast = 4;
  const UserModule& m_;
  const std::span<const UserArgument> arguments_;
  WithAddresses put_;
  uint32_t bound_, claimed_ = kAtLeast;
  int step_ = 0;  // of what comes in a module's order: capabilities, extensions, annotations
  uint32_t args_struct_ = 0, args_pointer_ = 0, push_struct_ = 0, push_pointer_ = 0,
           push_member_ = 0, push_ = 0, word_type_ = 0;
  std::map<uint32_t, uint32_t> pointer_to_;  // by pointer type
  std::vector<uint32_t> numbers_;            // constants
  std::map<uint32_t, uint32_t> lengths_;     // by the result of an OpArrayLength
  std::map<uint32_t, uint32_t> local_;       // by variable: its pointer in this function
  std::map<uint32_t, Place> alignment_;      // by pointer
};

}  // namespace

WithAddresses with_addresses(const UserModule& module, std::span<const UserArgument> arguments) {
  return Rewriter(module, arguments).run();
}

}  // namespace tuff::render
