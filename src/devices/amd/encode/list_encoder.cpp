#include "devices/amd/encode/list_encoder.h"

#include <algorithm>

#include "base/check.h"
#include "hcq/device.h"

namespace tuff::devices::amd {

ListEncoder::ListEncoder(const EncodeInput& input, const char* queue_kind)
    : in_(input), gen_(input.generation), kind_(queue_kind) {
  out_.slots.list_slots = input.list.slot_count;
  TUFF_CHECK(in_.completion.timeline != nullptr, "a list without a timeline");
}

void ListEncoder::unsupported(const char* what) const {
  fail<Unsupported>("{}: {} cannot {}", gen_.name, kind_, what);
}

Operand ListEncoder::word(const hcq::Signal* signal, uint32_t value_slot) {
  const SignalWord w{signal, value_slot};
  const auto found = std::ranges::find(out_.words, w);
  const uint32_t i = uint32_t(found - out_.words.begin());
  if (found == out_.words.end()) out_.words.push_back(w);
  return Operand::of_slot(out_.slots.word(i));
}

Operand ListEncoder::signal_word(const hcq::Signal* signal, uint32_t value_slot) {
  if (signal == nullptr || value_slot >= in_.list.slot_count) {
    fail<InvalidArgument>("{}: value slot {} in a list with {} slots", gen_.name, value_slot,
                          in_.list.slot_count);
  }
  return word(signal, value_slot);
}

Operand ListEncoder::completion_word() {
  return word(in_.completion.timeline, out_.slots.timeline());
}

uint64_t ListEncoder::signal_address(const hcq::Signal* signal) const {
  const uint64_t address = in_.binding.signal_address(*signal);
  TUFF_CHECK(address % 8 == 0, "signal at {:#x}", address);
  return address;
}

uint64_t ListEncoder::timestamp_address(uint32_t index) const {
  if (index >= in_.list.timestamp_count) {
    fail<InvalidArgument>("{}: timestamp {} in a list with {} timestamps", gen_.name, index,
                          in_.list.timestamp_count);
  }
  TUFF_CHECK(in_.timestamps % kTimestampStride == 0, "timestamps at {:#x}", in_.timestamps);
  return in_.timestamps + uint64_t(index) * kTimestampStride;
}

std::optional<KernelCode> ListEncoder::kernel_to_launch(const hcq::DispatchCmd& d) const {
  TUFF_CHECK(d.program != nullptr, "{}: dispatch without a program", gen_.name);
  for (size_t axis = 0; axis < 3; ++axis) {
    if (d.group_slots[axis] >= int64_t(in_.list.slot_count)) {
      fail<InvalidArgument>("{}: group slot {} in a list with {} slots", gen_.name,
                            d.group_slots[axis], in_.list.slot_count);
    }
    if (!d.indirect && groups_of(d, axis) == Operand(0)) return std::nullopt;
  }
  KernelCode k = in_.binding.kernel(*d.program);
  TUFF_CHECK(k.entry % 256 == 0, "{}: code at {:#x}", d.program->name(), k.entry);
  if (k.properties & kWave32 && !gen_.can_wave32) {
    fail<Unsupported>("{}: kernel \"{}\" is compiled for waves of 32", gen_.name,
                      d.program->name());
  }
  if (k.private_bytes > in_.scratch.size.bytes_per_lane) {
    fail<InvalidArgument>("{}: kernel \"{}\" needs {} bytes of scratch per work-item; there are {}",
                          gen_.name, d.program->name(), k.private_bytes,
                          in_.scratch.size.bytes_per_lane);
  }
  return k;
}

bool ListEncoder::copies(const hcq::CopyCmd& copy) {
  if (copy.dst.size_bytes != copy.src.size_bytes) {
    fail<InvalidArgument>("copy of {} bytes into {} bytes", copy.src.size_bytes,
                          copy.dst.size_bytes);
  }
  return copy.src.size_bytes > 0;
}

}  // namespace tuff::devices::amd
