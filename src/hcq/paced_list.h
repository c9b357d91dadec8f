// PacedList: a command list encoded for replay, as one submission or, where it is expected to run
// long, as several, so that none outlives a driver's watchdog (2 s on some kernels). Expectations
// are corrected by what the first replays took. Used by CommandGraph, one thread at a time. Must
// never know how a list was built.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hcq/device.h"
#include "hcq/order.h"

namespace tuff::hcq {

// Receives a submitted list and its timestamps, see add_timestamps().
using TimesSink = std::function<void(const CommandList&, std::span<const uint64_t>)>;

class PacedList {
 public:
  // The limit is the device's Target::max_submission_ns. With `every_time` each command has
  // timestamps, for report(); else long lists have two per submission, which are read after the
  // first replays.
  PacedList(Queue& queue, CommandList list, bool every_time);
  // Submits all parts; `value` rises to the timeline value of each. Allocates nothing, except that
  // a long list is cut and encoded anew, a few times at most, where expectations were wrong.
  void submit(std::span<const uint64_t> slots, uint64_t& value);
  // The times of the last submission, which has run, part by part.
  void report(const TimesSink& sink);
  uint32_t submissions() const { return static_cast<uint32_t>(parts_.size()); }

 private:
  struct Part {
    ListPart part;  // its list is kept where times are read
    std::unique_ptr<EncodedList> encoded;
  };
  std::vector<Part> encode();
  std::unique_ptr<EncodedList> encode(CommandList& list);
  void measure();
  uint64_t time_of(const Part& p) const;

  Queue& queue_;
  CommandList list_;  // kept where it may be cut again
  const bool every_time_;
  const uint64_t limit_ns_;
  std::vector<Part> parts_;
  uint64_t last_value_ = 0;
  uint32_t measurements_left_ = 0, cuts_left_ = 0;
};

}  // namespace tuff::hcq
