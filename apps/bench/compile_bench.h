// What `tuff bench compile` measures: where the host's time goes until a training step is captured,
// with nothing cached and with what a process before has left on disk. Each is a process of its
// own, since caches live as long as a process. Called by bench_command. Must never parse or print.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace tuff::bench {

struct CompileOptions {
  std::string model, device;
  uint32_t slowest = 10;  // kernels that are listed
};

// In this process, which must not have compiled anything yet: milliseconds per stage, pass of
// `kernel` and slowest kernels.
Json measure_compile(const CompileOptions& options);
// Two processes, one after the other: the first finds an empty cache folder, the second what that
// one left (drivers' shader caches included). Throws Error with what a process said.
std::vector<Json> measure_compile_cold_and_warm(const CompileOptions& options);

}  // namespace tuff::bench
