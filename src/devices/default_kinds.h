// Which kinds of devices are asked when a default is chosen. Called by engine.
#pragma once

#include "devices/registry.h"

namespace tuff::devices {

// False: it is opened by name alone, and nobody asks about it before that. Listing starts its
// driver, which takes long, and which a process that forks may not want.
bool may_be_default(const DeviceKind& kind);

}  // namespace tuff::devices
