#include <gmock/gmock.h>

#include <tuff/error.h>
#include <tuff/tokenizer.h>
#include "base/error_of.h"
#include "text/fixtures.h"

namespace tuff {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tokenizer of_gguf(const char* name) {
  return Tokenizer::from_metadata(gguf_metadata(fixtures()[name]));
}

void expect_cases(const Tokenizer& tokenizer, const Fixture& cases) {
  for (const Fixture& c : cases) {
    const std::string text = c["text"];
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, c["ids"].get<std::vector<int32_t>>()) << text;
    EXPECT_EQ(tokenizer.encode(text, {.add_special = false}),
              c["plain"].get<std::vector<int32_t>>())
        << text;
    EXPECT_EQ(tokenizer.decode(c["ids"].get<std::vector<int32_t>>()), std::string(c["decoded"]))
        << text;
  }
}

TEST(GgufTokenizer, GivesTheIdsOfThePackageTokenizers) {
  for (const char* name : {"byte_level", "sentence_piece", "word_piece"}) {
    SCOPED_TRACE(name);
    expect_cases(of_gguf(name), fixtures()[name]["cases"]);
  }
}

TEST(JsonTokenizer, GivesTheIdsOfThePackageTokenizers) {
  for (const auto& [name, fixture] : fixtures().items()) {
    SCOPED_TRACE(name);
    expect_cases(Tokenizer::from_json(fixture["tokenizer"].dump()), fixture["cases"]);
  }
}

Metadata small_bpe() {
  MetadataValue::List tokens, types, merges;
  for (const char* t : {"a", "b", "Ġ", "ab", "Ġab", "<|im_end|>", "<s>", "é"}) {
    tokens.push_back({std::string(t)});
    types.push_back({int64_t{t[0] == '<' ? 3 : 1}});
  }
  for (const char* m : {"a b", "Ġ ab"}) merges.push_back({std::string(m)});
  return {{"tokenizer.ggml.model", {std::string("gpt2")}},
          {"tokenizer.ggml.pre", {std::string("gpt-2")}},
          {"tokenizer.ggml.tokens", {tokens}},
          {"tokenizer.ggml.token_type", {types}},
          {"tokenizer.ggml.merges", {merges}},
          {"tokenizer.ggml.bos_token_id", {uint64_t{6}}},
          {"tokenizer.ggml.eos_token_id", {uint64_t{6}}},
          {"tokenizer.ggml.add_bos_token", {true}},
          {"tokenizer.chat_template", {std::string("{{ messages }}")}}};
}

Metadata with(Metadata metadata, const std::string& key, MetadataValue value) {
  std::erase_if(metadata, [&](const auto& item) { return item.first == "tokenizer.ggml." + key; });
  metadata.emplace_back("tokenizer.ggml." + key, std::move(value));
  return metadata;
}

TEST(GgufTokenizer, SpecialTokensAreFoundWhereTheyAreAskedFor) {
  const Tokenizer t = Tokenizer::from_metadata(small_bpe());
  EXPECT_THAT(t.encode("ab ab<|im_end|>a"), ElementsAre(6, 3, 4, 5, 0));
  EXPECT_THAT(t.encode("a<|im_end|>", {.add_special = false, .parse_special = false}),
              ElementsAre(0));  // its characters are no tokens
  EXPECT_EQ(t.decode(t.encode("ab ab<|im_end|>a")), "ab aba");
  EXPECT_EQ(t.decode(std::vector<int32_t>{4, 5}, false), " ab<|im_end|>");
}

