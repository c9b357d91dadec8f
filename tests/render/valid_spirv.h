// Every module of the tests goes through SPIRV-Tools' validator, for the Vulkan environment of its
// version and with what each Target has and lacks.
#pragma once

#include <string>

#include "kernel/lowered.h"

namespace tuff::render {

// Fails the test if it is not valid; the disassembly.
std::string expect_valid_spirv(const kernel::LinearKernel& k, const Target& t);

}  // namespace tuff::render
