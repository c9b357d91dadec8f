// How a normalized text is cut into pieces, each of which a model encodes by itself: steps of
// pieces to pieces. Called by pipelines. Must never know of vocabularies.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace tuff::text {

struct Pieces {
  std::vector<std::string> items;
  bool begins_text = true;  // whether nothing stands before the first one
};

// Pure; any thread may call it.
using PieceStep = std::function<Pieces(Pieces pieces)>;

// What becomes of the matches among which a text is cut.
enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

// Cuts at matches; `inverted`: at what lies between them.
PieceStep split(Regex pattern, SplitBehavior behavior, bool inverted = false);
// At characters of a class.
PieceStep split(bool (*of_class)(uint32_t code), SplitBehavior behavior);
PieceStep digits(bool individual);
PieceStep bert_words();    // by spaces, which go, and punctuation
PieceStep space_before();  // each piece that begins with none
PieceStep byte_level();    // GPT-2's characters of bytes

struct MetaspaceOptions {
  std::string replacement = "\xe2\x96\x81";
  enum class Prefix { Always, First, Never } prefix = Prefix::Always;
  bool split = true;
};
PieceStep metaspace(MetaspaceOptions options);
PieceStep in_order(std::vector<PieceStep> steps);

}  // namespace tuff::text
