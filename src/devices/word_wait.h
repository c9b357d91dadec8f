// A host thread's wait for a word of memory that a queue raises, without a call of a driver. Used
// by the signals of cuda and nv.
#pragma once

#include <cstdint>
#include <functional>

namespace tuff::devices {

// Until the word is at least `value`: at first without sleeping, then with longer and longer
// sleeps, between which `ask` may throw DeviceLost; it may be empty. False after the timeout.
bool wait_for_word(uint64_t& word, uint64_t value, uint64_t timeout_ns,
                   const std::function<void()>& ask);

}  // namespace tuff::devices
