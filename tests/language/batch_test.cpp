// Answers that are written side by side: each as generate() writes it by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/stats.h"
#include "language/fixtures.h"

namespace tuff::language {
namespace {

GenerateOptions greedy(int64_t tokens) {
  return {.tokens = tokens, .sampling = {.temperature = 0}};
}

std::map<Batch::Id, Answer> run(Batch& batch) {
  std::map<Batch::Id, Answer> answers;
  while (!batch.idle())
    for (auto& [id, answer] : batch.step()) answers[id] = std::move(answer);
  return answers;
}

TEST(Batch, WritesWhatGenerateWrites) {
  const Model model = fixture_model("qwen2");
  Batch batch(model);
  Sequence sequence(model);
  std::map<Batch::Id, std::vector<int32_t>> wanted;
  for (int32_t i = 0; i < 11; i++) {
    const std::vector<int32_t> prompt(size_t(i % 4 + 1), i);
    const auto options = greedy(5 + i);
    wanted[batch.add(prompt, options)] = generate(sequence, prompt, options).tokens;
  }
  for (const auto& [id, answer] : run(batch)) EXPECT_EQ(answer.tokens, wanted[id]);
  EXPECT_EQ(batch.stats().waiting + batch.stats().running, 0u);
}

TEST(Batch, WritesTheSameWithCachesInBlocks) {
  const Model model = fixture_model("qwen3_wide");
  Batch batch(model, {.sequences = 2, .cache = CacheType::Q8_0});
  Sequence sequence(model, {.cache = CacheType::Q8_0});
  const std::vector<int32_t> prompt{5, 9, 11};
  const Answer want = generate(sequence, prompt, greedy(9));
  batch.add(prompt, greedy(9)), batch.add(prompt, greedy(9));
  for (const auto& [id, answer] : run(batch)) EXPECT_EQ(answer.tokens, want.tokens);
}

TEST(Batch, DropsWhatIsCancelled) {
  Batch batch(fixture_model("qwen2"));
  const Batch::Id first = batch.add({1, 2}, greedy(9)), second = batch.add({3}, greedy(9));
  batch.step();
  batch.cancel(first);
  batch.cancel(77);
  const auto answers = run(batch);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.begin()->first, second);
}

TEST(Batch, AnAnswerWhoseListenerThrowsIsDropped) {
  Batch batch(fixture_model("qwen2"));
  GenerateOptions broken = greedy(9);
  broken.on_piece = [](const AnswerPiece&) -> bool { throw std::runtime_error("no"); };
  batch.add({1, 2}, broken);
  const Batch::Id other = batch.add({3}, greedy(9));
  EXPECT_THROW(run(batch), std::runtime_error);
  const auto answers = run(batch);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.begin()->first, other);
}

TEST(Batch, EachAnswerKeepsToItsGrammar) {
  const Model model = fixture_model("qwen2");
  Batch batch(model);
  Sequence sequence(model);
  const char* grammars[] = {"root ::= [x-z]{3} \"ab\"", "root ::= \"?\"", "root ::= [a-c]*"};
  std::map<Batch::Id, Answer> wanted;
  for (int32_t i = 0; i < 6; i++) {
    GenerateOptions options = greedy(9);
    if (i > 0) options.grammar = Grammar::parse(grammars[i % 3]);
    wanted[batch.add({i, 4}, options)] = generate(sequence, std::vector<int32_t>{i, 4}, options);
  }
  size_t failed = 0;
  for (const auto& [id, answer] : run(batch)) {
    EXPECT_EQ(answer.tokens, wanted[id].tokens);
    EXPECT_EQ(answer.error, wanted[id].error);
    failed += answer.finish == Finish::Failed;
  }
  EXPECT_EQ(failed, 2u) << "beside those that go on";
}

