// Devices whose drivers do not work in a child of fork(): there they are closed (Device::close())
// by the fork itself, so that whoever uses one is told at once. Called by drivers' devices.
#pragma once

#include "hcq/device.h"

namespace tuff::hcq {

// From a device that is complete; Device::shut_down() takes it back.
void close_in_children(Device& device);
void stays_open(const Device& device) noexcept;

}  // namespace tuff::hcq
