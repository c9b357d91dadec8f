#include "devices/nv/rm/space.h"

#include "base/arith.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kHugePageBytes = 2u << 20, kBigPageBytes = 64u << 10, kSmallPageBytes = 4u << 10;
constexpr uint64_t kFewestHugeBytes = 8u << 20;

bool has_huge_pages(size_t size_bytes, MemoryDomain domain) {
  return domain != MemoryDomain::System && size_bytes >= kFewestHugeBytes;
}

uint64_t page_bytes(size_t size_bytes, MemoryDomain domain) {
  if (domain == MemoryDomain::System) return kSmallPageBytes;
  return has_huge_pages(size_bytes, domain) ? kHugePageBytes : kBigPageBytes;
}

}  // namespace

Buffer::Buffer(size_t size_bytes, MemoryDomain domain)
    : size_(align_up(size_bytes, page_bytes(size_bytes, domain))), domain_(domain) {}

uint64_t Buffer::alignment() const {
  return has_huge_pages(size_, domain_) ? kHugePageBytes : kBigPageBytes;
}

}  // namespace tuff::devices::nv
