// TUFF_MOCK's text, "name:value,name:value", as emulated machines read it. Called by the options of
// amd/ and nv/. Knows no name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tuff::emu {

// Calls `set` with each pair. InvalidArgument for a value that is no whole number.
void read_options(const std::string& text,
                  const std::function<void(const std::string& name, uint64_t value)>& set);
// The value, or InvalidArgument naming what is possible.
uint64_t in_range(const std::string& name, uint64_t value, uint64_t least, uint64_t most);

}  // namespace tuff::emu