TEST(GgufTokenizer, KnowsItsTokens) {
  const Tokenizer t = Tokenizer::from_metadata(small_bpe());
  EXPECT_EQ(t.size(), 8u);
  EXPECT_EQ(t.token(4), "Ġab");
  EXPECT_EQ(t.piece(4), " ab");
  EXPECT_EQ(t.piece(7), "\xe9");
  EXPECT_EQ(t.find("Ġab"), 4);
  EXPECT_EQ(t.find("x"), std::nullopt);
  EXPECT_EQ(t.bos(), 6);
  EXPECT_EQ(t.pad(), std::nullopt);
  EXPECT_TRUE(t.is_end(5) && t.is_end(6) && !t.is_end(0));
  EXPECT_TRUE(t.is_special(5) && !t.is_special(0));
  EXPECT_EQ(t.chat_template(), "{{ messages }}");
  EXPECT_THAT(error_of<InvalidArgument>([&] { t.piece(8); }), HasSubstr("token 8"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { t.decode(std::vector<int32_t>{-1}); }),
              HasSubstr("token -1"));
}

TEST(GgufTokenizer, BytesThatAreNoUtf8AreKept) {
  const Tokenizer t = of_gguf("byte_level");
  const std::string text = "a\xff\xc3 b\xf0\x9f";
  EXPECT_EQ(t.decode(t.encode(text)), text);
  const Tokenizer s = of_gguf("sentence_piece");
  EXPECT_EQ(s.decode(s.encode(text)), text);
}

TEST(GgufTokenizer, NamesWhatIsWrong) {
  const auto error = [](Metadata m) {
    return error_of<Error>([&] { Tokenizer::from_metadata(m); });
  };
  EXPECT_THAT(error({}), HasSubstr("no tokenizer"));
  EXPECT_THAT(error(with(small_bpe(), "model", {std::string("rwkv")})),
              HasSubstr("known are gpt2"));
  EXPECT_THAT(error(with(small_bpe(), "pre", {std::string("x9")})), HasSubstr("'x9'"));
  EXPECT_THAT(error(with(small_bpe(), "tokens", {int64_t{1}})), HasSubstr("a list"));
  EXPECT_THAT(error(with(small_bpe(), "tokens", {MetadataValue::List{}})), HasSubstr("empty"));
  EXPECT_THAT(error(with(small_bpe(), "token_type", {MetadataValue::List{{int64_t{1}}}})),
              HasSubstr("1 values"));
  EXPECT_THAT(error(with(small_bpe(), "bos_token_id", {uint64_t{8}})), HasSubstr("outside"));
  EXPECT_THAT(error(with(small_bpe(), "merges", {MetadataValue::List{{std::string("ab")}}})),
              HasSubstr("one part"));
  EXPECT_THAT(error(with(small_bpe(), "merges", {MetadataValue::List{{std::string("b a")}}})),
              HasSubstr("lacks both together"));
}

TEST(Tokenizer, OpenNamesTheFile) {
  EXPECT_THAT(error_of<IoError>([] { Tokenizer::open("/nowhere/model.gguf"); }),
              HasSubstr("/nowhere/model.gguf"));
}

TEST(TextStream, GivesWholeCharacters) {
  const Tokenizer t = of_gguf("byte_level");
  const std::string text = "The 🦊 über 敏捷";
  TextStream stream(t);
  std::string out;
  for (const int32_t id : t.encode(text)) {
    const std::string part = stream.push(id);
    EXPECT_TRUE(part.empty() || (uint8_t(part[0]) & 0xc0) != 0x80);
    out += part;
  }
  EXPECT_EQ(out + stream.finish(), text);
}

TEST(TextStream, ReplacesWhatIsNoCharacter) {
  const Tokenizer t = of_gguf("byte_level");
  TextStream stream(t);
  std::string out;
  for (const int32_t id : t.encode("a\xff\xf0\x9f"
                                   "b\xe2\x96"))
    out += stream.push(id);
  EXPECT_EQ(out,
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, DropsTheSpaceThatEncodingPutBefore) {
  const Tokenizer t = of_gguf("sentence_piece");
  TextStream stream(t);
  std::string out;
  for (const int32_t id : t.encode("The fox")) out += stream.push(id);
  EXPECT_EQ(out, "The fox");
}

}  // namespace
}  // namespace tuff
