// What a kernel of `tuff emu run` left, as JSON and as text. Called by run_kernel.cpp and
// run_ptx.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "emu/run/launch_file.h"

namespace tuff::emu {

Json buffers_json(const EmuLaunch& launch);  // all of them, with whether they changed
void print_changed(const EmuLaunch& launch);
void print_counts(const std::map<std::string, uint64_t>& counts);  // of instructions

}  // namespace tuff::emu
