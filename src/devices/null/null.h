// The NULL device: accepts everything and computes nothing, correctly. Signals advance, copies and
// host calls happen, memory is host memory, programs load; kernels do not run.
// Opened through the registry: to measure the engine's own cost, and as the template of a new
// device (copy this folder, replace each body, add a registry row and a conformance registration).
// Must never know UOps or rules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

// What is there, without opening it. Never throws; a missing driver is a Candidate with a reason.
std::vector<Candidate> null_probe();
// Throws InvalidArgument for a selector that names nothing.
std::unique_ptr<hcq::Device> null_open(const std::string& selector);

}  // namespace tuff::devices
