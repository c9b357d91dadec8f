// Element types of ONNX: the dtype that holds each, their packed contents, and what Cast and
// QuantizeLinear make of a number. Called by the importer and by operators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tuff/tensor.h>
#include "io/formats/onnx_model.h"

namespace tuff::onnx {

// A type that tuff lacks is held in a wider dtype that has all of its values: integers of 2 and 4
// bits in 8 bits, FLOAT4E2M1 and floats of 8 bits in F16, FLOAT8E8M0 in F32. Void: none has.
DType dtype_of(io::onnx::ElementType type);
io::onnx::ElementType element_of(DType dtype);  // whose own dtype this is; Undefined: none
bool is_narrow(io::onnx::ElementType type);     // whether it is held in a wider dtype

// `count` elements of a narrow type, as raw_data packs them, in the bytes of dtype_of(type).
std::vector<uint8_t> unpacked(io::onnx::ElementType type, const std::vector<uint8_t>& packed,
                              int64_t count);

// How Cast converts to floats of 8 bits; other types look at neither.
struct Conversion {
  bool saturate = true;           // else NaN, or infinity, beyond the largest value
  std::string round_mode = "up";  // of FLOAT8E8M0: "up", "down", "nearest"
};
// In dtype_of(to), as Cast converts: integers lose their high bits, floats round to even.
Tensor converted(const Tensor& x, io::onnx::ElementType to, const Conversion& how = {});
// As QuantizeLinear converts: integers are rounded to even and kept in the type's range.
Tensor saturated(const Tensor& x, io::onnx::ElementType to);

}  // namespace tuff::onnx
