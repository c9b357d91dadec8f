#include "devices/amd/pci/registers.h"

#include <chrono>
#include <thread>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

// A hole among the registers, where a page can be put that flushes.
constexpr uint64_t kFlushPlace = 0x80000 - 4096;

}  // namespace

uint64_t GpuRegisters::place(const GpuRegister& r) const {
  const IpBlock& block = discovery_.block(r.block);
  if (r.segment >= block.bases.size())
    fail<Unsupported>("AMD: {}: the GPU's {} has no segment {}", r.name, amd::name(r.block),
                      r.segment);
  return 4 * (block.bases[r.segment] + r.offset);
}

uint32_t GpuRegisters::read(const GpuRegister& r) const {
  const uint64_t at = place(r);
  if (is_mapped(at)) return device_.read(kBar, at);
  device_.write(kBar, place(reg::RsmuIndex), uint32_t(at));
  return device_.read(kBar, place(reg::RsmuData));
}

void GpuRegisters::write(const GpuRegister& r, uint32_t value) const {
  const uint64_t at = place(r);
  if (is_mapped(at)) return device_.write(kBar, at, value);
  device_.write(kBar, place(reg::RsmuIndex), uint32_t(at));
  device_.write(kBar, place(reg::RsmuData), value);
}

void GpuRegisters::wait_for(const char* what, const GpuRegister& r, uint32_t mask,
                            uint32_t value) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  for (;;) {
    const bool late = Clock::now() >= end;
    const uint32_t seen = read(r);
    if ((seen & mask) == value) return;
    if (late)
      fail<DeviceLost>("{}: {} within {} ms ({} has {:#x})", device_.function().address, what,
                       timeout_ms_, r.name, seen);
    std::this_thread::yield();
  }
}

uint32_t GpuRegisters::wait_for_any(const char* what, const GpuRegister& r) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  for (;;) {
    const bool late = Clock::now() >= end;
    if (const uint32_t seen = read(r); seen != 0) return seen;
    if (late) fail_wait(what);
    std::this_thread::yield();
  }
}

void GpuRegisters::fail_wait(const char* what) const {
  fail<DeviceLost>("{}: {} within {} ms", device_.function().address, what, timeout_ms_);
}

void GpuRegisters::place_flush() const { write(reg::RemapHdpFlush, uint32_t(kFlushPlace)); }

// Read back, so that the write has arrived.
void GpuRegisters::flush_writes() const {
  device_.write(kBar, kFlushPlace, 0);
  (void)device_.read(kBar, kFlushPlace);
}

}  // namespace tuff::devices::amd
