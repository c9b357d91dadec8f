// The CPU device: kernels compiled from C, a command ring and worker threads in this process.
// Called through the registry. Must never know UOps, rules or the C renderer's text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"
#include "render/binary.h"

namespace tuff::devices {

// What the CPU device gets from the machine and what may fail there, in one table like Vulkan's, so
// that tests can make the n-th call fail.
struct CpuApi {
  enum class Run : uint8_t { Normally, Fails, Hangs };
  void* (*map_pages)(size_t size_bytes);  // null: no memory
  bool (*loads)(const render::Binary&);   // false: the object is refused
  Run (*runs)(uint64_t value);            // before the list of a timeline value; null: normally
};
CpuApi& cpu_api(hcq::Device& device);

// One row; not usable, with the remedy, where no C compiler is found.
std::vector<Candidate> cpu_probe();
// selector: "" or "0" for CPU; "1" to "3" for more of the same machine, with queues and memory of
// their own, which no probe lists. Works without a C compiler too: loading objects needs none.
std::unique_ptr<hcq::Device> cpu_open(const std::string& selector);

}  // namespace tuff::devices
