#include "render/spirv_nv_matrices.h"

#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>

#include <spirv/unified1/spirv.hpp>

#include "render/spirv_cooperative_matrix.h"

namespace tuff::render {
namespace {

using Words = std::vector<uint32_t>;
constexpr size_t kHeaderWords = 5;

class Translation {
 public:
  explicit Translation(const Words& words) : bound_(words[3]) {
    out_.assign(words.begin(), words.begin() + kHeaderWords);
    for (size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16)
      instruction(words[at] & 0xffff, std::span(words).subspan(at + 1, (words[at] >> 16) - 1));
    out_[3] = bound_;
  }
  Words words() { return std::move(out_); }

 private:
  void put(uint32_t op, Words operands) {
    out_.push_back(uint32_t(operands.size() + 1) << 16 | op);
    out_.insert(out_.end(), operands.begin(), operands.end());
  }
  void extension(std::span<const uint32_t> x) {
    const std::string name(reinterpret_cast<const char*>(x.data()));
    if (name == cooperative::kBfloat16Extension) return;
    if (name != cooperative::kExtension) return put(spv::OpExtension, Words(x.begin(), x.end()));
    const std::string older = "SPV_NV_cooperative_matrix";
    Words text(older.size() / 4 + 1, 0);
    std::memcpy(text.data(), older.data(), older.size());
    put(spv::OpExtension, text);
  }
  // Matrices of equal extents and different use would be one type: each gets a scope of its own.
  void type(std::span<const uint32_t> x) {
    const uint32_t scope = bound_++;
    put(spv::OpConstant, {constants_.at(x[2]).type, scope, spv::ScopeSubgroup});
    put(spv::OpTypeCooperativeMatrixNV, {x[0], x[1], scope, x[3], x[4]});
    types_.insert(x[0]);
  }
  void layouts() {
    if (!bool_) {
      bool_ = bound_++;
      put(spv::OpTypeBool, {bool_});
    }
    rows_ = bound_++, columns_ = bound_++;
    put(spv::OpConstantFalse, {bool_, rows_});
    put(spv::OpConstantTrue, {bool_, columns_});
  }
  uint32_t layout(uint32_t id) const {
    return constants_.at(id).value == cooperative::kColumnMajor ? columns_ : rows_;
  }
  static Words joined(Words head, std::span<const uint32_t> rest) {
    head.insert(head.end(), rest.begin(), rest.end());
    return head;
  }

  void instruction(uint32_t op, std::span<const uint32_t> x) {
    switch (op) {
      case spv::OpCapability:
        if (x[0] == cooperative::kCapability) return put(op, {spv::CapabilityCooperativeMatrixNV});
        if (x[0] == cooperative::kBfloat16Type) return put(op, {spv::CapabilityFloat16});
        if (x[0] == cooperative::kBfloat16Matrix) return;
        break;
      case spv::OpExtension: return extension(x);
      case spv::OpTypeBool: bool_ = x[0]; break;
      case spv::OpTypeFloat: return put(op, {x[0], x[1]});
      case spv::OpConstant: constants_[x[1]] = {x[0], x[2]}; break;
      case spv::OpFunction: layouts(); break;
      case cooperative::kOpType: return type(x);
      case cooperative::kOpLoad:
        return put(spv::OpCooperativeMatrixLoadNV,
                   joined({x[0], x[1], x[2], x[4], layout(x[3])}, x.subspan(5)));
      case cooperative::kOpStore:
        return put(spv::OpCooperativeMatrixStoreNV,
                   joined({x[0], x[1], x[3], layout(x[2])}, x.subspan(4)));
      case cooperative::kOpMulAdd:
        return put(spv::OpCooperativeMatrixMulAddNV, {x[0], x[1], x[2], x[3], x[4]});
      // Which the older extension lacks by element: a sum asks for the same types.
      case spv::OpFMul:
        if (types_.contains(x[0])) op = spv::OpFAdd;
        break;
      default: break;
    }
    put(op, Words(x.begin(), x.end()));
  }

  struct Constant {
    uint32_t type, value;
  };
  Words out_;
  uint32_t bound_, bool_ = 0, rows_ = 0, columns_ = 0;
  std::map<uint32_t, Constant> constants_;
  std::set<uint32_t> types_;  // of matrices
};

}  // namespace

std::vector<uint32_t> with_nv_matrices(const std::vector<uint32_t>& words) {
  for (size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffff) == cooperative::kOpType) return Translation(words).words();
  }
  return words;
}

}  // namespace tuff::render
