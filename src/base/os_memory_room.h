// How much memory this process may still take before the kernel ends it: control groups, limits of
// the process, the machine. Called by devices whose memory is the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tuff::os {

struct MemoryRoom {
  uint64_t free_bytes, limit_bytes;
  std::string limit;  // what is the narrowest: "memory.max of ...", "ulimit -v", "this machine"
};
// `root` stands before /proc and /sys, for tests.
MemoryRoom memory_room(const std::string& root = "");

// Zeroed pages whose promise the kernel can keep: OutOfMemory naming who asks, what is asked for,
// what is free and the limit. The kernel promises any number of pages, and kills the process that
// touches one too many. Limits are read for many bytes at once, or after many small requests.
void* map_pages_within_limits(size_t size_bytes, const char* who);
void unmap_pages_within_limits(void* p, size_t size_bytes) noexcept;
// The same for memory that a library takes: to be called before.
void require_memory_room(size_t size_bytes, const char* who);

}  // namespace tuff::os
