// tests/data/tokenizers.json: tiny tokenizers with the ids that the package tokenizers gives
// (scripts/tokenizer-values.py), also as the metadata of GGUF files.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tuff/metadata.h>

namespace tuff {

using Fixture = nlohmann::ordered_json;

inline const Fixture& fixtures() {
  static const Fixture all = [] {
    std::ifstream in(TUFF_SOURCE_DIR "/tests/data/tokenizers.json");
    return Fixture::parse(in);
  }();
  return all;
}

// As converters spell the tokens of WordPiece: words begin with a visible space.
inline std::string gguf_spelling(const std::string& token, const std::string& model) {
  if (model != "bert" || token.starts_with("[")) return token;
  return token.starts_with("##") ? token.substr(2) : "\xe2\x96\x81" + token;
}

inline Metadata gguf_metadata(const Fixture& fixture) {
  const Fixture &gguf = fixture["gguf"], &json = fixture["tokenizer"];
  const std::string name = gguf["model"];
  std::vector<std::string> tokens;
  const auto set = [&](int64_t id, const std::string& token) {
    tokens.resize(std::max(tokens.size(), size_t(id) + 1));
    tokens[size_t(id)] = token;
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) set(id, token);
  for (const Fixture& t : json["added_tokens"]) set(t["id"], t["content"]);
  MetadataValue::List list(tokens.size()), types(tokens.size(), {int64_t{1}});
  for (size_t i = 0; i < tokens.size(); i++) {
    list[i] = {gguf_spelling(tokens[i], name)};
    if (tokens[i].starts_with("<0x")) types[i] = {int64_t{6}};
  }
  for (const Fixture& t : json["added_tokens"])
    types[size_t(t["id"])] = {int64_t{t["special"] ? 3 : 4}};
  Metadata out = {{"tokenizer.ggml.model", {name}},
                  {"tokenizer.ggml.tokens", {list}},
                  {"tokenizer.ggml.token_type", {types}}};
  if (gguf.contains("pre")) out.push_back({"tokenizer.ggml.pre", {std::string(gguf["pre"])}});
  if (gguf.contains("add_bos")) out.push_back({"tokenizer.ggml.add_bos_token", {true}});
  for (const auto& [key, kind] : {std::pair("bos", "bos"),
                                  {"eos", "eos"},
                                  {"unknown", "unknown"},
                                  {"separator", "seperator"}})
    if (gguf.contains(key)) {
      const auto it = std::ranges::find(tokens, std::string(gguf[key]));
      out.push_back(
          {std::string("tokenizer.ggml.") + kind + "_token_id", {uint64_t(it - tokens.begin())}});
    }
  MetadataValue::List merges, scores;
  if (name == "gpt2")
    for (const Fixture& m : json["model"]["merges"])
      merges.push_back({std::string(m[0]) + " " + std::string(m[1])});
  if (gguf.contains("scores"))
    for (const Fixture& s : gguf["scores"]) scores.push_back({double(s)});
  if (!merges.empty()) out.push_back({"tokenizer.ggml.merges", {merges}});
  if (!scores.empty()) out.push_back({"tokenizer.ggml.scores", {scores}});
  return out;
}

}  // namespace tuff
