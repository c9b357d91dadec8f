#include "devices/nv/pci/memory_layout.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"
#include "devices/nv/pci/vbios.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kMiB = 1u << 20, kOpenHeapBytes = kMiB;
constexpr uint64_t kProtectedAlignment = 128u << 10, kImageAlignment = 64u << 10;

// What is taken from the end of memory downwards.
class FallingEnd {
 public:
  explicit FallingEnd(uint64_t total) : total_(total), end_(total) {}
  // Beginning of so many bytes below what was taken before.
  uint64_t take(uint64_t size_bytes, uint64_t alignment) {
    if (size_bytes > end_)
      fail<InvalidArgument>("NV: the GSP's firmware needs more than the {} bytes of video memory",
                            total_);
    end_ -= size_bytes;
    end_ -= end_ % alignment;
    return end_;
  }

 private:
  const uint64_t total_;
  uint64_t end_;
};

}  // namespace

uint64_t heap_bytes(uint64_t total_bytes, const HeapSizes& s) {
  const uint64_t gib = ceil_div(total_bytes, 1ull << 30);
  const uint64_t wanted = s.system_bytes + s.manager_bytes +
                          align_up(s.bytes_per_gib * gib, kMiB) + align_up(s.clients_bytes, kMiB);
  return std::clamp(wanted, s.least_bytes, s.most_bytes);
}

MemoryLayout memory_layout(uint64_t total_bytes, uint64_t screen_bytes, uint64_t image_bytes,
                           uint64_t bootloader_bytes, const HeapSizes& sizes) {
  FallingEnd end(total_bytes);
  MemoryLayout m;
  m.total = total_bytes;
  m.screen = end.take(screen_bytes, 1);
  m.protected_end = end.take(0, kProtectedAlignment);
  m.frts = end.take(kFrtsBytes, 1);
  m.bootloader = end.take(bootloader_bytes, 4096);
  m.image = end.take(image_bytes, kImageAlignment);
  m.heap = end.take(heap_bytes(total_bytes, sizes), kMiB);
  m.heap_bytes = (m.image - m.heap) / kMiB * kMiB;
  m.protected_begin = end.take(kDescriptionBytes, kMiB);
  m.open_heap = end.take(kOpenHeapBytes, 1);
  return m;
}

}  // namespace tuff::devices::nv
