// The SHUFFLE device: the random-order device. Kernels are the CPU's and run in this process, but
// in every order that barriers, waits and signals leave open, chosen at random from a seed and
// interleaved by workgroup. Software drivers run everything in order; here a missing barrier shows
// as a wrong value, sooner or later.
// - Nothing runs at submit. The machine steps while the host waits for a signal or polls one.
// - Device and argument memory has no host pointer, as on a discrete GPU: what the host uploads and
//   the arguments of a replay then come by commands, which are up to order as kernels are. On
//   SHUFFLE:visible all memory has one, as on an integrated GPU: there the host's own writes show.
// - Launch sizes of replays come from slots, on SHUFFLE:visible from memory.
// - New, freed and unmapped memory is spoilt (all bits set: NaN, -1), so that who comes late or too
//   early does not find what would have been right.
// Opened through the registry; never the default. The lower half is for tests. Must never know
// UOps, rules or who built the lists.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

// Both; not usable, with the remedy, where no C compiler is found.
std::vector<Candidate> shuffle_probe();
// selector: "" or "0", or "visible". The seed is TUFF_SHUFFLE_SEED.
std::unique_ptr<hcq::Device> shuffle_open(const std::string& selector);

// --- for tests ---

struct ShuffleOptions {
  std::optional<uint64_t> seed;      // else TUFF_SHUFFLE_SEED
  bool host_visible = false;         // SHUFFLE:visible
  bool polls_run = true;             // false: Signal::value() only tells; loops over it do not end
  uint64_t submit_cost_ns = 10'000;  // of the host, by the nominal clock: patching and submitting
};
std::unique_ptr<hcq::Device> shuffle_open(const ShuffleOptions& options);

// Times are nominal and by one clock: a workgroup costs 1 us, 1 KiB of a copy 100 ns, a submission
// what the options say; the device starts with what is there, one step after the other, and the
// host goes on when what it waits for is reached.
struct ShuffleStats {
  uint64_t submissions = 0, commands = 0;  // begun
  uint64_t steps = 0;                      // workgroups, pieces of copies, signals, timestamps
  uint64_t host_ns = 0, device_ns = 0;     // where each of them is
  uint64_t busy_ns = 0;                    // of the device
  uint64_t idle_ns = 0;                    // of the device between its first step and its last
};
// Both throw InvalidArgument for a device of another kind.
ShuffleStats shuffle_stats(const hcq::Device& device);
void shuffle_reseed(hcq::Device& device, uint64_t seed);  // the order from here on

}  // namespace tuff::devices
