// What is done to a text before it is cut: steps of text to text. Called by pipelines. Must never
// know of vocabularies.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"
#include "text/unicode.h"

namespace tuff::text {

// Pure; any thread may call it.
using TextStep = std::function<std::string(std::string text)>;

TextStep normal_form(NormalForm form);
TextStep lowercase();
TextStep strip_marks();  // of a text that is decomposed
TextStep strip_spaces(bool left, bool right);
TextStep prepend(std::string prefix);  // to a text that is not empty
TextStep replace(std::string what, std::string by);
TextStep replace(Regex what, std::string by);
TextStep english_spacing();  // no space before a full stop, in "do n't": what WordPiece puts there
TextStep in_order(std::vector<TextStep> steps);

struct BertOptions {
  bool clean = true;       // control characters go, spaces become ' '
  bool ideographs = true;  // stand between spaces
  bool strip_accents = true, lowercase = true;
};
TextStep bert(BertOptions options);

// SentencePiece's treatment of spaces: they become "▁".
struct SpaceOptions {
  bool merge = false;   // runs become one, those at both ends go
  bool prefix = false;  // one before the text
  bool suffix = false;  // or behind it
};
TextStep sentence_piece_spaces(SpaceOptions options);

// SentencePiece's compiled table of replacements: the longest that the text goes on with is
// replaced, other characters stay. InvalidArgument for a table that is too short.
TextStep charsmap(std::string_view table);

inline constexpr std::string_view kVisibleSpace = "\xe2\x96\x81";  // U+2581

}  // namespace tuff::text
