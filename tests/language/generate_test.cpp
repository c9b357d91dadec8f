// Sequences and answers of a small model: contexts, what is remembered, how answers end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "language/fixtures.h"

namespace tuff::language {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using namespace std::string_literals;

std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

TEST(Sequence, RefusesWhatItCannotRead) {
  const Model model = fixture_model("llama");
  EXPECT_EQ(error_of([&] { Sequence(model, {.context = 65}); }),
            "a context of 65 tokens: the model was trained for 1 to 64");
  Sequence s(model, {.context = 8});
  EXPECT_EQ(error_of([&] { s.read({}); }), "a sequence reads at least one token");
  const std::vector<int32_t> unknown{3, 48}, many(9, 1);
  EXPECT_EQ(error_of([&] { s.read(unknown); }), "token 48 is none of the vocabulary's 48");
  EXPECT_EQ(error_of([&] { s.read(many); }), "9 tokens behind 0 exceed the context of 8");
  EXPECT_TRUE(s.tokens().empty()) << "what was refused was not read";
}

TEST(Sequence, APieceAtTheEndOfTheContextIsPadded) {
  const Model model = fixture_model("llama");
  std::vector<int32_t> tokens;
  for (int i = 0; i < 40; i++) tokens.push_back((i * 7 + 3) % 48);
  Sequence pieces(model, {.context = 40}), single(model, {.context = 40});
  pieces.read(std::span(tokens).first(30));
  const std::vector<float> got = copy(pieces.read(std::span(tokens).subspan(30)));
  std::vector<float> want;
  for (const int32_t t : tokens) want = copy(single.read({&t, 1}));
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 5e-3);
  EXPECT_THAT(pieces.tokens(), ElementsAreArray(tokens));
}

TEST(Sequence, ReadsLogitsOfEachToken) {
  const Model model = fixture_model("llama");
  std::vector<int32_t> tokens;
  for (int i = 0; i < 13; i++) tokens.push_back((i * 5 + 1) % 48);
  Sequence each(model, {.cache = CacheType::F32}), single(model, {.cache = CacheType::F32});
  each.read(std::span(tokens).first(2)), single.read(std::span(tokens).first(2));
  const std::vector<float> got = copy(each.read_each(std::span(tokens).subspan(2)));
  ASSERT_EQ(got.size(), 11u * 48);
  for (size_t t = 2, at = 0; t < tokens.size(); t++) {
    for (const float want : copy(single.read({&tokens[t], 1}))) ASSERT_NEAR(got[at++], want, 1e-4);
  }
  EXPECT_THAT(each.tokens(), ElementsAreArray(tokens));
}

TEST(Embed, RefusesWhatItCannotRead) {
  const Model model = fixture_model("llama");
  const std::vector<int32_t> unknown{3, 48}, many(65, 1), all(64, 1);
  EXPECT_EQ(error_of([&] { embed(model, {}); }), "a text of no token has no embedding");
  EXPECT_EQ(error_of([&] { embed(model, unknown); }), "token 48 is none of the vocabulary's 48");
  EXPECT_EQ(error_of([&] { embed(model, many); }),
            "65 tokens exceed the context of 64 that the model was trained for");
  double squares = 0;
  for (const float x : embed(model, all)) squares += double(x) * double(x);
  EXPECT_NEAR(squares, 1, 1e-6);
}

class Generate : public testing::Test {
 protected:
  Answer run(GenerateOptions options) {
    options.sampling.temperature = 0;
    return generate(sequence_, prompt_, options);
  }
  const Model model_ = fixture_model("qwen2");
  Sequence sequence_{model_};
  const std::vector<int32_t> prompt_{5, 9, 11};
};

TEST_F(Generate, EndsWithTheTokensThatWereAskedFor) {
  const Answer a = run({.tokens = 5});
  EXPECT_EQ(a.tokens.size(), 5u);
  EXPECT_EQ(a.finish, Finish::Length);
  EXPECT_EQ(a.text, model_.tokenizer().decode(a.tokens));
  EXPECT_EQ(a.prompt_tokens, 3u);
}

TEST_F(Generate, ReadsOnlyWhatIsNewOfAPrompt) {
  const Answer first = run({.tokens = 5}), again = run({.tokens = 5});
  EXPECT_EQ(again.prompt_tokens, 1u);
  EXPECT_EQ(again.tokens, first.tokens);
}

TEST_F(Generate, EndsWhereTheContextDoes) {
  Sequence small(model_, {.context = 8});
  const Answer a = generate(small, prompt_, {.sampling = {.temperature = 0}});
  EXPECT_EQ(a.tokens.size(), 5u);
  EXPECT_EQ(a.finish, Finish::Length);
}

