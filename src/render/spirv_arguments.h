// A user's module with its storage buffers made what tuff's own kernels have: addresses, read from
// the argument block that a push constant points to. So a launch of it is patched and replayed as
// any other is, and nothing is bound. Called by user_kernel.cpp for Targets with addresses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "render/spirv_user.h"

namespace tuff::render {

struct WithAddresses {
  std::vector<uint32_t> words;
  uint32_t alignment = 4;  // bytes that each argument's address has to be a multiple of
};
WithAddresses with_addresses(const UserModule& module, std::span<const UserArgument> arguments);

}  // namespace tuff::render
