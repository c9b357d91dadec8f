#include "tensor/building.h"

#include "base/check.h"

namespace tuff::detail {
namespace {

std::mutex replacing, realizing;
thread_local bool realizes_here = false;

}  // namespace

void Building::enter_when_replaced() {
  do {
    leave();
    uint32_t now = 0;
    while (((now = state_.load(std::memory_order_acquire)) & kReplacing) != 0)
      state_.wait(now, std::memory_order_acquire);
  } while ((state_.fetch_add(1, std::memory_order_acquire) & kReplacing) != 0);
}

Replacing::Replacing() {
  TUFF_CHECK(!Building::here(), "a thread that builds cannot replace nodes");
  replacing.lock();
  uint32_t now = Building::state_.fetch_or(Building::kReplacing, std::memory_order_acquire);
  while ((now = Building::state_.load(std::memory_order_acquire)) != Building::kReplacing)
    Building::state_.wait(now, std::memory_order_acquire);
  Building::depth_ = 1;
}
Replacing::~Replacing() {
  Building::depth_ = 0;
  Building::state_.fetch_and(~Building::kReplacing, std::memory_order_release);
  Building::state_.notify_all();
  replacing.unlock();
}

Realizing::Realizing() {
  TUFF_CHECK(!Building::here() && !realizes_here, "realize within realize");
  realizing.lock();
  realizes_here = true;
}
Realizing::~Realizing() {
  realizes_here = false;
  realizing.unlock();
}

}  // namespace tuff::detail
