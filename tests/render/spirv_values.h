// Arithmetic of the SPIR-V interpreter: what an instruction makes of its operands' bits, component
// by component. Knows no memory.
#pragma once

#include <span>

#include "render/spirv_reader.h"

namespace tuff::render::testing {

// One component: operands and result of these types. InternalError for what is not known.
// Results that the specification leaves undefined (a quotient by zero, a shift by too much, a
// conversion out of range) are bits that no test expects.
uint64_t arithmetic(uint32_t op, const Type& from, const Type& to, std::span<const uint64_t> x);
// Of GLSL.std.450, on whole values.
Value extended(uint32_t number, const Type& component, std::span<const Value> x);

uint64_t masked(uint64_t v, uint32_t bits);

}  // namespace tuff::render::testing
