// A text that counts as read although nothing was computed of it: what a step costs behind it is the
// same. Called by what measures steps. Must never be part of an answer.
#pragma once

#include <tuff/language.h>

namespace tuff::language {

struct SequencePast {
  // The tokens stand behind those that were read; their keys and values stay what the cache has.
  static void skip(Sequence& sequence, std::span<const int32_t> tokens);
};

}  // namespace tuff::language
