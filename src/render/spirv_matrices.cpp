// Cooperative matrices of the SPIR-V renderer (SPV_KHR_cooperative_matrix). The extension asks for
// the Vulkan memory model: there what invocations hand each other in workgroup memory is said to be
// non-private, and a barrier makes it available and visible.
#include <algorithm>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "ir/walk.h"
#include "render/spirv_cooperative_matrix.h"
#include "render/spirv_kernel.h"

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

Id SpirvKernel::matrix_type(DType t, const MatrixArg& matrix) {
  Id component = 0;
  if (t == DType::BF16) {
    m_.extension(cooperative::kBfloat16Extension);
    m_.capability(cooperative::kBfloat16Type);
    m_.capability(cooperative::kBfloat16Matrix);
    component = m_.type(spv::OpTypeFloat, {16, cooperative::kBfloat16Encoding});
  } else {
    component = t_.type(t);
  }
  const uint32_t use = matrix.use == MatrixUse::A   ? cooperative::kUseA
                       : matrix.use == MatrixUse::B ? cooperative::kUseB
                                                    : cooperative::kUseAccumulator;
  return m_.type(
      cooperative::kOpType,
      {component, t_.word(spv::ScopeSubgroup), t_.word(static_cast<uint32_t>(matrix.rows)),
       t_.word(static_cast<uint32_t>(matrix.columns)), t_.word(use)});
}

Id SpirvKernel::register_type(const Node& u) {
  const MatrixArg* matrix = ir::matrix_of(&u);
  return matrix ? matrix_type(u.dtype, *matrix) : t_.reg(u.dtype);
}

// Where a matrix lies: pointer, layout, stride, and what is known of the access.
std::vector<Id> SpirvKernel::matrix_place(size_t i, int instance) {
  constexpr int64_t kMostAlignment = 16;
  const Node& u = *k_.ops[i];
  const MatrixArg& matrix = u.get<MatrixArg>();
  const Node& index = *without_after(u.src(0).get());
  const SpirvValue offset = value(index.src(1).get(), k_.lanes[i], instance);
  std::vector<Id> out{
      element_pointer(index, offset),
      t_.word(matrix.by_columns ? cooperative::kColumnMajor : cooperative::kRowMajor),
      t_.word(static_cast<uint32_t>(matrix.stride))};
  if (without_after(index.src(0).get())->op == Op::Shared) {
    out.push_back(spv::MemoryAccessNonPrivatePointerMask);
  } else if (target_.features.device_address) {
    const int64_t line = matrix.by_columns ? matrix.rows : matrix.columns;
    const int64_t bytes = line * static_cast<int64_t>(size_bytes(index.dtype));
    out.push_back(spv::MemoryAccessAlignedMask);
    out.push_back(static_cast<uint32_t>(std::min(kMostAlignment, bytes & -bytes)));
  }
  return out;
}

void SpirvKernel::emit_matrix_store(size_t i) {
  for (int n = 0; n < space_.count(k_.lanes[i]); ++n) {
    std::vector<Id> operands = matrix_place(i, n);
    operands.insert(operands.begin() + 1, value(k_.ops[i]->src(1).get(), k_.lanes[i], n).base);
    m_.emit(cooperative::kOpStore, operands);
  }
}

// Which of a product's matrices are of signed integers.
static uint32_t matrix_signs(const Node& product) {
  const auto sign = [](DType t, uint32_t bit) { return is_int(t) && is_signed(t) ? bit : 0; };
  return sign(product.src(0)->dtype, cooperative::kSignedA) |
         sign(product.src(1)->dtype, cooperative::kSignedB) |
         sign(product.dtype, cooperative::kSignedC | cooperative::kSignedResult);
}

void SpirvKernel::emit_matrix(size_t i) {
  const Node& u = *k_.ops[i];
  const Id type = matrix_type(u.dtype, *ir::matrix_of(&u));
  for (int n = 0; n < space_.count(k_.lanes[i]); ++n) {
    const auto write = [&](uint32_t op, const std::vector<Id>& operands) {
      values_[i].push_back({m_.value(op, type, operands)});
    };
    if (u.op == Op::MatrixLoad) {
      write(cooperative::kOpLoad, matrix_place(i, n));
    } else if (u.op == Op::MatrixFill) {
      write(spv::OpCompositeConstruct, {id(chosen(u.src(0).get(), k_.lanes[i], n), u.dtype)});
    } else if (u.op == Op::Cast) {
      write(spv::OpFConvert, {value(u.src(0).get(), k_.lanes[i], n).base});
    } else {
      std::vector<Id> x;
      for (const ir::UOp& s : u.src()) x.push_back(value(s.get(), k_.lanes[i], n).base);
      if (const uint32_t signs = matrix_signs(u)) x.push_back(signs);
      write(cooperative::kOpMulAdd, x);
    }
  }
}

}  // namespace tuff::render
