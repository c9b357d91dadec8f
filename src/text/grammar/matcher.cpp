#include "text/grammar/matcher.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace tuff::text::grammar {
namespace {

constexpr size_t kMaxPlaces = 4096;  // of one state
constexpr size_t kMostSteps = size_t{1} << 20;

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)), stacks_(1), start_(state_of({{automaton_->start, 0}})) {}

Matcher::Stack Matcher::pushed(uint32_t node, Stack below) {
  // What returns at once needs no place to return to: lists that end in themselves stay flat.
  if (automaton_->nodes[node].kind == AutomatonNode::Kind::Return) return below;
  const auto [row, added] = stack_numbers_.try_emplace({node, below}, Stack(stacks_.size()));
  if (added) stacks_.emplace_back(node, below);
  return row->second;
}

// What `open` comes to before it reads a byte.
Matcher::State Matcher::state_of(std::vector<Place> open) {
  std::set<Place> seen(open.begin(), open.end());
  Row row;
  const auto visit = [&](uint32_t node, Stack stack) {
    if (seen.insert({node, stack}).second) open.emplace_back(node, stack);
  };
  while (!open.empty()) {
    const auto [at, stack] = open.back();
    open.pop_back();
    const AutomatonNode& node = automaton_->nodes[at];
    switch (node.kind) {
      case AutomatonNode::Kind::Bytes: row.places.emplace_back(at, stack); break;
      case AutomatonNode::Kind::Fork: visit(node.next, stack), visit(node.other, stack); break;
      case AutomatonNode::Kind::Call: visit(node.other, pushed(node.next, stack)); break;
      case AutomatonNode::Kind::Return:
        if (stack == 0) {
          row.accepts = true;
        } else {
          const Place top = stacks_[stack];
          visit(top.first, top.second);
        }
        break;
    }
    if (seen.size() > kMaxPlaces)
      fail<Unsupported>("the grammar reads a text in more than {} ways at once", kMaxPlaces);
  }
  if (steps_ += seen.size(); steps_ > kMostSteps)
    fail<Unsupported>("the grammar is too ambiguous: looking for a token takes more than {} steps",
                      kMostSteps);
  std::ranges::sort(row.places);
  const auto [known, added] =
      state_numbers_.try_emplace({row.places, row.accepts}, State(states_.size()));
  if (added) {
    states_.push_back(std::move(row));
    next_.resize(states_.size() * automaton_->classes, kUnknown);
  }
  return known->second;
}

Matcher::State Matcher::find_next(State state, uint8_t byte) {
  std::vector<Place> open;
  for (const auto& [at, stack] : states_[size_t(state)].places) {
    const AutomatonNode& node = automaton_->nodes[at];
    if (node.first <= byte && byte <= node.last) open.emplace_back(node.next, stack);
  }
  const State to = open.empty() ? kNone : state_of(std::move(open));
  next_[place(state, byte)] = to;
  return to;
}

Matcher::Stack Matcher::copied(Stack stack, const std::vector<Place>& stacks) {
  std::vector<uint32_t> returns;
  for (; stack != 0; stack = stacks[stack].second) returns.push_back(stacks[stack].first);
  Stack copy = 0;
  for (auto node = returns.rbegin(); node != returns.rend(); ++node) copy = pushed(*node, copy);
  return copy;
}

Matcher::State Matcher::forget_others(State state) {
  const Row row = std::move(states_[size_t(state)]);
  const std::vector<Place> stacks = std::exchange(stacks_, std::vector<Place>(1));
  stack_numbers_.clear(), states_.clear(), state_numbers_.clear(), next_.clear();
  std::vector<Place> open;
  for (const auto& [at, stack] : row.places) open.emplace_back(at, copied(stack, stacks));
  // An end that was reached already: it returns with nothing below.
  if (row.accepts) open.emplace_back(0, 0);
  return state_of(std::move(open));
}

}  // namespace tuff::text::grammar
