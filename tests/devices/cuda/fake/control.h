// What tests may ask of the library and tell it, beside the driver's functions. Found by name
// (dlsym): a test does not link against it.
#pragma once

#include <cstdint>

namespace tuff::devices::cuda {

// As a process that has just begun: for when all devices are closed, also those that were given up
// and left something behind.
using FakeCudaReset = void();  // "fake_cuda_reset"
// As FAKE_CUDA. What was counted begins at 0.
using FakeCudaOptions = void(const char* text);  // "fake_cuda_options"
// Calls of a function, or of all if the name is empty.
using FakeCudaCalls = uint64_t(const char* name);  // "fake_cuda_calls"
// Allocations, streams, events, modules and graphs that are there.
using FakeCudaHeld = uint64_t();  // "fake_cuda_held"

}  // namespace tuff::devices::cuda
