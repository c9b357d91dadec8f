#include "tensor/guards.h"

#include "base/check.h"

namespace tuff::detail {
namespace {

std::mutex replacing, realizing;
thread_local bool realizes_here = false;

}  // namespace

void BuildGuard::enter_when_replaced() {
  do {
    leave();
    uint32_t now = 0;
    while (((now = state_.load(std::memory_order_acquire)) & kReplacing) != 0)
      state_.wait(now, std::memory_order_acquire);
  } while ((state_.fetch_add(1, std::memory_order_acquire) & kReplacing) != 0);
}

ReplaceGuard::ReplaceGuard() {
  TUFF_CHECK(!BuildGuard::here(), "a thread that builds cannot replace nodes");
  replacing.lock();
  uint32_t now = BuildGuard::state_.fetch_or(BuildGuard::kReplacing, std::memory_order_acquire);
  while ((now = BuildGuard::state_.load(std::memory_order_acquire)) != BuildGuard::kReplacing)
    BuildGuard::state_.wait(now, std::memory_order_acquire);
  BuildGuard::depth_ = 1;
}
ReplaceGuard::~ReplaceGuard() {
  BuildGuard::depth_ = 0;
  BuildGuard::state_.fetch_and(~BuildGuard::kReplacing, std::memory_order_release);
  BuildGuard::state_.notify_all();
  replacing.unlock();
}

RealizeGuard::RealizeGuard() {
  TUFF_CHECK(!BuildGuard::here() && !realizes_here, "realize within realize");
  realizing.lock();
  realizes_here = true;
}
RealizeGuard::~RealizeGuard() {
  realizes_here = false;
  realizing.unlock();
}

}  // namespace tuff::detail
