#include "render/spirv_reader.h"

// For HasResultAndType.
#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "render/spirv_cooperative_matrix.h"

namespace tuff::render::testing {
namespace {

constexpr uint32_t kMagic = 0x07230203, kHeaderWords = 5;

std::vector<Instruction> instructions(std::span<const uint32_t> words) {
  std::vector<Instruction> out;
  for (size_t at = kHeaderWords; at < words.size();) {
    const uint32_t length = words[at] >> 16;
    TUFF_CHECK(length > 0 && at + length <= words.size(), "instruction at word {}: {} words", at,
               length);
    Instruction i{words[at] & 0xffff, 0, 0, words.subspan(at + 1, length - 1)};
    bool result = false, type = false;
    spv::HasResultAndType(spv::Op(i.op), &result, &type);
    if (i.op == cooperative::kOpType) result = true;
    if (i.op == cooperative::kOpLoad || i.op == cooperative::kOpMulAdd) result = type = true;
    if (type) i.type = i.operands[0];
    if (result) i.result = i.operands[type ? 1 : 0];
    i.operands = i.operands.subspan(size_t(type) + size_t(result));
    out.push_back(i);
    at += length;
  }
  return out;
}

}  // namespace

SpirvReader::SpirvReader(std::span<const uint32_t> words) {
  TUFF_CHECK(words.size() > kHeaderWords && words[0] == kMagic, "no SPIR-V module");
  id_bound_ = words[3];
  types_.resize(id_bound_);
  result_types_.resize(id_bound_);
  bool in_function = false;
  for (const Instruction& i : instructions(words)) {
    if (i.result && i.type) result_types_[i.result] = i.type;
    if (i.op == spv::OpFunction) {
      TUFF_CHECK(!in_function, "a module of more than one function");
      finish_types();
      in_function = true;
    } else if (i.op == spv::OpVariable) {
      declare(i);
    } else if (in_function && i.op != spv::OpLine && i.op != spv::OpNoLine) {
      if (i.op == spv::OpLabel) labels_[i.result] = body_.size();
      body_.push_back(i);
    } else if (!in_function) {
      declare(i);
    }
  }
}

const Type& SpirvReader::type(Id id) const {
  TUFF_CHECK(id < types_.size() && types_[id].op != 0, "%{} is no type", id);
  return types_[id];
}

bool SpirvReader::is_matrix(Id id) const { return type(id).op == cooperative::kOpType; }

uint64_t SpirvReader::size_bytes(Id id) const {
  const Type& t = type(id);
  switch (t.op) {
    case spv::OpTypeBool: return 4;
    case spv::OpTypeInt:
    case spv::OpTypeFloat: return t.bits / 8;
    case spv::OpTypePointer: return 8;
    case spv::OpTypeVector: return t.count * size_bytes(t.element);
    case spv::OpTypeArray: return t.count * (t.stride ? t.stride : size_bytes(t.element));
    case spv::OpTypeStruct: {
      const Type& last = type(t.members.back());
      return t.offsets.back() +
             (last.op == spv::OpTypeRuntimeArray ? 0 : size_bytes(t.members.back()));
    }
    default: fail<InternalError>("%{} has no size", id);
  }
}

void SpirvReader::declare(const Instruction& i) {
  switch (i.op) {
    case spv::OpDecorate:
    case spv::OpMemberDecorate: return decorate(i);
    case spv::OpExecutionMode:
      if (i.operands[1] == spv::ExecutionModeLocalSize)
        local_size_ = {i.operands[2], i.operands[3], i.operands[4]};
      return;
    case spv::OpConstantNull: constants_.push_back({i.result, {}}); return;
    case spv::OpConstantTrue: constants_.push_back({i.result, {1}}); return;
    case spv::OpConstantFalse: constants_.push_back({i.result, {0}}); return;
    case spv::OpConstant: {
      const uint32_t bits = type(i.type).bits;
      uint64_t v = i.operands[0];
      if (bits == 64) v |= uint64_t(i.operands[1]) << 32;
      constants_.push_back({i.result, {bits < 32 ? v & ((1u << bits) - 1) : v}});
      return;
    }
    case spv::OpVariable: {
      const auto& d = decorations_[i.result];
      const auto of = [&](uint32_t what) { return d.contains(what) ? int(d.at(what)) : -1; };
      variables_.push_back({i.result, type(i.type).element, i.operands[0],
                            of(spv::DecorationBuiltIn), of(spv::DecorationBinding)});
      return;
    }
    default: declare_type(i);
  }
}

uint64_t SpirvReader::number(Id constant) const {
  for (const auto& [id, v] : constants_)
    if (id == constant) return v[0];
  fail<InternalError>("%{} is no constant", constant);
}

void SpirvReader::decorate(const Instruction& i) {
  if (i.op == spv::OpMemberDecorate) {
    if (i.operands[2] == spv::DecorationOffset)
      member_offsets_[i.operands[0]][i.operands[1]] = i.operands[3];
    return;
  }
  decorations_[i.operands[0]][i.operands[1]] = i.operands.size() > 2 ? i.operands[2] : 0;
}

void SpirvReader::declare_type(const Instruction& i) {
  Type t{.op = i.op};
  const auto x = i.operands;
  switch (i.op) {
    case spv::OpTypeVoid:
    case spv::OpTypeBool:
    case spv::OpTypeFunction:
    case spv::OpTypeInt: t.is_signed = x[1] != 0; [[fallthrough]];
    case spv::OpTypeFloat:
      t.bits = x[0];
      t.is_bfloat =
          i.op == spv::OpTypeFloat && x.size() > 1 && x[1] == cooperative::kBfloat16Encoding;
      break;
    case spv::OpTypeVector: t.count = x[1]; [[fallthrough]];
    case spv::OpTypeRuntimeArray: t.element = x[0]; break;
    case spv::OpTypeArray:
      t.element = x[0];
      t.count = uint32_t(number(x[1]));
      break;
    case spv::OpTypeStruct: t.members.assign(x.begin(), x.end()); break;
    case cooperative::kOpType:
      t.element = x[0];
      TUFF_CHECK(number(x[1]) == spv::ScopeSubgroup, "a matrix of another scope");
      t.matrix = {uint32_t(number(x[2])), uint32_t(number(x[3])), uint32_t(number(x[4]))};
      break;
    case spv::OpTypePointer:
      t.storage = x[0];
      t.element = x[1];
      break;
    default: return;  // what says nothing of values
  }
  types_[i.result] = t;
}

void SpirvReader::finish_types() {
  for (Id id = 0; id < id_bound_; ++id) {
    Type& t = types_[id];
    const auto& d = decorations_[id];
    if (d.contains(spv::DecorationArrayStride)) t.stride = d.at(spv::DecorationArrayStride);
    for (uint32_t m = 0; m < t.members.size(); ++m) {
      const auto& offsets = member_offsets_[id];
      TUFF_CHECK(offsets.contains(m), "member {} of %{} has no offset", m, id);
      t.offsets.push_back(offsets.at(m));
    }
  }
}

}  // namespace tuff::render::testing
