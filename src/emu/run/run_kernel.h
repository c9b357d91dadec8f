// A kernel of a code object executed under the emulator's checks: with arguments from a file, as
// `tuff emu run` does, or with the caller's. Called by plugin.cpp.
#pragma once

#include "emu/api.h"

namespace tuff::emu {

// Prints what came out; false if the kernel did not finish, or with findings. BadLaunchFile, or
// another Error.
bool run_kernel(const emu_api::RunRequest& request);
// The same with registers and memory of the caller's, and nothing printed.
emu_api::LaunchResult launch_kernel(const emu_api::LaunchRequest& request);

}  // namespace tuff::emu
