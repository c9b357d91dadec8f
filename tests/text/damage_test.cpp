// Damaged tokenizers and templates: whatever the bytes, there is an answer or one of tuff's errors.
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tuff/chat_template.h>
#include <tuff/error.h>
#include <tuff/tokenizer.h>
#include "text/fixtures.h"

namespace tuff {
namespace {

constexpr int kRounds = 300;

using Random = std::mt19937_64;

size_t below(Random& random, size_t n) { return n == 0 ? 0 : size_t(random() % n); }

// A few bytes are others, gone, or stand there again.
std::string damaged(std::string text, Random& random) {
  for (size_t i = 0, n = 1 + below(random, 4); i < n && !text.empty(); i++) {
    const size_t at = below(random, text.size());
    const size_t length = below(random, std::min<size_t>(text.size() - at, 20)) + 1;
    switch (below(random, 4)) {
      case 0: text[at] = char(random()); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(below(random, text.size()), text.substr(at, length)); break;
      default: text[at] = "{}[]()\"'%#-+*|.,:0123456789\\"[below(random, 28)];
    }
  }
  return text;
}

const char* const kTexts[] = {"The quick 12 fox<s> isn't\n\n über ", "\xff\xf0\x9f 敏捷",
                              "   [MASK] "};

void use(const Tokenizer& tokenizer) {
  for (const char* text : kTexts) {
    const auto ids = tokenizer.encode(text);
    tokenizer.decode(ids);
    TextStream stream(tokenizer);
    for (const int32_t id : ids) stream.push(id);
    stream.finish();
  }
}

TEST(DamagedTokenizer, OfJsonIsAnErrorOrWorks) {
  Random random(1);
  int whole = 0;
  for (const auto& [name, fixture] : fixtures().items()) {
    // Most bytes are the vocabulary's: the rest is damaged as often.
    Fixture small = fixture["tokenizer"];
    const Fixture vocabulary = small["model"]["vocab"], merges = small["model"]["merges"];
    for (int round = 0; round < kRounds; round++) {
      Fixture json = small;
      if (round % 2 == 0) {
        json["model"]["vocab"] = "VOCABULARY";
        json["model"]["merges"] = "MERGES";
      }
      std::string text = damaged(json.dump(), random);
      const auto put = [&](const std::string& mark, const Fixture& value) {
        if (const size_t at = text.find(mark); at != std::string::npos)
          text.replace(at, mark.size(), value.dump());
      };
      put("\"VOCABULARY\"", vocabulary);
      put("\"MERGES\"", merges.is_null() ? Fixture::array() : merges);
      try {
        use(Tokenizer::from_json(text));
        whole++;
      } catch (const Error&) {}
    }
  }
  EXPECT_GT(whole, kRounds / 4);  // damage does not always do harm
}

MetadataValue damaged(MetadataValue value, Random& random) {
  switch (below(random, 6)) {
    case 0: return {};
    case 1: return {int64_t(random() % 1000) - 500};
    case 2: return {uint64_t(random())};
    case 3: return {std::string("x")};
    case 4: return {MetadataValue::List{{int64_t{1}}, {std::string("a b")}}};
    default: break;
  }
  if (auto* list = std::get_if<MetadataValue::List>(&value.value); list && !list->empty()) {
    const size_t at = below(random, list->size());
    (*list)[at] = damaged((*list)[at], random);
    if (below(random, 2) == 0) list->resize(below(random, list->size() + 1));
  }
  return value;
}

TEST(DamagedTokenizer, OfGgufIsAnErrorOrWorks) {
  Random random(2);
  int whole = 0;
  for (const char* name : {"byte_level", "sentence_piece", "word_piece"}) {
    const Metadata sound = gguf_metadata(fixtures()[name]);
    for (const char* model : {"", "t5", "gemma4"})
      for (int round = 0; round < kRounds / 3; round++) {
        Metadata metadata = sound;
        if (*model) metadata[0].second = {std::string(model)};
        auto& [key, value] = metadata[below(random, metadata.size())];
        value = damaged(value, random);
        if (below(random, 4) == 0) metadata.erase(metadata.begin() + ptrdiff_t(below(random, 3)));
        try {
          use(Tokenizer::from_metadata(metadata));
          whole++;
        } catch (const Error&) {}
      }
  }
  EXPECT_GT(whole, kRounds / 4);
}

TEST(DamagedTemplate, IsAnErrorOrRenders) {
  Random random(3);
  std::ifstream in(TUFF_SOURCE_DIR "/tests/data/chat_templates.json");
  const auto data = nlohmann::ordered_json::parse(in);
  const std::string messages = data["messages"].dump();
  int whole = 0;
  for (const auto& c : data["cases"])
    for (int round = 0; round < 100; round++) {
      try {
        const ChatTemplate text(damaged(c["template"].get<std::string>(), random));
        text.render(round % 10 == 0 ? damaged(messages, random) : messages);
        whole++;
      } catch (const Error&) {}
    }
  EXPECT_GT(whole, 300);
}

}  // namespace
}  // namespace tuff
