#include "text/pre_tokenizer.h"

#include "text/unicode.h"
#include "text/vocabulary.h"

namespace tuff::text {
namespace {

struct Part {
  size_t begin, end;
  bool matched;
};

// All of the text, in order: matches and what lies between them.
template <class EachMatch>
std::vector<Part> parts_of(std::string_view text, EachMatch&& each_match) {
  std::vector<Part> parts;
  size_t at = 0;
  each_match([&](size_t begin, size_t end) {
    if (begin > at) parts.push_back({at, begin, false});
    if (end > begin) parts.push_back({begin, end, true});
    at = end;
  });
  if (at < text.size()) parts.push_back({at, text.size(), false});
  return parts;
}

// Which parts become one: parts of `from` on top of the last of `to`.
bool joins(const Part& before, const Part& part, SplitBehavior behavior, bool& before_matched) {
  const bool was = before_matched;
  before_matched = part.matched;
  switch (behavior) {
    case SplitBehavior::Removed:
    case SplitBehavior::Isolated: return false;
    case SplitBehavior::MergedWithPrevious: return part.matched && !was;
    case SplitBehavior::MergedWithNext: return was && !part.matched;
    case SplitBehavior::Contiguous: return before.matched == part.matched;
  }
  return false;
}

std::vector<Part> arranged(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> out;
  bool before_matched = false;
  for (const Part& part : parts) {
    if (behavior == SplitBehavior::Removed && part.matched) continue;
    if (!out.empty() && joins(out.back(), part, behavior, before_matched)) {
      out.back().end = part.end;
    } else {
      before_matched = part.matched;
      out.push_back(part);
    }
  }
  return out;
}

template <class EachMatch>
Pieces cut(const Pieces& pieces, SplitBehavior behavior, bool inverted, EachMatch&& each_match) {
  Pieces out{{}, pieces.begins_text};
  for (const std::string& piece : pieces.items) {
    std::vector<Part> parts = parts_of(piece, [&](auto&& found) { each_match(piece, found); });
    for (Part& p : parts) p.matched ^= inverted;
    for (const Part& p : arranged(parts, behavior))
      out.items.push_back(piece.substr(p.begin, p.end - p.begin));
  }
  return out;
}

}  // namespace

PieceStep split(Regex pattern, SplitBehavior behavior, bool inverted) {
  return [pattern = std::move(pattern), behavior, inverted](const Pieces& pieces) {
    return cut(pieces, behavior, inverted,
               [&](std::string_view text, auto&& found) { pattern.each_match(text, found); });
  };
}

PieceStep split(bool (*of_class)(uint32_t code), SplitBehavior behavior) {
  return [of_class, behavior](const Pieces& pieces) {
    return cut(pieces, behavior, false, [&](std::string_view text, auto&& found) {
      for (size_t at = 0; at < text.size();) {
        const Utf8Character c = next_character(text.substr(at));
        if (of_class(c.code)) found(at, at + c.bytes);
        at += c.bytes;
      }
    });
  };
}

PieceStep digits(bool individual) {
  return split(is_numeric, individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous);
}

PieceStep bert_words() {
  return in_order(std::vector<PieceStep>{split(is_space, SplitBehavior::Removed),
                                         split(is_punctuation, SplitBehavior::Isolated)});
}

PieceStep space_before() {
  return [](Pieces pieces) {
    for (std::string& piece : pieces.items)
      if (!piece.starts_with(' ')) piece.insert(0, 1, ' ');
    return pieces;
  };
}

PieceStep byte_level() {
  return [](Pieces pieces) {
    for (std::string& piece : pieces.items) piece = byte_characters(piece);
    return pieces;
  };
}

PieceStep metaspace(MetaspaceOptions options) {
  return [options = std::move(options)](const Pieces& pieces) {
    Pieces out{{}, pieces.begins_text};
    for (size_t i = 0; i < pieces.items.size(); i++) {
      std::string text;
      for (const char c : pieces.items[i]) c == ' ' ? text += options.replacement : text += c;
      const bool first = pieces.begins_text && i == 0;
      using Prefix = MetaspaceOptions::Prefix;
      if ((options.prefix == Prefix::Always || (options.prefix == Prefix::First && first)) &&
          !text.starts_with(options.replacement))
        text.insert(0, options.replacement);
      size_t begin = 0;
      for (size_t at; options.split &&
                      (at = text.find(options.replacement, begin + 1)) != std::string::npos;) {
        out.items.push_back(text.substr(begin, at - begin));
        begin = at;
      }
      if (begin < text.size()) out.items.push_back(text.substr(begin));
    }
    return out;
  };
}

PieceStep in_order(std::vector<PieceStep> steps) {
  return [steps = std::move(steps)](Pieces pieces) {
    for (const PieceStep& step : steps) pieces = step(std::move(pieces));
    return pieces;
  };
}

}  // namespace tuff::text
