// The DISK device: memory is ranges of files, copies are reads and writes with many requests in
// flight, nothing is computed. "DISK:PATH" gives out ranges at the end of that file; "DISK" has
// those of files that other code opened. Opened through the registry. Must never know formats of
// files, UOps or rules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

std::vector<Candidate> disk_probe();
// The file is opened when memory of it is asked for.
std::unique_ptr<hcq::Device> disk_open(const std::string& selector);

}  // namespace tuff::devices
