#include "text/grammar/expression.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace tuff::text::grammar {

Expression characters(std::vector<CharacterRange> ranges) {
  return {.kind = Expression::Kind::Characters, .ranges = std::move(ranges)};
}

Expression all_but(std::vector<CharacterRange> ranges) {
  std::ranges::sort(ranges, {}, &CharacterRange::first);
  std::vector<CharacterRange> others;
  uint32_t next = 0;
  for (const CharacterRange& r : ranges) {
    if (r.first > next) others.push_back({next, r.first - 1});
    next = std::max(next, r.last + 1);
  }
  if (next <= kLastCharacter) others.push_back({next, kLastCharacter});
  return characters(std::move(others));
}

Expression literal(std::string_view text) {
  Expression all;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character c = first_character(rest);
    if (c.bytes == 0) fail<InvalidArgument>("a grammar's text '{:.40}' is no UTF-8", text);
    all.parts.push_back(characters({{c.code, c.code}}));
    rest.remove_prefix(c.bytes);
  }
  return all;
}

Expression sequence(std::vector<Expression> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  return {.kind = Expression::Kind::Sequence, .parts = std::move(parts)};
}

Expression choice(std::vector<Expression> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  return {.kind = Expression::Kind::Choice, .parts = std::move(parts)};
}

Expression repeated(Expression part, uint32_t least, uint32_t most) {
  Expression e{.kind = Expression::Kind::Repetition, .least = least, .most = most};
  e.parts.push_back(std::move(part));
  return e;
}

Expression optional(Expression part) { return repeated(std::move(part), 0, 1); }
Expression rule(size_t number) { return {.kind = Expression::Kind::Rule, .rule = number}; }

size_t Rules::add(std::string name, Expression body) {
  rows.push_back({std::move(name), std::move(body)});
  return rows.size() - 1;
}

}  // namespace tuff::text::grammar
