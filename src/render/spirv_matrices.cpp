#include "render/spirv_matrices.h"

#include <algorithm>

#include <spirv/unified1/spirv.hpp>

#include "ir/walk.h"
#include "render/spirv_cooperative_matrix.h"
#include "render/spirv_pointers.h"

namespace tuff::render {

using ir::MatrixArg;
using ir::MatrixUse;
using ir::Node;
using ir::Op;

bool uses_matrices(const kernel::LinearKernel& k) {
  return std::any_of(k.ops.begin(), k.ops.end(),
                     [](const ir::UOp& u) { return u->op == Op::MatrixMulAdd; });
}

void declare_matrices(SpirvModule& m) {
  m.capability(spv::CapabilityVulkanMemoryModel);
  if (m.version_minor() < 5) m.extension("SPV_KHR_vulkan_memory_model");
  m.capability(cooperative::kCapability);
  m.extension(cooperative::kExtension);
}

namespace {

Id matrix_type(SpirvBody& b, DType t, const MatrixArg& matrix) {
  Id component = 0;
  if (t == DType::BF16) {
    b.m.extension(cooperative::kBfloat16Extension);
    b.m.capability(cooperative::kBfloat16Type);
    b.m.capability(cooperative::kBfloat16Matrix);
    component = b.m.type(spv::OpTypeFloat, {16, cooperative::kBfloat16Encoding});
  } else {
    component = b.t.type(t);
  }
  const uint32_t use = matrix.use == MatrixUse::A   ? cooperative::kUseA
                       : matrix.use == MatrixUse::B ? cooperative::kUseB
                                                    : cooperative::kUseAccumulator;
  return b.m.type(
      cooperative::kOpType,
      {component, b.t.word(spv::ScopeSubgroup), b.t.word(static_cast<uint32_t>(matrix.rows)),
       b.t.word(static_cast<uint32_t>(matrix.columns)), b.t.word(use)});
}

// Where a matrix lies: pointer, layout, stride, and what is known of the access.
std::vector<Id> matrix_place(SpirvBody& b, size_t i, int instance) {
  constexpr int64_t kMostAlignment = 16;
  const Node& u = *b.kernel.ops[i];
  const MatrixArg& matrix = u.get<MatrixArg>();
  const Node& index = *without_after(u.src(0).get());
  const SpirvValue offset = b.value(index.src(1).get(), b.kernel.lanes[i], instance);
  std::vector<Id> out{
      element_pointer(b, index, offset),
      b.t.word(matrix.by_columns ? cooperative::kColumnMajor : cooperative::kRowMajor),
      b.t.word(static_cast<uint32_t>(matrix.stride))};
  if (without_after(index.src(0).get())->op == Op::Shared) {
    out.push_back(spv::MemoryAccessNonPrivatePointerMask);
  } else if (b.target.features.device_address) {
    const int64_t line = matrix.by_columns ? matrix.rows : matrix.columns;
    const int64_t bytes = line * static_cast<int64_t>(size_bytes(index.dtype));
    out.push_back(spv::MemoryAccessAlignedMask);
    out.push_back(static_cast<uint32_t>(std::min(kMostAlignment, bytes & -bytes)));
  }
  return out;
}

// Which of a product's matrices are of signed integers.
uint32_t matrix_signs(const Node& product) {
  const auto sign = [](DType t, uint32_t bit) { return is_int(t) && is_signed(t) ? bit : 0; };
  return sign(product.src(0)->dtype, cooperative::kSignedA) |
         sign(product.src(1)->dtype, cooperative::kSignedB) |
         sign(product.dtype, cooperative::kSignedC | cooperative::kSignedResult);
}

}  // namespace

Id register_type(SpirvBody& b, const Node& u) {
  const MatrixArg* matrix = ir::matrix_of(&u);
  return matrix ? matrix_type(b, u.dtype, *matrix) : b.t.reg(u.dtype);
}

void emit_matrix_store(SpirvBody& b, size_t i) {
  for (int n = 0; n < b.space.count(b.kernel.lanes[i]); ++n) {
    std::vector<Id> operands = matrix_place(b, i, n);
    operands.insert(operands.begin() + 1,
                    b.value(b.kernel.ops[i]->src(1).get(), b.kernel.lanes[i], n).base);
    b.m.emit(cooperative::kOpStore, operands);
  }
}

void emit_matrix(SpirvBody& b, size_t i) {
  const Node& u = *b.kernel.ops[i];
  const Id type = matrix_type(b, u.dtype, *ir::matrix_of(&u));
  for (int n = 0; n < b.space.count(b.kernel.lanes[i]); ++n) {
    const auto write = [&](uint32_t op, const std::vector<Id>& operands) {
      b.values[i].push_back({b.m.value(op, type, operands)});
    };
    if (u.op == Op::MatrixLoad) {
      write(cooperative::kOpLoad, matrix_place(b, i, n));
    } else if (u.op == Op::MatrixFill) {
      write(spv::OpCompositeConstruct,
            {b.id(b.chosen(u.src(0).get(), b.kernel.lanes[i], n), u.dtype)});
    } else if (u.op == Op::Cast) {
      write(spv::OpFConvert, {b.value(u.src(0).get(), b.kernel.lanes[i], n).base});
    } else if (u.op == Op::Mul) {
      write(spv::OpFMul, {b.value(u.src(0).get(), b.kernel.lanes[i], n).base,
                          b.value(u.src(1).get(), b.kernel.lanes[i], n).base});
    } else {
      std::vector<Id> x;
      for (const ir::UOp& s : u.src()) x.push_back(b.value(s.get(), b.kernel.lanes[i], n).base);
      if (const uint32_t signs = matrix_signs(u)) x.push_back(signs);
      write(cooperative::kOpMulAdd, x);
    }
  }
}

}  // namespace tuff::render
