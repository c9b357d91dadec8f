#include "devices/nv/pci/video_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kAperture = 1;              // BAR
constexpr uint64_t kInvalidate = 0xb830b0;  // in BAR 0
constexpr uint32_t kWithoutTable = 0;
constexpr uint32_t kAllAddresses = 1, kAllTables = 2, kAfterWrites = 1u << 6, kTrigger = 1u << 31;
constexpr uint64_t kFirstPiece = 2u << 20;  // no piece is at 0

}  // namespace

VideoMemory::VideoMemory(const PciDevice& device, const ChipFamily& family,
                         std::span<const MemoryRegion> usable, uint64_t timeout_ms,
                         std::shared_ptr<GspCalls> calls)
    : device_(device), timeout_ms_(timeout_ms), calls_(std::move(calls)) {
  const uint64_t reached = device.bar_bytes(kAperture);
  for (const MemoryRegion& r : usable) {
    const uint64_t begin = std::max(r.begin, kFirstPiece);
    if (r.end <= begin) continue;
    const uint64_t border = std::clamp(reached, begin, r.end);
    add({begin, border}, true);
    add({border, r.end}, false);
    if (border > begin) aperture_bytes_ = std::max(aperture_bytes_, border);
  }
  if (aperture_bytes_ == 0)
    fail<Unsupported>("{}: the aperture of {} bytes reaches no memory that is the host's",
                      device.function().address, reached);
  device.write(0, family.aperture_register, kWithoutTable);
  aperture_ = device.map(kAperture, 0, aperture_bytes_);
}

VideoMemory::~VideoMemory() { device_.unmap(aperture_, aperture_bytes_); }

void VideoMemory::add(MemoryRegion region, bool visible) {
  if (region.size_bytes() == 0) return;
  const std::string owner = device_.function().address + ": video memory";
  parts_.push_back({region, visible,
                    std::make_unique<AddressRanges>(owner, region.begin, region.end, 0)});
}

// ---- pieces

uint64_t VideoMemory::reserve(uint64_t size_bytes, uint64_t alignment, bool visible) {
  std::vector<const Part*> order;
  for (const Part& p : parts_)
    if (p.visible || !visible) order.push_back(&p);
  std::stable_partition(order.begin(), order.end(), [&](const Part* p) {
    return p->visible == visible;
  });
  for (const Part* p : order) {
    try {
      return p->free->reserve(size_bytes, alignment);
    } catch (const OutOfMemory&) {
    }
  }
  fail<OutOfMemory>("{}: no {}video memory is left for {} bytes", device_.function().address,
                    visible ? "visible " : "", size_bytes);
}

void VideoMemory::give_back(uint64_t address) noexcept {
  for (const Part& p : parts_)
    if (address >= p.region.begin && address < p.region.end) p.free->give_back(address);
}

std::byte* VideoMemory::host(uint64_t address) const {
  TUFF_CHECK(address < aperture_bytes_, "{:#x}", address);
  return aperture_ + address;
}

// ---- tables

uint64_t VideoMemory::allocate(size_t size_bytes) {
  const uint64_t address = reserve(size_bytes, size_bytes, true);
  for (size_t at = 0; at < size_bytes; at += sizeof(uint64_t)) write(address + at, 0);
  return address;
}

// One store: the GPU never sees half an entry.
void VideoMemory::write(uint64_t address, uint64_t entry) {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(host(address)))
      .store(entry, std::memory_order_relaxed);
  last_written_ = address;
}

void VideoMemory::publish() {
  if (calls_ && calls_->is_lost()) return;
  try {
    invalidate();
  } catch (const Error& e) {
    if (calls_) calls_->lose(e.what());
    throw;
  }
}

// Writes through the aperture are in memory before the GPU walks it anew: what is read back there
// was written before (kbusFlush comes before an invalidation; kern_bus_gm107.c).
void VideoMemory::invalidate() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (last_written_) {
    std::atomic_ref(*reinterpret_cast<uint64_t*>(host(*last_written_)))
        .load(std::memory_order_seq_cst);
  }
  device_.write(0, kInvalidate, kAllAddresses | kAllTables | kAfterWrites | kTrigger);
  const AwaitedRegister r = wait_for_register(device_, 0, kInvalidate, kTrigger, 0,
                                              std::chrono::milliseconds(timeout_ms_));
  if (!r.arrived)
    fail<DeviceLost>("{}: the GPU did not forget page tables within {} ms",
                     device_.function().address, timeout_ms_);
}

}  // namespace tuff::devices::nv
