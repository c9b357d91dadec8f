#include "devices/nv/pci/gsp_space.h"

#include "base/check.h"
#include "devices/nv/pci/gsp_channel.h"

namespace tuff::devices::nv {

GspSpace::GspSpace(std::unique_ptr<PciGpu> gpu)
    : gpu_(std::move(gpu)),
      addresses_(gpu_->calls(), gpu_->device_object(), gpu_->family().mmu, gpu_->video()) {}

std::unique_ptr<Buffer> GspSpace::allocate(size_t size_bytes, MemoryDomain domain) {
  return std::make_unique<GspBuffer>(*this, size_bytes, domain);
}

std::unique_ptr<ChannelGroup> GspSpace::make_group() {
  return std::make_unique<GspChannelGroup>(*this);
}

// ---- memory

GspBuffer::GspBuffer(GspSpace& space, size_t size_bytes, MemoryDomain domain)
    : Buffer(size_bytes, domain), space_(space) {
  PageAttributes attributes;
  uint64_t physical = 0;
  if (domain == MemoryDomain::System) {
    system_.emplace(space.gpu().device(), size_);
    host_ = system_->host();
    physical = system_->address();
    attributes = {.aperture = Aperture::System, .cached = false};
  } else {
    video_.emplace(space.gpu().video(), size_, alignment(), domain == MemoryDomain::VisibleVideo);
    host_ = video_->host();
    physical = video_->address();
  }
  address_ = space.addresses().map(physical, size_, alignment(), attributes);
}

// Where the GPU cannot be made to forget it, it is stopped before the memory is another's.
GspBuffer::~GspBuffer() {
  try {
    space_.addresses().unmap(address_, size_);
  } catch (const Error& e) {
    space_.gpu().reset(e.what());
  }
}

bool GspBuffer::map_for(Space& space) {
  if (&space != &space_) fail<Unsupported>("NV: a GPU by PCI has no peers");
  return false;
}

}  // namespace tuff::devices::nv
