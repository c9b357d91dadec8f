// A KernelProfile as `tuff emu run --profile` prints it, and as JSON. Called by run_kernel.cpp.
#pragma once

#include <string>

#include "base/json.h"
#include "emu/api.h"

namespace tuff::emu {

std::string profile_text(const emu_api::KernelProfile& profile);
Json profile_json(const emu_api::KernelProfile& profile);

}  // namespace tuff::emu
