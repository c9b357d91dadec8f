#include "devices/amd/gpu_facts.h"

#include "base/check.h"

namespace tuff::devices::amd {

// Decimal digits of the version are major * 10000 + minor * 100 + stepping, of the name
// hexadecimal.
std::string GpuFacts::arch() const {
  return fmt::format("gfx{}{:x}{:x}", target_version / 10000, target_version / 100 % 100,
                     target_version % 100);
}

}  // namespace tuff::devices::amd
