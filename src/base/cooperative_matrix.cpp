#include "base/cooperative_matrix.h"

namespace tuff {
namespace {

std::optional<DType> dtype_of(VkComponentTypeKHR t) {
  switch (static_cast<uint32_t>(t)) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR: return DType::F16;
    case VK_COMPONENT_TYPE_FLOAT32_KHR: return DType::F32;
    case VK_COMPONENT_TYPE_SINT8_KHR: return DType::I8;
    case VK_COMPONENT_TYPE_SINT32_KHR: return DType::I32;
    case VK_COMPONENT_TYPE_UINT8_KHR: return DType::U8;
    case static_cast<uint32_t>(kBfloat16Component): return DType::BF16;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<MatrixShape> matrix_shape_of(const VkCooperativeMatrixPropertiesKHR& p) {
  const auto a = dtype_of(p.AType), b = dtype_of(p.BType), sum = dtype_of(p.CType);
  const bool same = p.ResultType == p.CType && !p.saturatingAccumulation;
  if (p.scope != VK_SCOPE_SUBGROUP_KHR || !same || !a || !b || !sum) return std::nullopt;
  if (*sum != (is_float(*a) ? DType::F32 : DType::I32) || is_float(*a) != is_float(*b) ||
      size_bytes(*a) > 2 || size_bytes(*b) > 2)
    return std::nullopt;
  return MatrixShape{p.MSize, p.NSize, p.KSize, *a, *b, *sum};
}

}  // namespace tuff
