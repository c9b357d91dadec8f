// libtuff_emulator.so, opened when the first emulated machine or kernel is wanted. Called by the
// registry for AMD_IFACE=MOCK and by `tuff emu`. Knows what the library offers, not how.
#pragma once

#include "emu/api.h"

namespace tuff::devices {

// TUFF_EMULATOR, or beside the program or module, where `cmake --install` puts it, or where the
// system's loader finds it. Throws Unsupported naming these places, or for a library of another
// build.
const emu_api::Api& emulator();
// What machines that are made from now on tell of each launch; by default nothing.
void profile_emulated(emu_api::ProfileOptions options);
const emu_api::ProfileOptions& emulated_profile();
// Throws a call's failure as the Error that it was; nothing if there was none.
void throw_failure(const emu_api::Failure& failure);

}  // namespace tuff::devices
