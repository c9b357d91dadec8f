// Cases that both renderers are run with: kernels, inputs, and the comparison of what came out.
#pragma once

#include <span>

#include "render/linear_eval.h"
#include "render/sample_kernels.h"

namespace tuff::render {

// Any: values of every kind. Safe: within what every conversion can hold. Whole: exact in any
// order.
enum class Values { Any, Safe, Whole };
struct Case {
  kernel::LinearKernel kernel;
  Values values = Values::Any;
  std::vector<int32_t> scalars;
};

inline constexpr DType kMemoryTypes[] = {
    DType::Bool, DType::I8,  DType::U8,  DType::I16,  DType::U16, DType::I32, DType::U32,
    DType::I64,  DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64,
    DType::F8E4M3FN, DType::F8E5M2};

std::vector<HostBuffer> inputs(const kernel::LinearKernel& k, uint32_t seed, Values values);
// Bit by bit, but f32 within 4 ULP (a fused and an unfused multiply-add may differ) and any NaN as
// NaN.
void expect_equal(const kernel::LinearKernel& k, const std::vector<HostBuffer>& got,
                  const std::vector<HostBuffer>& want);
std::vector<Case> integer_cases();
std::vector<Case> float_cases();
std::vector<Case> cast_cases(std::span<const DType> types);  // every pair

}  // namespace tuff::render
