// A kernel of PTX executed under the interpreter's checks, with arguments from a file. Called by
// run_kernel.cpp, which tells PTX from code objects.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "emu/api.h"

namespace tuff::emu {

bool is_elf(std::span<const uint8_t> file);
bool is_ptx(std::span<const uint8_t> file);
// As run_kernel(), of the PTX in place of the request's file.
bool run_ptx(const emu_api::RunRequest& request, const std::string& text);

}  // namespace tuff::emu
