// The device registry: one row per kind of device. Called by engine (Device::get) and cli
// (devices). Rows only: what a kind is called, how to list what is there and how to open one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hcq/device.h"

namespace tuff::devices {

// One candidate as found without opening it, or the reason why there is none.
struct Candidate {
  std::string name;  // "VULKAN:0"; the kind alone if nothing was found
  bool usable = false;
  std::string reason = {};    // if not usable: why, and the remedy ("... install libvulkan1")
  hcq::DeviceInfo info = {};  // filled if usable
  // For the default choice, higher first: discrete 400, integrated 300, virtual 200, OpenCL's GPUs
  // 150, CPU 100, software Vulkan 50, OpenCL's CPUs 40, never 0.
  int rank = 0;
};

struct DeviceKind {
  const char* kind;  // "VULKAN"
  std::vector<Candidate> (*probe)();
  // selector: what follows the colon ("0", "uuid=...", "name=..."), or empty for the first.
  // Throws InvalidArgument listing what is there, or Unsupported with the reason.
  std::unique_ptr<hcq::Device> (*open)(const std::string& selector);
};

std::span<const DeviceKind> device_kinds();

}  // namespace tuff::devices
