// What dialects with workgroups add to the C renderer: arguments, ids, memory in common, shuffles.
// Called by CKernel.
#pragma once

#include <string>

#include "render/c_body.h"

namespace tuff::render {

void begin_workgroup_function(CBody& b);
std::string coordinate(const CBody& b, const ir::SpecialArg& s);
void emit_workgroup_memory(CBody& b, size_t i);
void emit_shuffle(CBody& b, size_t i);  // of 32-bit values: kernel makes no others

}  // namespace tuff::render
