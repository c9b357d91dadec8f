// How a kernel of SPIR-V gets its arguments: by addresses, which it reads of the argument block
// that the push constant points to, or bound to it. Called by the SPIR-V renderer's walker.
#pragma once

#include <vector>

#include "base/target.h"
#include "kernel/lowered.h"
#include "render/spirv_types.h"

namespace tuff::render {

struct SpirvArguments {
  std::vector<Id> buffers, scalars;  // loaded at entry; bound buffers are variables
  std::vector<Id> skipped;           // of a bound buffer: i32 elements before it in its binding
};

// Declares and, at the function's head, loads them.
SpirvArguments load_arguments(SpirvModule& m, SpirvTypes& t, const kernel::LinearKernel& k,
                              const Target& target);
// The type of a pointer to struct { element[] } in a buffer.
Id buffer_pointer(SpirvModule& m, SpirvTypes& t, const Target& target, DType element);

}  // namespace tuff::render
