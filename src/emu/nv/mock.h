// The emulated machine as a driver sees it: an os::Kernel with /dev/nvidiactl, /dev/nvidia<n> and
// /dev/nvidia-uvm of NVIDIA's GPUs, as their kernel driver of one of four branches answers. Made by
// the device registry for NV's iface MOCK and by tests. Parts: rm/ answers system calls, context.h
// runs channels, memory/ is memory, ptx/ executes kernels. It has never been compared with
// hardware: what it refuses is what the driver's sources and NVIDIA's manuals refuse.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/os_kernel.h"
#include "emu/api.h"
#include "emu/kernel/finding.h"

namespace tuff::emu::nv {

struct MockOptions {
  uint32_t gpus = 1;
  bool pci = false;  // one GPU on the bus that no driver holds; `driver`: its firmware's branch
  uint64_t vram_bytes = 16ull << 30;  // of each; takes host memory where it is touched alone
  uint32_t sm = 86;                   // of chip.h
  uint32_t driver = 550;              // the branch
  uint64_t seed = 1;                  // of what is free to choose
  // Whether the GPUs reach each other's video memory: asked for, or over NVLink from the beginning.
  enum class Peers : uint8_t { None, Pcie, NvLink } peers = Peers::Pcie;
  // The fail'th call (counted from 1; 0: none) is refused: with the status where its struct has
  // one, else with EIO.
  uint64_t fail = 0;
  uint32_t status = 0x51;
  bool no_status = false;  // with EIO in any case
  // Once so many methods were taken, no channel takes another. 0: never.
  uint64_t stop = 0;
  std::function<void(const Finding&)> report;  // on any thread
  emu_api::ProfileOptions profile;             // whose report may not call back
};

// "gpus:1,vram:4096,sm:90,driver:570,seed:7,peers:1,fail:12,status:26,stop:100", each where wanted;
// vram in MiB; or of "pci:1,sm:90" and the like. TUFF_MOCK's form. Throws InvalidArgument naming
// what is known.
MockOptions parse_options(const std::string& text);

struct MockStats {
  uint64_t calls = 0, objects = 0, ranges = 0, files = 0, findings = 0;
};

class Mock : public os::Kernel {
 public:
  virtual MockStats stats() const = 0;
  virtual std::vector<int> open_files() const = 0;
};
std::unique_ptr<Mock> make_mock(const MockOptions& options);
// Of `pci`, where calls are VFIO's: the GPU is at this address, and has an aperture of 256 MiB.
inline constexpr const char* kPciSlot = "0000:41:00.0";
std::unique_ptr<Mock> make_pci_mock(const MockOptions& options);

}  // namespace tuff::emu::nv
