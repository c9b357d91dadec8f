// A kernel of a code object executed under the emulator's checks, with arguments from a file: what
// `tuff emu run` does. Called through emu/api.h.
#pragma once

#include "emu/api.h"

namespace tuff::emu {

bool run_kernel(const emu_api::RunRequest& request);  // as Api::run_kernel

}  // namespace tuff::emu
