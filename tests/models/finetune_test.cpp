// Fine-tuning: what is packed into rows and what is learned of it, in which order; trainings that
// go on, and steps of several batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/os.h"
#include "io/scratch_folder.h"
#include "models/finetune_trainer.h"

namespace tuff::models {
namespace {

TrainingText text_of(std::vector<int32_t> tokens, std::vector<bool> learned = {}) {
  if (learned.empty()) learned.assign(tokens.size(), true);
  return {std::move(tokens), std::move(learned)};
}
std::vector<int32_t> counted(int32_t first, size_t n) {
  std::vector<int32_t> out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}
std::vector<int32_t> list(std::span<const int32_t> s) { return {s.begin(), s.end()}; }
constexpr int32_t kNot = PackedTexts::kNotLearned;

TEST(PackedTexts, LongTextsGoOnInTheNextRow) {
  const TrainingText texts[] = {text_of(counted(10, 7)), text_of(counted(30, 3))};
  const PackedTexts p(texts, 4, true);
  ASSERT_EQ(p.rows(), 2u);
  EXPECT_EQ(list(p.tokens(0)), (std::vector<int32_t>{10, 11, 12, 13}));
  EXPECT_EQ(list(p.targets(0)), (std::vector<int32_t>{11, 12, 13, 14}));
  EXPECT_EQ(list(p.tokens(1)), (std::vector<int32_t>{14, 15, 30, 31}));
  EXPECT_EQ(list(p.targets(1)), (std::vector<int32_t>{15, 16, 31, 32}));
  EXPECT_EQ(list(p.texts(1)), (std::vector<int32_t>{0, 0, 1, 1}));
  EXPECT_EQ(list(p.positions(1)), (std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(p.learned_tokens(), 8u);
}

TEST(PackedTexts, ChatsStayWhole) {
  const TrainingText chats[] = {text_of(counted(10, 4), {false, false, true, true}),
                                text_of(counted(30, 3)), text_of(counted(50, 9))};
  const PackedTexts p(chats, 4, false);
  ASSERT_EQ(p.rows(), 3u);
  EXPECT_EQ(list(p.targets(0)), (std::vector<int32_t>{kNot, 12, 13, kNot}));
  EXPECT_EQ(list(p.targets(1)), (std::vector<int32_t>{31, 32, kNot, kNot}));
  EXPECT_EQ(list(p.texts(1)), (std::vector<int32_t>{0, 0, 1, 1})) << "what fills a row is apart";
  EXPECT_EQ(list(p.tokens(2)), (std::vector<int32_t>{50, 51, 52, 53}));
  EXPECT_EQ(p.left_out_tokens(), 4u);
}

// Each learned token is a target once, behind the one that it follows.
TEST(PackedTexts, EveryTokenIsLearnedOnce) {
  std::vector<TrainingText> texts;
  for (int32_t i = 0; i < 40; i++) texts.push_back(text_of(counted(1000 * (i + 1), size_t(i % 13))));
  for (const bool splits : {true, false}) {
    const PackedTexts p(texts, 16, splits);
    std::multiset<int32_t> got, want;
    for (size_t row = 0; row < p.rows(); row++) {
      for (size_t i = 0; i < 16; i++) {
        const int32_t target = p.targets(row)[i];
        if (target == kNot) continue;
        EXPECT_EQ(target, p.tokens(row)[i] + 1);
        got.insert(target);
      }
    }
    for (const TrainingText& t : texts)
      want.insert(t.tokens.begin() + !t.tokens.empty(), t.tokens.end());
    EXPECT_EQ(got, want);
  }
}

TEST(PackedTexts, NothingToLearnIsRefused) {
  const TrainingText none[] = {text_of(counted(1, 5), std::vector<bool>(5, false))};
  EXPECT_THROW(PackedTexts(none, 4, true), InvalidArgument);
  EXPECT_THROW(PackedTexts({}, 4, true), InvalidArgument);
  const TrainingText some[] = {text_of(counted(1, 5))};
  EXPECT_THROW(PackedTexts(some, 1, true), InvalidArgument);
}

TEST(RowOrder, EveryPassHasAllRowsInAnOrderOfItsOwn) {
  RowOrder order(20, 7, true), again(20, 7, true), plain(20, 7, false);
  std::vector<size_t> first, second;
  for (uint64_t i = 0; i < 20; i++) first.push_back(order.at(i));
  for (uint64_t i = 20; i < 40; i++) second.push_back(order.at(i));
  EXPECT_NE(first, second);
  EXPECT_EQ(again.at(25), second[5]) << "wherever a training goes on";
  EXPECT_EQ(plain.at(23), 3u);
  std::ranges::sort(second);
  for (size_t i = 0; i < 20; i++) EXPECT_EQ(second[i], i);
}

TEST(RateSchedules, RiseAndFall) {
  for (uint32_t kind = 0; kind < 3; kind++) {
    EXPECT_DOUBLE_EQ(rate_share(kind, 0, 4, 100), 0.2);
    EXPECT_DOUBLE_EQ(rate_share(kind, 4, 4, 100), 1);
    EXPECT_GE(rate_share(kind, 99, 4, 100), 0);
  }
  EXPECT_DOUBLE_EQ(rate_share(0, 52, 4, 100), 0.5);
  EXPECT_DOUBLE_EQ(rate_share(1, 76, 4, 100), 0.25);
  EXPECT_DOUBLE_EQ(rate_share(2, 99, 4, 100), 1);
}

class Chats : public testing::Test {
 protected:
  // A folder whose template writes "<role>content;" for each message, and "<assistant>" to begin
  // an answer.
  Tokenizer tokenizer(const std::string& text) const {
    const std::string model = folder.path("model");
    std::filesystem::copy(TUFF_SOURCE_DIR "/tests/data/language/llama3", model,
                          std::filesystem::copy_options::recursive);
    os::write_text(model + "/chat_template.jinja", text);
    return Tokenizer::open(model);
  }
  std::string file(const std::string& lines) const {
    os::write_text(folder.path("chats.jsonl"), lines);
    return folder.path("chats.jsonl");
  }
  // As the letters of the vocabulary.
  static constexpr const char* kTemplate =
      "{% for m in messages %}{{ m.role[0] }}{{ m.content }}z{% endfor %}"
      "{% if add_generation_prompt %}a{% endif %}";
  ScratchFolder folder;
};

TEST_F(Chats, WhatTheAssistantSaysIsLearned) {
  const Tokenizer t = tokenizer(kTemplate);
  const auto chats = read_chats(t, file(R"({"messages": [{"role": "user", "content": "bc"},)"
                                        R"( {"role": "assistant", "content": "de"},)"
                                        R"( {"role": "user", "content": "f"}]})" "\n\n"));
  ASSERT_EQ(chats.size(), 1u);
  std::string learned, rest;
  for (size_t i = 0; i < chats[0].tokens.size(); i++)
    (chats[0].learned[i] ? learned : rest) += t.token(chats[0].tokens[i]);
  EXPECT_EQ(learned, "dez");
  EXPECT_EQ(rest, "ubczaufz");
}

TEST_F(Chats, WhatIsNoneIsNamedByItsLine) {
  const Tokenizer t = tokenizer(kTemplate);
  const std::string good = R"({"messages": [{"role": "assistant", "content": "d"}]})" "\n";
  for (const char* bad : {"nonsense", "{}", R"({"messages": 3})", R"({"messages": [4]})",
                          R"({"messages": [{"role": "user", "content": "d"}]})"}) {
    try {
      read_chats(t, file(good + bad));
      ADD_FAILURE() << bad;
    } catch (const InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find("chats.jsonl:2: "), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(read_chats(t, file("\n")), InvalidArgument);
  EXPECT_THROW(read_chats(t, folder.path("none")), IoError);
}

class UntilStep final : public TrainingObserver {
 public:
  explicit UntilStep(uint32_t last) : last_(last) {}
  void on_step(const StepRecord& r) override { step_ = r.step; }
  bool stop_requested() override { return step_ >= last_; }

 private:
  uint32_t last_, step_ = 0;
};

class Finetune : public testing::Test {
 protected:
  static std::vector<TrainingText> some_texts() {
    std::vector<TrainingText> out;
    for (int32_t i = 0; i < 12; i++) {
      std::vector<int32_t> tokens;
      for (int32_t k = 0; k < 9 + i; k++) tokens.push_back((k * k + i * k) % 48);
      out.push_back(text_of(tokens));
    }
    return out;
  }
  static FinetuneTraining settings() {
    FinetuneTraining t;
    t.device = "CPU";
    t.rank = 2, t.batch = 2, t.steps = 6, t.context = 16, t.learning_rate = 0.01;
    return t;
  }
  TrainingReport train(const FinetuneTraining& t, uint32_t last = UINT32_MAX) {
    FinetuneTrainer trainer(t, model, texts, nullptr);
    UntilStep observer(last);
    trainer.run(observer);
    parameters = t.full ? trainer.tuned().parameters() : trainer.adapter()->parameters();
    return trainer.report();
  }
  static std::vector<float> losses(const TrainingReport& r) {
    std::vector<float> out;
    for (const StepRecord& s : r.steps) out.push_back(s.loss);
    return out;
  }
  const language::Model model =
      language::Model::open(TUFF_SOURCE_DIR "/tests/data/language/qwen2.gguf", {.device = "CPU"});
  const PackedTexts texts{some_texts(), 16, true};
  nn::StateDict parameters;  // of the last training
  ScratchFolder folder;
};

TEST_F(Finetune, Learns) {
  FinetuneTraining t = settings();
  t.steps = 40;
  const std::vector<float> l = losses(train(t));
  EXPECT_LT(l.back(), 0.9 * l.front());
}

TEST_F(Finetune, GoesOnAsWithoutABreak) {
  FinetuneTraining t = settings();
  const std::vector<float> whole = losses(train(t));
  t.checkpoints.save = folder.path("state.safetensors");
  train(t, 3);
  t.checkpoints = {.resume = t.checkpoints.save, .save = "", .every = 0};
  EXPECT_EQ(losses(train(t)), whole);
  t.rank = 3;
  EXPECT_THROW(train(t), InvalidArgument) << "an adapter of another rank";
}

TEST_F(Finetune, AllWeightsGoOnAsWithoutABreak) {
  FinetuneTraining t = settings();
  t.full = true, t.learning_rate = 1e-3, t.weight_decay = 0.1;
  const std::vector<float> whole = losses(train(t));
  EXPECT_LT(whole.back(), whole.front());
  const nn::StateDict last = parameters;
  EXPECT_EQ(train(t, 1).parameter_count, model.description().parameters);
  t.checkpoints.save = folder.path("state.safetensors");
  train(t, 3);
  t.checkpoints = {.resume = t.checkpoints.save, .save = "", .every = 0};
  EXPECT_EQ(losses(train(t)), whole);
  ASSERT_EQ(parameters.size(), last.size());
  for (size_t i = 0; i < last.size(); i++)
    EXPECT_EQ(parameters[i].tensor.to_vector<float>(), last[i].tensor.to_vector<float>());
  t.full = false;
  EXPECT_THROW(train(t), InvalidArgument) << "an adapter";
}

TEST(FinetuneMemory, WhatIsMissingIsSaid) {
  require_room(1 << 20, 16 << 20, "CPU");
  EXPECT_THAT(error_text<OutOfMemory>([] { require_room(1ull << 30, 4ull << 30, "CPU"); }),
              testing::HasSubstr("16.0 GiB (F32, gradients and AdamW's two moments), of which 12.0 "
                                 "GiB are missing: CPU has 4.0 GiB left"));
}

// All targets of these rows are learned, so that the mean of means is that of all.
TEST_F(Finetune, StepsOfSeveralBatchesAreThoseOfALargeOne) {
  std::vector<int32_t> tokens;
  for (int32_t k = 0; k < 16 * 8 + 1; k++) tokens.push_back((k * k / 3 + k) % 48);
  const PackedTexts rows(std::vector{text_of(tokens)}, 16, true);
  const auto trained = [&](uint32_t batch, uint32_t accumulate, bool jit) {
    FinetuneTraining t = settings();
    t.jit = jit, t.batch = batch, t.accumulate = accumulate, t.max_norm = 0.5;
    FinetuneTrainer trainer(t, model, rows, nullptr);
    UntilStep all(UINT32_MAX);
    trainer.run(all);
    return losses(trainer.report());
  };
  const std::vector<float> large = trained(4, 1, true);
  for (const bool jit : {true, false}) {
    const std::vector<float> several = trained(1, 4, jit);
    ASSERT_EQ(several.size(), large.size());
    for (size_t i = 0; i < large.size(); i++) EXPECT_NEAR(several[i], large[i], 1e-3 * large[i]);
  }
}

TEST_F(Finetune, LayersThatAreComputedAgainGiveTheSame) {
  FinetuneTraining t = settings();
  const std::vector<float> kept = losses(train(t));
  t.recompute = true;
  const std::vector<float> again = losses(train(t));
  for (size_t i = 0; i < kept.size(); i++) EXPECT_NEAR(again[i], kept[i], 1e-4 * kept[i]);
}

}  // namespace
}  // namespace tuff::models
