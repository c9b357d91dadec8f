// The emulated machine as a driver sees it: an os::Kernel with /dev/kfd, render nodes and sysfs of
// GPUs of generation gfx1100. Made by the device registry for AMD's iface MOCK and by tests.
// Parts: kfd/ answers system calls, gpu.h runs queues, address_space.h and caches.h are memory,
// rdna/ executes kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/os_kernel.h"
#include "emu/kernel/finding.h"
#include "emu/api.h"

namespace tuff::emu::amd {

// What goes wrong, and when: `count` counts from 1 among what the kind names.
struct Fault {
  enum class Kind : uint8_t {
    StopQueue,      // once `count` packets were taken, no queue takes another
    LoseInterrupt,  // the count'th interrupt never arrives
    Ecc,            // at the count'th packet: uncorrectable memory error, hardware exception
    FailCall,       // the count'th ioctl returns -ENOMEM
    Reset,          // at the count'th packet the GPU is reset: queues die, hardware exception
  } kind;
  uint64_t count = 1;
};

struct MockOptions {
  uint32_t gpus = 2;
  uint64_t vram_bytes = 16ull << 30;  // of each; takes host memory where it is touched alone
  bool large_bar = true;              // else the host maps no VRAM
  // Given: nothing runs by itself. Engines step inside system calls, in an order drawn from the
  // seed, so that the same calls give the same order. Else they run on threads of their own.
  std::optional<uint64_t> seed;
  std::vector<Fault> faults;
  std::string forbidden;                       // a path whose open() fails with -EACCES
  std::function<void(const Finding&)> report;  // on any thread
  emu_api::ProfileOptions profile;             // whose report may not call back
};

// "gpus:1,seed:7,bar:0,vram:4096,stop:12,lost_interrupt:1,ecc:3,enomem:7,reset:5", each where
// wanted; vram in MiB. TUFF_MOCK's form. Throws InvalidArgument naming what is known.
MockOptions parse_options(const std::string& text);

// Totals of all engines since the machine was made.
struct MockStats {
  uint64_t calls = 0, packets = 0, dispatches = 0, instructions = 0, findings = 0;
};

class Mock : public os::Kernel {
 public:
  virtual MockStats stats() const = 0;
  // Engines take no packet until resume(); for measurements and tests.
  virtual void pause() = 0;
  virtual void resume() = 0;
};
std::unique_ptr<Mock> make_mock(const MockOptions& options);

}  // namespace tuff::emu::amd
