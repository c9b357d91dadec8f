// A kernel of a code object executed under the emulator's checks, with arguments from a file: what
// `tuff emu run` does. Called by plugin.cpp.
#pragma once

#include "emu/api.h"

namespace tuff::emu {

// Prints what came out; false if the kernel did not finish, or with findings. BadLaunchFile, or
// another Error.
bool run_kernel(const emu_api::RunRequest& request);

}  // namespace tuff::emu
