// OpenCL devices as the rest of tuff sees them: how to list, how to open, and what tests may reach.
// Called by devices/registry; the lower half by tests alone. Declares no OpenCL type.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

// Every device of every driver, best first, with the reason where one cannot be used; where there
// is none at all (no loader, no driver) one row that says so.
std::vector<Candidate> opencl_probe();

// selector: "" (the best), "0" (index of opencl_probe()), "uuid=<hex prefix>", "name=<part>".
// Throws InvalidArgument listing what is there, Unsupported with the reason.
std::unique_ptr<hcq::Device> opencl_open(const std::string& selector);

// --- for tests ---

struct ClApi;  // api.h
// The function table that every call of this device goes through; a test may exchange entries.
ClApi& opencl_api(hcq::Device& device);

}  // namespace tuff::devices
