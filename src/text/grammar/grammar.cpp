#include <tuff/grammar.h>

#include "text/grammar/matcher.h"

namespace tuff {

using text::grammar::Matcher;
using text::grammar::Rules;

namespace {

auto automaton_of(const Rules& rules) {
  return std::make_shared<const text::grammar::Automaton>(text::grammar::build_automaton(rules));
}

}  // namespace

Grammar Grammar::parse(std::string_view text) {
  Grammar g;
  g.automaton_ = automaton_of(text::grammar::read_notation(text));
  return g;
}

Grammar Grammar::from_json_schema(std::string_view schema, std::string_view before,
                                  std::string_view behind) {
  using namespace text::grammar;
  Rules rules = read_json_schema(schema);
  rules.root = rules.add("text", sequence({literal(before), rule(rules.root), literal(behind)}));
  Grammar g;
  g.automaton_ = automaton_of(rules);
  return g;
}

Grammar Grammar::json_object() {
  Grammar g;
  g.automaton_ = automaton_of(text::grammar::json_object_rules());
  return g;
}

bool Grammar::accepts(std::string_view text) const {
  if (!defined()) return true;
  Matcher matcher(automaton_);
  Matcher::State at = matcher.start();
  for (size_t i = 0; i < text.size() && at != Matcher::kNone; i++) {
    matcher.renew_steps();
    at = matcher.next(at, uint8_t(text[i]));
  }
  return at != Matcher::kNone && matcher.accepts(at);
}

}  // namespace tuff
