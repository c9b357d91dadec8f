#include "text/json_parts.h"

#include "text/base64.h"
#include "text/vocabulary.h"

namespace tuff::text {
namespace {

constexpr int kMaxDepth = 10;

// What \w is to Oniguruma, by which the package tokenizers matches; PCRE2 leaves marks out.
constexpr std::string_view kWord = "\\p{L}\\p{M}\\p{N}\\p{Pc}";

std::string with_word_classes(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); i++) {
    const char c = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : 0;
    if (c == '\\' && (next == 'w' || (next == 'W' && !in_class))) {
      const bool bare = in_class;
      if (!bare) out += next == 'w' ? "[" : "[^";
      out += kWord;
      if (!bare) out += ']';
      i++;
    } else if (c == '\\' && next) {
      out += c;
      out += next;
      i++;
    } else {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
    }
  }
  return out;
}

struct TextRow {
  std::string_view type;
  TextStep (*make)(const Json& json, int depth);
};
struct PieceRow {
  std::string_view type;
  PieceStep (*make)(const Json& json, int depth);
};

// {"String": "a"} is the text as it stands, {"Regex": "a+"} an expression.
struct Pattern {
  std::string text;
  bool regex = false;
};
Pattern pattern_in(const Json& json) {
  const Json& pattern = json_part(json, "pattern");
  const bool regex = pattern.is_object() && pattern.contains("Regex");
  return {text_in(pattern, regex ? "Regex" : "String"), regex};
}
Regex regex_of(const Pattern& pattern) {
  return Regex(pattern.regex ? with_word_classes(pattern.text) : "\\Q" + pattern.text + "\\E");
}

TextStep replace_step(const Json& json, int) {
  const Pattern pattern = pattern_in(json);
  const std::string by = text_in(json, "content");
  return pattern.regex ? replace(regex_of(pattern), by) : replace(pattern.text, by);
}
TextStep bert_step(const Json& json, int) {
  BertOptions options;
  options.clean = flag_in(json, "clean_text", true);
  options.ideographs = flag_in(json, "handle_chinese_chars", true);
  options.lowercase = flag_in(json, "lowercase", true);
  options.strip_accents = flag_in(json, "strip_accents", options.lowercase);
  return bert(options);
}
TextStep normalizers(const Json& json, int depth) {
  require_depth(depth);
  std::vector<TextStep> steps;
  for (const Json& n : json_part(json, "normalizers"))
    if (TextStep step = normalizer(n, depth + 1)) steps.push_back(std::move(step));
  return in_order(std::move(steps));
}

constexpr TextRow kNormalizers[] = {
    {"BertNormalizer", bert_step},
    {"ByteLevel",
     [](const Json&, int) -> TextStep {
       return [](const std::string& text) { return byte_characters(text); };
     }},
    {"Lowercase", [](const Json&, int) { return lowercase(); }},
    {"NFC", [](const Json&, int) { return normal_form(NormalForm::NFC); }},
    {"NFD", [](const Json&, int) { return normal_form(NormalForm::NFD); }},
    {"NFKC", [](const Json&, int) { return normal_form(NormalForm::NFKC); }},
    {"NFKD", [](const Json&, int) { return normal_form(NormalForm::NFKD); }},
    {"Precompiled",
     [](const Json& j, int) { return charsmap(from_base64(text_in(j, "precompiled_charsmap"))); }},
    {"Prepend", [](const Json& j, int) { return prepend(text_in(j, "prepend")); }},
    {"Replace", replace_step},
    {"Sequence", normalizers},
    {"Strip",
     [](const Json& j, int) {
       return strip_spaces(flag_in(j, "strip_left", true), flag_in(j, "strip_right", true));
     }},
    {"StripAccents", [](const Json&, int) { return strip_marks(); }}};

