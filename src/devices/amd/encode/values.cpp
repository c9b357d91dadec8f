#include "devices/amd/encode/values.h"

#include <algorithm>


namespace tuff::devices::amd {
namespace {

inline uint64_t logical_value(const SlotLayout& layout, const SignalWord& word,
                              const SubmissionValues& given) {
  return word.value_slot == layout.timeline() ? given.timeline : given.slots[word.value_slot];
}

}  // namespace

const SignalEpoch* needs_rebase(const Encoded& encoded, const SubmissionValues& given,
                                std::span<const SignalEpoch* const> epochs) {
  for (size_t i = 0; i < encoded.words.size(); ++i) {
    if (epochs[i]->must_rebase(logical_value(encoded.slots, encoded.words[i], given)))
      return epochs[i];
  }
  return nullptr;
}

void fill_values(const Encoded& encoded, const SubmissionValues& given,
                 std::span<const SignalEpoch* const> epochs, std::span<uint64_t> out) {
  std::copy(given.slots.begin(), given.slots.end(), out.begin());
  out[encoded.slots.timeline()] = given.timeline;
  out[encoded.slots.ib_address()] = given.ib_address;
  for (size_t i = 0; i < encoded.words.size(); ++i) {
    out[encoded.slots.word(uint32_t(i))] =
        epochs[i]->word(logical_value(encoded.slots, encoded.words[i], given));
  }
}

}  // namespace tuff::devices::amd
