// Scenes drawn at random: kernels and copies over shared memory on several queues and GPUs, cut
// into lists, with the barriers, waits and signals that their data flow asks for, run twice with
// other inputs. For mutation_test.
#pragma once

#include "devices/amd/mutation_bench.h"

namespace tuff::devices::amd {

// Whether all values were right.
bool run_random_scene(Bench& bench, QueueKind compute, uint32_t gpus, uint64_t seed);

}  // namespace tuff::devices::amd