SplitBehavior behavior_in(const Json& json) {
  struct Row {
    std::string_view type;
    SplitBehavior behavior;
  };
  constexpr Row kRows[] = {{"Removed", SplitBehavior::Removed},
                           {"Isolated", SplitBehavior::Isolated},
                           {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
                           {"MergedWithNext", SplitBehavior::MergedWithNext},
                           {"Contiguous", SplitBehavior::Contiguous}};
  return known_row("behavior", text_in(json, "behavior"), kRows).behavior;
}

PieceStep byte_level_step(const Json& json, int) {
  // GPT-2's own.
  constexpr const char* kWords =
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
  std::vector<PieceStep> steps;
  if (flag_in(json, "add_prefix_space", true)) steps.push_back(space_before());
  if (flag_in(json, "use_regex", true))
    steps.push_back(split(Regex(kWords), SplitBehavior::Isolated));
  steps.push_back(byte_level());
  return in_order(std::move(steps));
}
PieceStep split_step(const Json& json, int) {
  return split(regex_of(pattern_in(json)), behavior_in(json), flag_in(json, "invert", false));
}
MetaspaceOptions metaspace_options(const Json& json) {
  struct Row {
    std::string_view type;
    MetaspaceOptions::Prefix prefix;
  };
  constexpr Row kRows[] = {{"always", MetaspaceOptions::Prefix::Always},
                           {"first", MetaspaceOptions::Prefix::First},
                           {"never", MetaspaceOptions::Prefix::Never}};
  MetaspaceOptions options;
  options.replacement = text_in(json, "replacement", options.replacement);
  const bool prefix = flag_in(json, "add_prefix_space", true);  // of older files
  options.prefix = known_row("prepend_scheme",
                             text_in(json, "prepend_scheme", prefix ? "always" : "never"), kRows)
                       .prefix;
  options.split = flag_in(json, "split", true);
  if (options.replacement.empty())
    fail<InvalidArgument>("tokenizer.json: Metaspace has an empty \"replacement\"");
  return options;
}
PieceStep pre_tokenizers(const Json& json, int depth) {
  require_depth(depth);
  std::vector<PieceStep> steps;
  for (const Json& p : json_part(json, "pretokenizers"))
    if (PieceStep step = pre_tokenizer(p, depth + 1)) steps.push_back(std::move(step));
  return in_order(std::move(steps));
}

constexpr PieceRow kPreTokenizers[] = {
    {"BertPreTokenizer", [](const Json&, int) { return bert_words(); }},
    {"ByteLevel", byte_level_step},
    {"Digits", [](const Json& j, int) { return digits(flag_in(j, "individual_digits", false)); }},
    {"Metaspace", [](const Json& j, int) { return metaspace(metaspace_options(j)); }},
    {"Punctuation", [](const Json& j, int) { return split(is_punctuation, behavior_in(j)); }},
    {"Sequence", pre_tokenizers},
    {"Split", split_step},
    {"Whitespace",
     [](const Json&, int) {
       // Letters as Rust's regex counts them.
       const std::string word = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}";
       return split(Regex("[" + word + "]+|[^" + word + "\\s]+"), SplitBehavior::Removed, true);
     }},
    {"WhitespaceSplit", [](const Json&, int) { return split(is_space, SplitBehavior::Removed); }}};

struct DecoderRow {
  std::string_view type;
  void (*add)(const Json& json, Decoder& out, int depth);
};

void add_decoder(const Json& json, Decoder& out, int depth);

void add_decoders(const Json& json, Decoder& out, int depth) {
  require_depth(depth);
  for (const Json& d : json_part(json, "decoders")) add_decoder(d, out, depth + 1);
}
void add_byte_fallback(const Json&, Decoder& out, int) {
  out.steps.push_back([](const std::string& token) {
    const auto byte = byte_of_token(token);
    return byte ? std::string(1, char(*byte)) : token;
  });
}
void add_strip(const Json& json, Decoder& out, int) {
  const int64_t start = number_in(json, "start", 0);
  if (number_in(json, "stop", 0) != 0 || start < 0 || start > 8)
    fail<Unsupported>("tokenizer.json: the decoder Strip with \"stop\", or \"start\" beyond 8");
  for (int64_t i = 0; i < start; i++) out.dropped_start += text_in(json, "content");
}
void add_metaspace(const Json& json, Decoder& out, int) {
  const MetaspaceOptions options = metaspace_options(json);
  out.steps.push_back(replace(options.replacement, " "));
  if (options.prefix != MetaspaceOptions::Prefix::Never) out.dropped_start = " ";
}
void add_word_piece(const Json& json, Decoder& out, int) {
  out.steps.push_back([prefix = text_in(json, "prefix", "##")](const std::string& token) {
    return token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
  });
  if (flag_in(json, "cleanup", true)) out.steps.push_back(english_spacing());
  out.dropped_start = " ";
}

