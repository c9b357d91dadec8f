#include "hcq/left_behind.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/os_fork.h"

namespace tuff::hcq {
namespace {

struct Open {
  std::mutex mutex;
  std::vector<Device*> devices;
};
Open& open() {
  static Open& o = *std::make_unique<Open>().release();
  return o;
}

// Nobody holds the mutex in the child but who forks.
void before_fork() { open().mutex.lock(); }
void in_parent() { open().mutex.unlock(); }
void in_child() {
  for (Device* d : open().devices)
    d->close(fmt::format(
        "{}: it was opened before fork(), and drivers do not work in the child: fork before the "
        "first use of the device, or start processes anew (Python: multiprocessing's start method "
        "'spawn')",
        d->name()));
  open().devices.clear();
  open().mutex.unlock();
}

}  // namespace

void close_in_children(Device& device) {
  static const bool registered = os::at_fork(before_fork, in_parent, in_child);
  TUFF_CHECK(registered, "no memory for what fork() has to call");
  Open& o = open();
  std::lock_guard lock(o.mutex);
  o.devices.push_back(&device);
}

void stays_open(const Device& device) noexcept {
  Open& o = open();
  std::lock_guard lock(o.mutex);
  std::erase(o.devices, &device);
}

}  // namespace tuff::hcq
