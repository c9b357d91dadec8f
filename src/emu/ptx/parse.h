// PTX text as a Module. Source: NVIDIA, "PTX ISA" 7.8, 4 to 11. Called by launch.cpp and by the
// fuzz target; knows nothing of what executes but the makers' names.
#pragma once

#include <memory>
#include <string_view>

#include "emu/ptx/module.h"

namespace tuff::emu::ptx {

// CompileError naming the line, and what of it is not understood. The text may go afterwards.
std::unique_ptr<Module> parse(std::string_view text);

}  // namespace tuff::emu::ptx