TEST_F(Generate, EndsBeforeATextThatIsToEndIt) {
  const std::string whole = run({.tokens = 12}).text;
  ASSERT_GE(whole.size(), 8u);
  const std::string stop = whole.substr(3, 4);
  std::string shown;
  const Answer a = run({.tokens = 12, .stop = {"never comes", stop}, .on_piece = [&](auto& piece) {
                          shown += piece.text;
                          return true;
                        }});
  EXPECT_EQ(a.finish, Finish::Stop);
  EXPECT_EQ(a.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(shown, a.text) << "nothing of it was shown";
}

TEST_F(Generate, TextThatOnlyBeginsAsAStopIsShown) {
  const std::string whole = run({.tokens = 6}).text;
  const Answer a = run({.tokens = 6, .stop = {whole + "?"}});
  EXPECT_EQ(a.text, whole);
}

TEST_F(Generate, EndsWhenItIsToldTo) {
  const Answer a = run({.tokens = 12, .on_piece = [](auto&) { return false; }});
  EXPECT_EQ(a.finish, Finish::Cancelled);
  EXPECT_EQ(a.tokens.size(), 1u);
}

TEST_F(Generate, TellsEachTokenOnceWithItsLogarithms) {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  GenerateOptions options{.tokens = 6, .logprobs = 2};
  options.stop = {run({.tokens = 6}).text.substr(4)};
  options.on_piece = [&](const AnswerPiece& piece) {
    tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
    for (const TokenLogprobs& l : piece.logprobs) logprobs.push_back(l.chosen.logprob);
    return true;
  };
  const Answer a = run(options);
  EXPECT_EQ(tokens, a.tokens) << "those of the text that ended it among them";
  ASSERT_EQ(a.logprobs.size(), a.tokens.size());
  const Tensor logits = model_(Tensor::from(prompt_, {3})).select(0, 2).log_softmax(0);
  const std::vector<float> want = logits.to_vector<float>();
  for (size_t i = 0; i < tokens.size(); i++) {
    const TokenLogprobs& l = a.logprobs[i];
    EXPECT_EQ(l.chosen.token, tokens[i]);
    EXPECT_EQ(l.chosen.logprob, logprobs[i]);
    ASSERT_EQ(l.top.size(), 2u);
    EXPECT_EQ(l.top[0].token, tokens[i]) << "greedy";
    EXPECT_LE(l.top[1].logprob, l.top[0].logprob);
  }
  EXPECT_NEAR(a.logprobs[0].top[1].logprob, want[size_t(a.logprobs[0].top[1].token)], 5e-3);
  EXPECT_EQ(error_of([&] { run({.logprobs = -2}); }),
            "logprobs is -2: a number from -1 on was wanted");
}

TEST_F(Generate, DraftsSaveCallsAndChangeNothing) {
  Sequence plain(model_, {.cache = CacheType::F32}), drafted(model_, {.cache = CacheType::F32});
  for (int32_t first = 0; first < 6; first++) {
    const std::vector<int32_t> prompt{first, 7, 9, first, 7, 9, first, 7};
    for (const double temperature : {0.0, 0.7}) {
      GenerateOptions options{.tokens = 40, .sampling = {.temperature = temperature, .seed = 3}};
      const Answer want = generate(plain, prompt, options);
      options.draft_tokens = 1 + 3 * (first % 3);
      const Answer got = generate(drafted, prompt, options);
      EXPECT_EQ(got.tokens, want.tokens) << first << ' ' << temperature;
      EXPECT_THAT(drafted.tokens(), ElementsAreArray(plain.tokens()));
    }
  }
  EXPECT_LT(drafted.stats().replays, plain.stats().replays);
  EXPECT_EQ(error_of([&] { run({.draft_tokens = 8}); }),
            "draft_tokens is 8: a number from 0 to 7 was wanted");
}

TEST_F(Generate, KeepsToAGrammar) {
  const Grammar grammar = Grammar::parse("root ::= [x-z]{3} (\"ab\" | \"cc\"+ [pq]) \"q\"");
  for (const uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    const Answer a = generate(sequence_, prompt_,
                              {.sampling = {.temperature = double(seed % 2) * 5, .seed = seed},
                               .grammar = grammar,
                               .draft_tokens = seed % 3 == 0 ? 3 : 0});
    EXPECT_TRUE(grammar.accepts(a.text)) << a.text;
    EXPECT_EQ(a.finish, Finish::End) << "nothing could follow";
    EXPECT_EQ(a.text, model_.tokenizer().decode(a.tokens));
  }
  const Answer cut = run({.tokens = 2, .grammar = grammar});
  EXPECT_EQ(cut.finish, Finish::Length);
  const Grammar none = Grammar::parse("root ::= [x-z] \"!\"");
  const Answer failed = run({.grammar = none});
  EXPECT_EQ(failed.finish, Finish::Failed);
  EXPECT_EQ(failed.text.size(), 1u);
  EXPECT_THAT(failed.error, HasSubstr("no token of the vocabulary"));
  EXPECT_EQ(run({.tokens = 3}).finish, Finish::Length) << "the sequence can be used";
}

// The same architecture, other weights: some of what it proposes is right.
TEST_F(Generate, ADraftModelChangesNothing) {
  const Model other = fixture_model("qwen3");
  Sequence plain(model_, {.cache = CacheType::F32}), drafted(model_, {.cache = CacheType::F32});
  Sequence right(model_, {.cache = CacheType::F32}), wrong(other), small(other, {.context = 16});
  for (Sequence* draft : {&right, &wrong, &small}) {
    for (const double temperature : {0.0, 0.7}) {
      GenerateOptions options{.tokens = 40, .sampling = {.temperature = temperature, .seed = 3}};
      const Answer want = generate(plain, prompt_, options);
      options.draft_tokens = 3, options.draft = draft;
      EXPECT_EQ(generate(drafted, prompt_, options).tokens, want.tokens) << temperature;
      drafted.truncate(0), plain.truncate(0);
    }
  }
  EXPECT_LT(drafted.stats().replays, plain.stats().replays);
}

TEST_F(Generate, ADraftHasTheSameVocabulary) {
  const std::string path = testing::TempDir() + "/other.gguf";
  std::ifstream in(TUFF_SOURCE_DIR "/tests/data/language/qwen3.gguf", std::ios::binary);
  std::string file(std::istreambuf_iterator<char>(in), {});
  const size_t at = file.find("\x01\0\0\0\0\0\0\0c"s);
  ASSERT_NE(at, std::string::npos);
  file[at + 8] = '?';
  std::ofstream(path, std::ios::binary) << file;
  Sequence draft(Model::open(path));
  EXPECT_EQ(error_of([&] { run({.draft_tokens = 3, .draft = &draft}); }),
            "token 2 of the draft model is \"?\", of the model \"c\": a draft has the same "
            "vocabulary");
  EXPECT_EQ(error_of([&] { run({.draft = &sequence_}); }),
            "draft_tokens is 0: a number from 1 to 7 was wanted of the draft model");
}

TEST_F(Generate, RefusesPromptsThatDoNotFit) {
  const std::vector<int32_t> none, many(65, 1);
  EXPECT_EQ(error_of([&] { generate(sequence_, none); }), "a prompt has at least one token");
  EXPECT_EQ(error_of([&] { generate(sequence_, many); }),
            "the prompt's 65 tokens exceed the context of 64");
  EXPECT_THAT(error_of([&] { run({.stop = {""}}); }), HasSubstr("empty"));
}

TEST(Perplexity, IsOfTheSecondHalvesOfPieces) {
  const Model model = fixture_model("qwen2");
  std::vector<int32_t> tokens;
  for (int i = 0; i < 37; i++) tokens.push_back((i * i + 3) % 48);
  double sum = 0;
  int count = 0;
  for (size_t piece = 0; piece < 2; piece++) {
    const std::vector<int32_t> ids(tokens.begin() + long(piece * 16),
                                   tokens.begin() + long(piece * 16 + 16));
    const std::vector<float> logits = model(Tensor::from(ids, {16})).to_vector<float>();
    for (size_t i = 8; i < 15; i++, count++) {
      double all = 0;
      for (size_t t = 0; t < 48; t++) all += std::exp(double(logits[i * 48 + t]));
      sum += std::log(all) - double(logits[i * 48 + size_t(ids[i + 1])]);
    }
  }
  std::vector<int64_t> told;
  const auto on_piece = [&](int64_t i, int64_t n, double) {
    told.insert(told.end(), {i, n});
    return true;
  };
  const Perplexity p = perplexity(model, tokens, {.context = 16, .on_piece = on_piece});
  EXPECT_NEAR(p.value, std::exp(sum / count), 1e-3 * p.value);
  EXPECT_EQ(p.tokens, 14);
  EXPECT_GT(p.error, 0);
  EXPECT_THAT(told, testing::ElementsAre(1, 2, 2, 2));
  EXPECT_EQ(error_of([&] { perplexity(model, std::span(tokens).first(31), {.context = 16}); }),
            "a text of 31 tokens: two pieces of 16 at least were wanted");
  EXPECT_EQ(error_of([&] { perplexity(model, tokens, {.context = 65}); }),
            "a context of 65 tokens: 8 to 64 was wanted");
}

}  // namespace
}  // namespace tuff::language
