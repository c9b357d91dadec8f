// How far texts go with a grammar, byte by byte: a pushdown automaton whose sets of stacks become
// numbered states as they are met. Called by the token filter. Must never know of tokens.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "text/grammar/automaton.h"

namespace tuff::text::grammar {

class Matcher {
 public:
  using State = int32_t;
  static constexpr State kNone = -1;  // no text of the grammar begins so

  explicit Matcher(std::shared_ptr<const Automaton> automaton);
  State start() const { return start_; }
  State next(State state, uint8_t byte) {
    const State known = next_[place(state, byte)];
    return known == kUnknown ? find_next(state, byte) : known;
  }
  bool accepts(State state) const { return states_[size_t(state)].accepts; }
  // Whether any byte may follow.
  bool goes_on(State state) const { return !states_[size_t(state)].places.empty(); }
  size_t size() const { return states_.size(); }
  // Allows another kMostSteps of what finding states takes; Unsupported where they are used up: a
  // grammar may be a stranger's, and others wait.
  void renew_steps() { steps_ = 0; }
  // The same state where all others are forgotten: its number has changed.
  State forget_others(State state);

 private:
  static constexpr State kUnknown = -2;
  using Stack = uint32_t;  // its number; 0 is empty
  // A node that reads bytes, and what returns behind it.
  using Place = std::pair<uint32_t, Stack>;
  struct Row {
    std::vector<Place> places;
    bool accepts = false;
  };

  size_t place(State state, uint8_t byte) const {
    return size_t(state) * automaton_->classes + automaton_->class_of[byte];
  }
  State find_next(State state, uint8_t byte);
  State state_of(std::vector<Place> open);
  Stack pushed(uint32_t node, Stack below);
  Stack copied(Stack stack, const std::vector<Place>& stacks);

  std::shared_ptr<const Automaton> automaton_;
  std::vector<Place> stacks_;  // by number: where its top returns to, and what lies below
  std::map<Place, Stack> stack_numbers_;
  std::vector<Row> states_;
  std::map<std::pair<std::vector<Place>, bool>, State> state_numbers_;
  std::vector<State> next_;  // by state and class of bytes
  size_t steps_ = 0;
  State start_;
};

}  // namespace tuff::text::grammar
