#include <mutex>
#include <vector>

#include "module.h"

namespace tuff::python {
namespace {

struct Waiting {
  std::mutex mutex;
  std::vector<std::function<void()>> list;
  bool announced = false, stopped = false;
};
// Leaked on purpose: memory is let go of until the process has ended.
Waiting& waiting() {
  static Waiting& w = *new Waiting;
  return w;
}

int on_pending_call(void*) {
  release_waiting();
  return 0;
}

}  // namespace

void release_later(std::function<void()> release) {
  Waiting& w = waiting();
  std::lock_guard lock(w.mutex);
  // What belongs to an interpreter that has ended is left as it is: so is its memory.
  w.list.push_back(std::move(release));
  if (w.stopped || w.announced) return;
  // Refused where too many calls are pending: the next tensor that is shared calls what waits.
  w.announced = Py_AddPendingCall(&on_pending_call, nullptr) == 0;
}

void release_waiting() {
  Waiting& w = waiting();
  std::vector<std::function<void()>> due;
  {
    std::lock_guard lock(w.mutex);
    w.announced = false;
    if (w.stopped) return;
    due.swap(w.list);
  }
  for (const std::function<void()>& release : due) release();
}

void stop_releasing() {
  std::lock_guard lock(waiting().mutex);
  waiting().stopped = true;
}

}  // namespace tuff::python
