// What emu/api.h offers in place of NVIDIA's assembler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff::emu::nv {

// An executable file of machine 190 with sections, symbols, attributes and relocations as NVIDIA's
// tools lay them out (`modern`: since CUDA 13), and stubs for code. CompileError for a text that
// the interpreter does not take, or one for a later GPU; InvalidArgument for one that is not
// emulated.
std::vector<uint8_t> assemble(const std::string& text, uint32_t sm, bool modern = false);

}  // namespace tuff::emu::nv
