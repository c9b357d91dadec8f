#include "devices/amd/program.h"

#include <cstring>
#include <map>

namespace tuff::devices::amd {

LoadedImage::LoadedImage(GpuState& gpu, std::span<const uint8_t> bytes)
    : gpu_(gpu),
      object_(bytes, gpu.generation),
      memory_(gpu.space->allocate({object_.size_bytes(), MemoryDomain::Code})) {
  // Lists begin with a flush of the bar and void instruction caches, so this is seen in time.
  const std::vector<uint8_t> image = object_.image(memory_->address());
  std::memcpy(memory_->host(), image.data(), image.size());
  shown_ = gpu.space->show_code(memory_->address(), object_.placed_file(bytes));
}

// In a child of fork() the memory is the parent's.
LoadedImage::~LoadedImage() {
  if (gpu_.is_childs()) (void)memory_.release();
}

KernelCode LoadedImage::kernel(const render::Binary& b) const {
  return object_.kernel(b.symbol, memory_->address(), b.local);
}

std::vector<std::unique_ptr<hcq::Program>> load_programs(GpuState& gpu,
                                                         std::span<const render::Binary> binaries) {
  std::map<const void*, std::shared_ptr<const LoadedImage>> images;
  std::vector<std::unique_ptr<hcq::Program>> programs;
  for (const render::Binary& b : binaries) {
    if (b.format != render::BinaryFormat::AmdgpuObject || !b.bytes)
      fail<CompileError>("{}: no object file for an AMD GPU", b.name);
    auto& image = images[b.bytes.get()];
    if (!image) image = std::make_shared<const LoadedImage>(gpu, *b.bytes);
    programs.push_back(std::make_unique<AmdProgram>(b, image));
  }
  return programs;
}

}  // namespace tuff::devices::amd
