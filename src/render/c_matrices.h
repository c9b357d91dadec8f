// Cooperative matrices in C: which lane holds which elements is the prelude's matter
// (add_matrices()). Called by CKernel.
#pragma once

#include <string>

#include "render/c_memory.h"

namespace tuff::render {

std::string matrix_type(const ir::MatrixArg& m, DType t);
void emit_matrix(CBody& b, const CMemory& memory, size_t i);

}  // namespace tuff::render