TEST(Batch, RefusesWhatCannotBe) {
  const Model model = fixture_model("qwen2");
  EXPECT_EQ(error_of([&] { Batch(model, {.sequences = 0}); }),
            "0 sequences: 1 to 1024 were wanted");
  EXPECT_EQ(error_of([&] { Batch(model, {.cache_tokens = 63}); }),
            "a cache of 63 tokens cannot hold one sequence of 64: give it more, or a shorter "
            "context");
  EXPECT_EQ(error_of([&] { Batch(model, {.cache_tokens = int64_t(1) << 40}); }),
            "a cache of 1099511627776 tokens: at most 2147483584 are possible");
  Batch batch(model, {.context = 8});
  EXPECT_EQ(error_of([&] { batch.add({}); }), "a prompt has at least one token");
  EXPECT_EQ(error_of([&] { batch.add(std::vector<int32_t>(9, 1)); }),
            "the prompt's 9 tokens exceed the context of 8");
  EXPECT_EQ(error_of([&] { batch.add({1, 48}); }), "token 48 is none of the vocabulary's 48");
  Sequence draft(model);
  EXPECT_EQ(error_of([&] { batch.add({1}, {.draft_tokens = 2, .draft = &draft}); }),
            "a draft is a sequence for generate(): a Batch takes its model (BatchOptions::draft)");
  EXPECT_EQ(error_of([&] { batch.add({1}, {.draft_tokens = 8}); }),
            "draft_tokens is 8: a number from 0 to 7 was wanted");
  EXPECT_TRUE(batch.idle());
}

TEST(Batch, AnAnswerOfNoTokensEndsAtOnce) {
  Batch batch(fixture_model("qwen2"));
  batch.add({1, 2}, greedy(0));
  const auto ended = batch.step();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].second.finish, Finish::Length);
  EXPECT_TRUE(batch.idle());
}

std::vector<int32_t> counting(int32_t first, size_t count) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < count; i++) out.push_back(int32_t((size_t(first) + 7 * i) % 48));
  return out;
}

TEST(Batch, PromptsThatBeginAlikeAreReadOnce) {
  const Model model = fixture_model("qwen2");
  Batch batch(model, {.cache = CacheType::F32});
  std::vector<int32_t> prompt = counting(3, 40);
  batch.add(prompt, greedy(3));
  const Answer first = run(batch).begin()->second;
  EXPECT_EQ(first.prompt_tokens, 40u);
  EXPECT_EQ(batch.stats().used_pages, 0u);
  batch.add(prompt, greedy(3));
  const Answer again = run(batch).begin()->second;
  EXPECT_EQ(again.prompt_tokens, 8u) << "a page of 32 was known";
  EXPECT_EQ(again.tokens, first.tokens);
  prompt[31]++;
  batch.add(prompt, greedy(3));
  EXPECT_EQ(run(batch).begin()->second.prompt_tokens, 40u) << "another text";
  EXPECT_EQ(batch.stats().cached_tokens, 32u);
  EXPECT_EQ(batch.stats().prompt_tokens, 88u);
}

TEST(Batch, ALongPromptDoesNotKeepOthersWaiting) {
  Batch batch(fixture_model("qwen2"));
  size_t pieces = 0;
  GenerateOptions options = greedy(20);
  options.on_piece = [&](const AnswerPiece&) { return ++pieces > 0; };
  batch.add({1}, options);
  batch.step();
  batch.add(counting(3, 60), greedy(2));
  for (int i = 0; i < 4; i++) batch.step();
  EXPECT_EQ(pieces, 3u) << "every other call";
}

