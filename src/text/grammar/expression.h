// What a text may be, as expressions over characters that name rules: what grammars, JSON schemas
// and patterns are read into. Called by their readers and the automaton. Must never know of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::text::grammar {

inline constexpr uint32_t kUnbounded = ~uint32_t{0};
inline constexpr uint32_t kLastCharacter = 0x10ffff;
inline constexpr int kMaxDepth = 200;  // of expressions in expressions, as they are written
// Of a text, and expressions of a schema, each of which takes a node at least: a stranger's grammar
// fills no memory before it is found to be too large.
inline constexpr size_t kMaxSize = size_t{1} << 20;

struct CharacterRange {
  uint32_t first, last;
};

struct Expression {
  enum class Kind { Characters, Sequence, Choice, Repetition, Rule };
  Kind kind = Kind::Sequence;  // an empty one: the empty text
  std::vector<CharacterRange> ranges = {};  // Characters: one of them
  std::vector<Expression> parts = {};       // one alone in a Repetition
  uint32_t least = 0, most = 0;             // Repetition
  size_t rule = 0;                          // Rule: its number
};

Expression characters(std::vector<CharacterRange> ranges);
Expression all_but(std::vector<CharacterRange> ranges);
// UTF-8; InvalidArgument for anything else.
Expression literal(std::string_view text);
Expression sequence(std::vector<Expression> parts);
Expression choice(std::vector<Expression> parts);
Expression repeated(Expression part, uint32_t least, uint32_t most = kUnbounded);
Expression optional(Expression part);
Expression rule(size_t number);

struct Rules {
  struct Row {
    std::string name;
    Expression body;
  };
  std::vector<Row> rows;
  size_t root = 0;

  size_t add(std::string name, Expression body = {});
};

// GBNF, the notation of llama.cpp's grammars. InvalidArgument naming line and reason.
Rules read_notation(std::string_view text);
// A JSON schema, as texts of JSON with little white space. InvalidArgument for what is none;
// Unsupported naming a keyword that tuff does not know.
Rules read_json_schema(std::string_view schema);
// Any object of JSON.
Rules json_object_rules();

}  // namespace tuff::text::grammar
