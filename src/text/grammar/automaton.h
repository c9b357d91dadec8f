// A grammar as an automaton over the bytes of UTF-8: nodes that read a byte, fork, and call rules.
// Called by the matcher. Must never know of tokens.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/grammar/expression.h"

namespace tuff::text::grammar {

struct AutomatonNode {
  enum class Kind : uint8_t { Bytes, Fork, Call, Return };
  Kind kind = Kind::Return;
  uint8_t first = 0, last = 0;  // Bytes: which it reads
  uint32_t next = 0;            // where it goes on; Call: after the rule has returned
  uint32_t other = 0;           // Fork: or there; Call: where the rule begins
};

struct Automaton {
  std::vector<AutomatonNode> nodes;
  uint32_t start = 0;
  std::array<uint8_t, 256> class_of;  // bytes of one class are read by the same nodes
  uint32_t classes = 0;
};

// InvalidArgument for rules that begin with themselves, and for too many nodes.
Automaton build_automaton(const Rules& rules);

}  // namespace tuff::text::grammar
