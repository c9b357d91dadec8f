// Counters of everything the engine did: GlobalCounters, and where compile time went.
// Read by cli, tests and TUFF_DEBUG. Nothing here steers anything.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuff::engine {

struct GlobalCounters {
  std::atomic<uint64_t> kernels{0}, copies{0}, submits{0}, replays{0};
  std::atomic<uint64_t> flops{0}, bytes{0};
  // Copies between devices that the host made, or staged, and those that a device made by itself.
  std::atomic<uint64_t> host_copied_bytes{0}, peer_copied_bytes{0};
  // Host time of compiling, in ns: graph to LINEAR, to linear UOps, to source, to binary, to the
  // device.
  std::atomic<uint64_t> schedule_ns{0}, lower_ns{0}, render_ns{0}, compile_ns{0}, load_ns{0};
  std::atomic<uint64_t> kernels_compiled{0}, kernels_from_disk{0}, schedules_from_cache{0};
  std::atomic<uint64_t> kernels_searched{0};  // by TUFF_BEAM, and not found on disk
};
inline GlobalCounters& counters() {
  static GlobalCounters c;
  return c;
}

}  // namespace tuff::engine
