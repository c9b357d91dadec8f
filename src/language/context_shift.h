// What an answer that outgrows its context forgets (GenerateOptions::keep). Called by generate()
// and Batch. Must never know of keys and values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <tuff/language.h>

#include "base/check.h"

namespace tuff::language {

// InvalidArgument for a beginning that leaves nothing to forget.
inline void require_keep(const GenerateOptions& options, int64_t context) {
  if (options.keep < -1 || options.keep >= context)
    fail<InvalidArgument>("keep is {}: -1, or fewer tokens than the context of {} were wanted",
                          options.keep, context);
}
// Tokens that may follow a prompt.
inline int64_t room_behind(size_t prompt, const GenerateOptions& options, int64_t context) {
  return options.keep < 0 ? context - int64_t(prompt) : std::numeric_limits<int64_t>::max();
}
// So many of a full context at once that it happens seldom.
inline size_t forgotten(size_t tokens, size_t keep) {
  return std::max((tokens - keep) / 2, size_t(1));
}

}  // namespace tuff::language
