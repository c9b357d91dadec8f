// The SHUFFLE device, the random-order device: the CPU's kernels in this process, in every order
// that barriers, waits and signals leave open, at random from a seed, interleaved by workgroup.
// A missing barrier shows as a wrong value, sooner or later. Memory is that of a discrete GPU, of
// SHUFFLE:visible that of an integrated one (docs/design/hazard-checker.md). Opened through the
// registry; never the default. The lower half is for tests. Must never know UOps, rules or who
// built the lists.
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
