#include "devices/amd/pci/pci_buffer.h"

#include "base/arith.h"
#include "base/check.h"

namespace tuff::devices::amd {
namespace {

uint64_t alignment_of(uint64_t size_bytes) {
  return size_bytes >= kLargePageOfTableBytes ? kLargePageOfTableBytes : kSmallPageBytes;
}

}  // namespace

PciBuffer::PciBuffer(PciGpu& gpu, size_t size_bytes, MemoryDomain domain)
    : gpu_(gpu), size_(align_up(size_bytes, kSmallPageBytes)) {
  switch (domain) {
    case MemoryDomain::Vram:
    case MemoryDomain::PeerVram: map_vram(); break;
    case MemoryDomain::Code:
    case MemoryDomain::Host:
    case MemoryDomain::Shared:
    case MemoryDomain::Uncached: map_system(domain); break;
    case MemoryDomain::VisibleVram:
      fail<Unsupported>("AMD: by PCI the host reaches no VRAM but what the start takes");
    case MemoryDomain::User:
      fail<Unsupported>("AMD: by PCI a GPU reaches no pages that are the caller's own");
  }
}

void PciBuffer::map_vram() {
  try {
    vram_ = gpu_.memory().reserve(size_, alignment_of(size_));
    address_ = gpu_.addresses().reserve(size_, alignment_of(size_));
    gpu_.map(address_, size_, gpu_.entry_offset() + *vram_, {.executable = false});
  } catch (...) {
    give_back();
    throw;
  }
}

void PciBuffer::map_system(MemoryDomain domain) {
  system_.emplace(gpu_.device(), size_);
  address_ = reinterpret_cast<uint64_t>(system_->host());
  gpu_.map(address_, size_, system_->address(),
           {.system = true, .uncached = domain != MemoryDomain::Shared});
}

void PciBuffer::give_back() noexcept {
  if (!vram_) return;
  if (address_) gpu_.addresses().give_back(address_);
  gpu_.memory().give_back(*vram_);
}

PciBuffer::~PciBuffer() {
  try {
    gpu_.unmap(address_, size_);
  } catch (const Error& e) {
    gpu_.reset(e.what());
  }
  give_back();
}

}  // namespace tuff::devices::amd
