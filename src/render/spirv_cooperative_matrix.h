// Numbers of SPV_KHR_cooperative_matrix (revision 10, sections 3.X and 3.42) and, for bf16, of
// SPV_KHR_bfloat16, which the SPIR-V headers of Debian 12 (1.3.239) do not know yet. Included by
// the renderer's files that write them and by tests that read them.
#pragma once

#include <cstdint>

namespace tuff::render::cooperative {

inline constexpr const char* kExtension = "SPV_KHR_cooperative_matrix";
inline constexpr uint32_t kCapability = 6022;  // CooperativeMatrixKHR

// Operands after the result: component type, scope, rows, columns, use; all but the first are
// constants.
inline constexpr uint32_t kOpType = 4456;    // OpTypeCooperativeMatrixKHR
inline constexpr uint32_t kOpLoad = 4457;    // pointer, layout, stride, memory operands
inline constexpr uint32_t kOpStore = 4458;   // pointer, object, layout, stride, memory operands
inline constexpr uint32_t kOpMulAdd = 4459;  // a, b, c, matrix operands

inline constexpr uint32_t kUseA = 0, kUseB = 1, kUseAccumulator = 2;
inline constexpr uint32_t kRowMajor = 0, kColumnMajor = 1;
// Matrix operands: which of the matrices are of signed integers.
inline constexpr uint32_t kSignedA = 1, kSignedB = 2, kSignedC = 4, kSignedResult = 8;

inline constexpr const char* kBfloat16Extension = "SPV_KHR_bfloat16";
inline constexpr uint32_t kBfloat16Type = 5116;    // capability BFloat16TypeKHR
inline constexpr uint32_t kBfloat16Matrix = 5118;  // capability BFloat16CooperativeMatrixKHR
inline constexpr uint32_t kBfloat16Encoding = 0;   // operand of OpTypeFloat

}  // namespace tuff::render::cooperative