// Many requests of all lengths, some of which begin alike or are cancelled, by a cache that is too
// small for them: all answers are those that the model writes by itself.
TEST(Batch, AnswersAreTheSameWhateverRunsBesideThem) {
  const Model model = fixture_model("llama");
  Sequence alone(model, {.cache = CacheType::F32});
  std::mt19937 random(7);
  const auto draw = [&](int from, int to) { return from + int(random() % unsigned(to - from + 1)); };
  uint64_t preempted = 0;
  for (const int64_t cache : {64, 96, 160, 512}) {
    Batch batch(model, {.sequences = 5, .cache_tokens = cache, .cache = CacheType::F32});
    std::map<Batch::Id, std::vector<int32_t>> wanted;
    const auto collect = [&] {
      for (const auto& [id, answer] : batch.step()) {
        ASSERT_TRUE(wanted.contains(id));
        EXPECT_EQ(answer.tokens, wanted[id]) << "cache of " << cache;
        wanted.erase(id);
      }
    };
    for (int i = 0; i < 40; i++) {
      const std::vector<int32_t> prompt = counting(draw(0, 2), size_t(draw(1, 62)));
      const GenerateOptions options = greedy(draw(0, 40));
      const Batch::Id id = batch.add(prompt, options);
      wanted[id] = generate(alone, prompt, options).tokens;
      if (draw(0, 5) == 0) batch.cancel(id), wanted.erase(id);
      for (int steps = draw(0, 6); steps > 0; steps--) collect();
      if (draw(0, 9) == 0 && !wanted.empty()) {
        batch.cancel(wanted.begin()->first);
        wanted.erase(wanted.begin());
      }
    }
    while (!batch.idle()) collect();
    EXPECT_TRUE(wanted.empty()) << "nothing is lost";
    EXPECT_EQ(batch.stats().used_pages, 0u);
    preempted += batch.stats().preempted;
  }
  EXPECT_GT(preempted, 0u);
}

// Drafts of all kinds, in caches that are too small for them as well.
TEST(Batch, DraftsSaveCallsAndChangeNothing) {
  const Model model = fixture_model("qwen2");
  Sequence alone(model, {.cache = CacheType::F32});
  struct Case {
    std::optional<Model> draft;
    int64_t sequences, cache;
  };
  for (const Case& c :
       {Case{{}, 4, 0}, Case{model, 4, 0}, Case{fixture_model("qwen3"), 3, 96}}) {
    Batch batch(model, {.sequences = c.sequences, .cache_tokens = c.cache,
                        .cache = CacheType::F32, .draft = c.draft});
    std::map<Batch::Id, std::vector<int32_t>> wanted;
    for (int32_t i = 0; i < 9; i++) {
      std::vector<int32_t> prompt = counting(i, size_t(5 * i + 1));
      GenerateOptions options = greedy(40 - 3 * i);
      options.sampling = {.temperature = i % 2 ? 0.7 : 0, .seed = uint64_t(i)};
      options.keep = i % 3 == 0 ? 2 : -1;
      alone.truncate(0);
      const Answer want = generate(alone, prompt, options);
      options.draft_tokens = i % 4 == 3 ? 0 : 1 + i % 7;
      wanted[batch.add(std::move(prompt), options)] = want.tokens;
    }
    for (const auto& [id, answer] : run(batch)) EXPECT_EQ(answer.tokens, wanted[id]) << id;
    const BatchStats stats = batch.stats();
    EXPECT_GT(stats.draft_tokens, stats.accepted_tokens);
    EXPECT_GT(stats.accepted_tokens, 0u);
    EXPECT_EQ(stats.used_pages, 0u);
  }
}

TEST(Batch, CompilesNothingAfterItIsWarm) {
  Batch batch(fixture_model("qwen2"), {.sequences = 4});
  const auto made = [] {
    const engine::GlobalCounters& c = engine::counters();
    return c.kernels_compiled + c.kernels_from_disk + c.schedules_from_cache;
  };
  std::vector<size_t> told;
  batch.warm_up([&](size_t n) { return told.push_back(n), n < 2; });
  EXPECT_EQ(told, (std::vector<size_t>{1, 2})) << "false ends it";
  batch.warm_up();
  const uint64_t before = made();
  for (int32_t i = 0; i < 9; i++) batch.add(counting(i, size_t(5 * i + 1)), greedy(3 + i));
  run(batch);
  EXPECT_EQ(made(), before);
}

}  // namespace
}  // namespace tuff::language
