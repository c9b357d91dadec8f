#include "devices/nv/program.h"

#include <cstring>
#include <map>

namespace tuff::devices::nv {

// Lists begin with a void instruction cache, so what is written here is seen in time.
LoadedCubin::LoadedCubin(Space& space, std::span<const uint8_t> cubin)
    : cubin_(cubin, *space.facts().generation),
      memory_(space.allocate(cubin_.size_bytes(), MemoryDomain::VisibleVideo)) {
  const std::vector<uint8_t> image = cubin_.image(memory_->address());
  std::memcpy(memory_->host(), image.data(), image.size());
}

KernelCode LoadedCubin::kernel(const render::Binary& b) const {
  return cubin_.kernel(b.symbol, memory_->address(), b.local);
}

std::vector<std::unique_ptr<hcq::Program>> load_programs(Space& space, const Assemble& assemble,
                                                         std::span<const render::Binary> binaries) {
  std::map<const void*, std::shared_ptr<const LoadedCubin>> loaded;
  std::vector<std::unique_ptr<hcq::Program>> programs;
  for (const render::Binary& b : binaries) {
    if (b.format != render::BinaryFormat::Ptx || !b.bytes)
      fail<CompileError>("{}: no PTX for an NVIDIA GPU", b.name);
    auto& cubin = loaded[b.bytes.get()];
    if (!cubin) {
      const std::string text(b.bytes->begin(), b.bytes->end());
      cubin = std::make_shared<const LoadedCubin>(space,
                                                  assemble(text, space.facts().sm));
    }
    programs.push_back(std::make_unique<NvProgram>(b, cubin));
  }
  return programs;
}

}  // namespace tuff::devices::nv
