// What waits for a device in Python.
#pragma once

#include <cstdint>

#include "hcq/device.h"

namespace tuff::python {

// For a value of the queue's timeline, without the interpreter's lock, until the user asks for
// KeyboardInterrupt.
void wait_in_slices(hcq::Queue& queue, uint64_t value);

}  // namespace tuff::python
