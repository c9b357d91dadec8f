#include "devices/amd/gpu_facts.h"

#include "base/check.h"

namespace tuff::devices::amd {

std::string GpuFacts::arch() const {
  return fmt::format("gfx{}{:x}{:x}", target_version / 10000, target_version / 100 % 100,
                     target_version % 100);
}

}  // namespace tuff::devices::amd
