// What patches read at one submission: the list's slots as they are, and signals' values as 32-bit
// words relative to their bases. Called by the queues of devices/amd for every submission, so
// nothing is allocated. Knows no packets.
#pragma once

#include <span>

#include "devices/amd/encode/encode.h"
#include "devices/amd/encode/signal_epoch.h"

namespace tuff::devices::amd {

struct SubmissionValues {
  std::span<const uint64_t> slots;  // of the list
  uint64_t timeline = 0;            // what this submission raises the queue's timeline to
  uint64_t ib_address = 0;
};

// epochs[i] belongs to encoded.words[i].signal. Null: all values have words. Else the first signal
// that has to be rebased before this submission can be.
const SignalEpoch* needs_rebase(const Encoded& encoded, const SubmissionValues& given,
                                std::span<const SignalEpoch* const> epochs);
// `out` has encoded.value_count() places.
void fill_values(const Encoded& encoded, const SubmissionValues& given,
                 std::span<const SignalEpoch* const> epochs, std::span<uint64_t> out);

}  // namespace tuff::devices::amd
