// ListEncoder: what the encoders share of walking a list: checks, signal words, and
// which ordering is still owed to the next command.
// Base of the encoders of this folder. Knows no packets.
#pragma once

#include <optional>

#include "devices/amd/encode/encode.h"

namespace tuff::devices::amd {

// What commands to come have to wait for, and see. Paid in front of the next work, so that several
// waits and barriers in a row cost one flush.
struct Owed {
  bool idle = false;    // earlier work of this queue has to have ended
  bool device = false;  // caches that are not shared by this GPU's own work are stale
  bool system = false;  // so is what others wrote: the host, other engines, other GPUs
};

class ListEncoder {
 protected:
  ListEncoder(const EncodeInput& input, const char* queue_kind);

  // A packet's word for `signal` = slots[value_slot].
  Operand signal_word(const hcq::Signal* signal, uint32_t value_slot);
  Operand completion_word();
  uint64_t signal_address(const hcq::Signal* signal) const;
  uint64_t timestamp_address(uint32_t index) const;
  // The kernel, with what the launch needs checked; null: nothing is launched.
  std::optional<KernelCode> kernel_to_launch(const hcq::DispatchCmd& dispatch) const;
  // Whether there is anything to copy; checks the sizes.
  static bool copies(const hcq::CopyCmd& copy);
  [[noreturn]] void unsupported(const char* what) const;

  const EncodeInput& in_;
  const Generation& gen_;
  Encoded out_;
  Owed owed_{true, true, true};  // a list knows nothing of those before it

 private:
  Operand word(const hcq::Signal* signal, uint32_t value_slot);
  const char* kind_;
};

}  // namespace tuff::devices::amd
