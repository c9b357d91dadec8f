// Cooperative matrices of the SPIR-V renderer (SPV_KHR_cooperative_matrix). The extension asks for
// the Vulkan memory model: there what invocations hand each other in workgroup memory is said to be
// non-private, and a barrier makes it available and visible. Called by the walker.
#pragma once

#include "render/spirv_body.h"

namespace tuff::render {

bool uses_matrices(const kernel::LinearKernel& k);
void declare_matrices(SpirvModule& m);  // for the module of such a kernel

Id register_type(SpirvBody& b, const ir::Node& u);  // of a value or a register, also one of them
void emit_matrix(SpirvBody& b, size_t i);
void emit_matrix_store(SpirvBody& b, size_t i);

}  // namespace tuff::render
