// Reading: contents of Buffers on their way out of files. One list of the queue of DISK fills the
// memory of one device and raises a signal that this device's queues wait for, so that no caller
// does. Called by buffer.cpp. Knows nothing of Buffers that are read into.
#pragma once

#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/outcome.h"

namespace tuff::engine {

struct Contents;

class Reading {
 public:
  struct Part {
    hcq::Span to;  // that the host reaches, and that stays until the list is over
    std::shared_ptr<const Contents> contents;
  };
  // `to` has a read_signal().
  Reading(Device& to, std::vector<Part> parts);
  // Nothing of it touches memory or signals any more.
  bool is_over() const;
  void wait() const;
  // Has the device's compute queue wait for it: from that value of its timeline on.
  uint64_t order();
  bool has_failed() const { return outcome_->has_failed(); }
  Origin origin() const { return Origin(outcome_, 1); }

 private:
  std::shared_ptr<Outcome> outcome_;  // right once the list has run to its end
  Device& to_;
  std::shared_ptr<Device> disk_;
  uint64_t value_ = 0, signal_value_ = 0;  // on the timelines of DISK and of the signal
};

}  // namespace tuff::engine
