// The C dialects' spelling of types and literals.
// Called by the C renderer's other files. Must never know UOps. In registers a Bool is an i32: 0/1
// as a scalar, 0/-1 per lane of a vector. BF16, and F16 where the dialect does not compute with it,
// are the bits of their memory form (u16): arithmetic on them was decomposed before.
#pragma once

#include <string>

#include <tuff/dtype.h>
#include "render/c_dialect.h"

namespace tuff::render {

bool is_held_as_bits(const CDialect& d, DType t);
bool c_has_width(int width);  // is there a vector type of that many lanes?
std::string c_type(const CDialect& d, DType t, int width = 1);  // in registers: "f32", "f32x8"
std::string c_bits(DType t, int width = 1);  // unsigned integers of an element's size in memory
// In memory: Bool is u8; vectors "f32x8u", unaligned.
std::string c_memory(const CDialect& d, DType t, int width = 1);
std::string c_literal(const CDialect& d, const Scalar& v);  // negative ones in parentheses
std::string c_int(const CDialect& d, DType t, int64_t v);   // v wrapped to t

}  // namespace tuff::render
