// CUDA devices as the rest of tuff sees them: how to list and how to open. Called by
// devices/registry. Declares no type of CUDA.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

// Every GPU of NVIDIA's driver, with the reason where one cannot be used; where there is none at
// all (no driver) one row that says so.
std::vector<Candidate> cuda_probe();

// selector: "" (the first), "0", "uuid=<hex prefix>", "name=<part>". Throws as DeviceKind::open
// says.
std::unique_ptr<hcq::Device> cuda_open(const std::string& selector);

}  // namespace tuff::devices
