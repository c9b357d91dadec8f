// The CPU device: kernels compiled from C, a command ring and worker threads in this process.
// Called through the registry. Must never know UOps, rules or the C renderer's text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

// One row; not usable, with the remedy, where no C compiler is found.
std::vector<Candidate> cpu_probe();
// selector: "" or "0". Works without a C compiler too: loading objects needs none.
std::unique_ptr<hcq::Device> cpu_open(const std::string& selector);
std::unique_ptr<RawReplay> cpu_raw_replay(hcq::Device& device, const hcq::CommandList& list);

}  // namespace tuff::devices
