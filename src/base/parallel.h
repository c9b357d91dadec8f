// Work that needs no order, on several threads of the host. Called where a schedule's new kernels
// are lowered, rendered and loaded. Not for what a device computes: its threads live on.
#pragma once

#include <cstddef>
#include <functional>

namespace tuff {

// Calls work(0) to work(count - 1), each once, on up to `threads` threads, the calling one among
// them; returns when all have returned. If some threw, the error of the lowest number is thrown.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& work);

}  // namespace tuff
