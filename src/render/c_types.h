// The C dialect's spelling of types and literals, and the prelude every translation unit opens
// with. Called by the C renderer's other files. Must never know UOps. In registers a Bool is an
// i32: 0/1 as a scalar, 0/-1 per lane of a vector. F16 and BF16 are the bits of their memory form
// (u16): arithmetic on them was decomposed before.
#pragma once

#include <string>

#include <tuff/dtype.h>

namespace tuff::render {

bool c_has_width(int width);                   // is there a vector type of that many lanes?
std::string c_type(DType t, int width = 1);    // in registers: "f32", "f32x8"
std::string c_bits(DType t, int width = 1);    // unsigned integers of an element's size in memory
std::string c_memory(DType t, int width = 1);  // in memory: Bool is u8; vectors "f32x8u", unaligned
std::string c_literal(const Scalar& v);        // negative ones in parentheses
std::string c_int(DType t, int64_t v);         // v wrapped to t
const std::string& c_prelude();

}  // namespace tuff::render
