// The models and logits of tests/data/language.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <tuff/language.h>

namespace tuff::language {

inline const nlohmann::json& fixture_values() {
  static const nlohmann::json values = [] {
    std::ifstream in(TUFF_SOURCE_DIR "/tests/data/language/logits.json");
    return nlohmann::json::parse(in);
  }();
  return values;
}
inline std::vector<int32_t> fixture_tokens() { return fixture_values()["tokens"]; }
// Behind each of them.
inline std::vector<std::vector<float>> fixture_logits(const std::string& name) {
  return fixture_values()["models"][name];
}
inline std::vector<float> fixture_embedding(const std::string& name) {
  return fixture_values()["embeddings"][name];
}
inline Model fixture_model(const std::string& name) {
  return Model::open(TUFF_SOURCE_DIR "/tests/data/language/" + name + ".gguf");
}

// What it throws.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "";
}

}  // namespace tuff::language
