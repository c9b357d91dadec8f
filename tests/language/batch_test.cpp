// Answers that are written side by side: each as generate() writes it by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

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

}  // namespace
}  // namespace tuff::language
