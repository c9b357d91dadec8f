// Grammars that answers of language models are held to. Called by users and by whatever draws
// tokens. Must never know of tokens or models.
#pragma once

#include <memory>
#include <string_view>

namespace tuff {

namespace text::grammar {
struct Automaton;
class TokenFilter;
}  // namespace text::grammar

/// What an answer may be, character by character: a context-free grammar, or a JSON schema. It does
/// not change, copies share, and any thread may use it.
class Grammar {
 public:
  /// Any text.
  Grammar() = default;
  /// GBNF, the notation of llama.cpp: rules of texts, sets of characters, names, groups, choices and
  /// counts, like root ::= "text" [a-z0-9]* ( other | . )?; a text is what the rule root says. InvalidArgument naming the line for
  /// what is none, for a rule that is missing and for one that begins with itself.
  static Grammar parse(std::string_view text);
  /// JSON of a schema: types, properties (written in their order), required, additionalProperties,
  /// items, prefixItems, counts and lengths, enum, const, anyOf, oneOf, allOf, $ref within the
  /// schema, pattern, format, bounds of numbers. A text may have a space or a line's beginning
  /// between its parts. Where a schema allows more than it names, that is left out. `before` and
  /// `behind` stand around the JSON, as a format for calls wants them. InvalidArgument for what is no
  /// schema; Unsupported naming what tuff does not know.
  static Grammar from_json_schema(std::string_view schema, std::string_view before = {},
                                  std::string_view behind = {});
  /// Any JSON object.
  static Grammar json_object();
  bool defined() const { return automaton_ != nullptr; }
  /// Whether a text, all of it, is one of the grammar's.
  bool accepts(std::string_view text) const;

 private:
  friend class text::grammar::TokenFilter;
  std::shared_ptr<const text::grammar::Automaton> automaton_;
};

}  // namespace tuff
