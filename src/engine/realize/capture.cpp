#include "engine/realize/capture.h"

#include "base/check.h"

namespace tuff::engine {
namespace {

thread_local Capture* current_capture = nullptr;

}  // namespace

Capture::Capture() : bytes_(ir::last_storage_id()) {
  if (current_capture)
    fail<InvalidArgument>(
        "a Jit is called while another one captures: nested Jits are not supported");
  current_capture = this;
}
Capture::~Capture() { current_capture = nullptr; }
Capture* Capture::current() { return current_capture; }
void Capture::append(const BoundCall& call) {
  bytes_.add(call);
  calls_.push_back(call);
}

}  // namespace tuff::engine