constexpr DecoderRow kDecoders[] = {
    {"ByteFallback", add_byte_fallback},
    {"ByteLevel", [](const Json&, Decoder& out, int) { out.byte_level = true; }},
    {"Fuse", [](const Json&, Decoder&, int) {}},
    {"Metaspace", add_metaspace},
    {"Replace", [](const Json& j, Decoder& out, int) { out.steps.push_back(replace_step(j, 0)); }},
    {"Sequence", add_decoders},
    {"Strip", add_strip},
    {"WordPiece", add_word_piece}};

void add_decoder(const Json& json, Decoder& out, int depth) {
  known_row("decoder", text_in(json, "type"), kDecoders).add(json, out, depth);
}

template <class T>
[[noreturn]] void wrong(const char* name, const T& value, const char* wanted) {
  fail<InvalidArgument>("tokenizer.json: \"{}\" holds {:.80}; {} belongs there", name,
                        value.dump(-1, ' ', false, Json::error_handler_t::replace), wanted);
}

}  // namespace

Json parsed(const char* file, std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    fail<InvalidArgument>("{}: no JSON: {}", file, e.what());
  }
}

const Json& json_part(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto it = object.find(name);
  return it == object.end() ? none : *it;
}

std::string text_in(const Json& object, const char* name) {
  const Json& v = json_part(object, name);
  if (!v.is_string()) wrong(name, v, "a text");
  return v.get<std::string>();
}
std::string text_in(const Json& object, const char* name, const std::string& otherwise) {
  return json_part(object, name).is_null() ? otherwise : text_in(object, name);
}
bool flag_in(const Json& object, const char* name, bool otherwise) {
  const Json& v = json_part(object, name);
  if (v.is_null()) return otherwise;
  if (!v.is_boolean()) wrong(name, v, "true or false");
  return v.get<bool>();
}
int64_t number_in(const Json& object, const char* name) {
  return whole_number(name, json_part(object, name));
}
int64_t number_in(const Json& object, const char* name, int64_t otherwise) {
  return json_part(object, name).is_null() ? otherwise : number_in(object, name);
}
int64_t whole_number(const char* what, const Json& value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)))
    wrong(what, value, "a whole number");
  return value.get<int64_t>();
}

void refuse(const char* what, std::string_view type, std::string_view known) {
  fail<Unsupported>("tokenizer.json: the {} '{:.80}' is not known to tuff; known are {}", what,
                    type, known);
}
void require_depth(int depth) {
  if (depth > kMaxDepth)
    fail<InvalidArgument>("tokenizer.json: sequences nested deeper than {}", kMaxDepth);
}

TextStep normalizer(const Json& json, int depth) {
  if (json.is_null()) return nullptr;
  return known_row("normalizer", text_in(json, "type"), kNormalizers).make(json, depth);
}

PieceStep pre_tokenizer(const Json& json, int depth) {
  if (json.is_null()) return nullptr;
  return known_row("pre_tokenizer", text_in(json, "type"), kPreTokenizers).make(json, depth);
}

std::string Decoder::piece(const std::string& token, bool added) const {
  std::string out = token;
  for (const TextStep& step : steps) out = step(std::move(out));
  return byte_level && !added ? bytes_of_characters(out) : out;
}

Decoder piece_decoder(const Json& json) {
  Decoder out;
  if (!json.is_null()) {
    add_decoder(json, out, 0);
  } else {  // words
    out.steps.push_back([](const std::string& token) { return " " + token; });
    out.dropped_start = " ";
  }
  return out;
}

}  // namespace tuff::text
