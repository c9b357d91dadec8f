// DriverList: what encoded lists of drivers' queues have in common: the queue that they belong to,
// how often they may be submitted, and the last time that they were. Base of the lists of amd,
// cuda, opencl and vulkan, checked by their queues. Knows no native encoding.
#pragma once

#include <typeinfo>

#include "base/check.h"
#include "hcq/device.h"

namespace tuff::devices {

class DriverList : public hcq::EncodedList {
 public:
  DriverList(hcq::Queue& queue, hcq::EncodeUse use, const hcq::CommandList& list)
      : queue(queue),
        use(use),
        slot_count(list.slot_count),
        timestamp_count(list.timestamp_count) {}
  DriverList(const DriverList&) = delete;

  hcq::Queue& queue;
  const hcq::EncodeUse use;
  const uint32_t slot_count, timestamp_count;
  uint64_t last_value = 0;  // of its last submission
};

// `list` as what `queue` has encoded; InvalidArgument for another queue's.
template <class List>
List& own_list(const hcq::Queue& queue, hcq::EncodedList& list) {
  // In every replay: a dynamic_cast would walk through code and names that are cold by then.
  if (typeid(list) == typeid(List)) {
    auto& native = static_cast<List&>(list);
    if (&native.queue == &queue) return native;
  }
  fail<InvalidArgument>("{}: the list was encoded by another queue", queue.device().name());
}

inline void require_submittable(const DriverList& list, std::span<const uint64_t> slots) {
  if (slots.size() < list.slot_count)
    fail<InvalidArgument>("{}: submit with {} values; the list has {} slots",
                          list.queue.device().name(), slots.size(), list.slot_count);
  if (list.use == hcq::EncodeUse::Once && list.last_value > 0)
    fail<InvalidArgument>("{}: a list encoded for one use was submitted twice",
                          list.queue.device().name());
}

// Before its timestamps are read.
inline void require_submitted(const DriverList& list) {
  if (list.last_value == 0)
    fail<InvalidArgument>("{}: timestamps of a list that was never submitted",
                          list.queue.device().name());
}

}  // namespace tuff::devices
