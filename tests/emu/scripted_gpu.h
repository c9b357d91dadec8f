// A double of emu/amd/gpu.h's Gpu for tests of the emulated kernel driver alone: it takes "packets"
// that are announced by doorbells, as many as a doorbell's value has risen, and does for each what
// the test has scripted. Link scripted_gpu.cpp instead of the engines.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emu/amd/gpu.h"

namespace tuff::emu::amd {

struct ScriptedPacket {
  uint32_t gpu;
  const QueueSetup& queue;
  uint64_t number;  // from 1, of its queue
  AddressSpace& space;
  GpuEvents& events;
};

struct GpuScript {
  // False: the packet waits and is tried again.
  std::function<bool(const ScriptedPacket&)> packet = [](const ScriptedPacket&) { return true; };
  std::string blocked;
};
// For Gpus that are made from now on; what happened to them, in order.
void set_gpu_script(GpuScript script);
std::vector<std::string> take_gpu_history();
// Where a buffer lies for whoever has its GPU address.
std::byte* reach(AddressSpace& space, uint64_t address);

}  // namespace tuff::emu::amd
