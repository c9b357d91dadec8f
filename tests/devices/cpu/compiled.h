// Compiled: C kernels turned into Binaries and loaded, for tests of the CPU device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hcq/device.h"
#include "base/compilers.h"

namespace tuff::devices {

inline std::shared_ptr<const std::vector<uint8_t>> compile(const std::string& source) {
  return std::make_shared<const std::vector<uint8_t>>(
      std::move(compile_c(std::span(&source, 1))[0]));
}

inline render::Binary binary_of(std::shared_ptr<const std::vector<uint8_t>> bytes,
                                const std::string& symbol, uint32_t buffers, uint32_t scalars) {
  render::Binary b;
  b.name = b.symbol = symbol;
  b.format = render::BinaryFormat::Object;
  b.bytes = std::move(bytes);
  b.args = {buffers, scalars};
  return b;
}

}  // namespace tuff::devices
