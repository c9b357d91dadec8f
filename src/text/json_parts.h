// The normalizers, pre-tokenizers and decoders of tokenizer.json. Called by its reader. Must never
// know of models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace tuff::text {

using Json = nlohmann::json;

// InvalidArgument naming the file and the place.
Json parsed(const char* file, std::string_view text);
// Null where it is missing. Of what is no object, too.
const Json& json_part(const Json& object, const char* name);
// InvalidArgument where the value is missing (without `otherwise`) or another one.
std::string text_in(const Json& object, const char* name);
std::string text_in(const Json& object, const char* name, const std::string& otherwise);
bool flag_in(const Json& object, const char* name, bool otherwise);
int64_t number_in(const Json& object, const char* name);
int64_t number_in(const Json& object, const char* name, int64_t otherwise);
int64_t whole_number(const char* what, const Json& value);

[[noreturn]] void refuse(const char* what, std::string_view type, std::string_view known);
void require_depth(int depth);  // of sequences in sequences
template <class Rows>
const auto& known_row(const char* what, std::string_view type, const Rows& rows) {
  std::string known;
  for (const auto& row : rows) {
    if (row.type == type) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.type);
  }
  refuse(what, type, known);
}

TextStep normalizer(const Json& json, int depth = 0);      // none for null
PieceStep pre_tokenizer(const Json& json, int depth = 0);  // none for null

// Tokens as the bytes that they add to a text.
struct Decoder {
  std::vector<TextStep> steps;
  bool byte_level = false;    // last: of tokens that were not added to the vocabulary
  std::string dropped_start;  // what a text does not begin with
  std::string piece(const std::string& token, bool added) const;
};
Decoder piece_decoder(const Json& json);

}  // namespace tuff::text
