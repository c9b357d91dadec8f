// Kernels that users wrote, on their way to a Target's compiler: the text in its language, checked
// against what is declared, with what calls it as tuff calls its own. Called by engine's program
// cache in the place of lowering and rendering. Must never know buffers or queues.
#pragma once

#include "base/target.h"
#include "ir/uop.h"
#include "kernel/lowered.h"
#include "render/renderer.h"

namespace tuff::render {

struct UserKernel {
  kernel::LinearKernel linear;  // arguments and launch; it has no ops
  Source source;
  uint32_t alignment = 1;  // bytes that each argument's address has to be a multiple of
};

// Of the kernel floor's node (ir/custom_kernel.h). Throws Unsupported where the Target's language
// was not given or its compiler is not there, CompileError with the kernel's name for what does not
// compile or is not what was declared.
UserKernel user_kernel(const ir::UOp& ast, const Target& t);

}  // namespace tuff::render
