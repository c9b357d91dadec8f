// Checkpoints of trainings: a training that goes on from one has the losses of one without a break;
// what a file lacks, or is of another training, is refused by name and changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/os.h"
#include "models/checkpoint.h"
#include "models/copy_trainer.h"
#include "models/corpus.h"
#include "models/digits.h"
#include "models/digits_trainer.h"
#include "models/gpt_generator.h"
#include "models/gpt_trainer.h"
#include "io/scratch_folder.h"
#include "tensor/devices.h"

namespace tuff::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class UntilStep final : public TrainingObserver {
 public:
  explicit UntilStep(uint32_t last) : last_(last) {}
  void on_step(const StepRecord& r) override { step_ = r.step; }
  bool stop_requested() override { return step_ >= last_; }

 private:
  uint32_t last_, step_ = 0;
};

std::vector<float> losses(const TrainingReport& r) {
  std::vector<float> out;
  for (const StepRecord& s : r.steps) out.push_back(s.loss);
  return out;
}

std::vector<uint8_t> contents(const std::string& path) { return os::read_file(path); }

GptTraining small_gpt(const std::string& device) {
  GptTraining t;
  t.device = device;
  t.recipe = {.layers = 1, .heads = 2, .embed = 8, .context = 8, .batch = 2, .steps = 9, .seed = 3};
  t.dropout = 0.2;
  return t;
}
std::vector<uint8_t> small_text() {
  std::vector<uint8_t> text;
  for (int i = 0; i < 4000; i++) text.push_back(uint8_t('a' + (i * i / 7 + i) % 11));
  return text;
}
Corpus small_corpus() { return {small_text(), "a test"}; }

// Trains to `last` and saves.
TrainingReport train(GptTraining t, const Corpus& corpus, const CheckpointPlan& plan,
                     uint32_t last = UINT32_MAX) {
  t.checkpoints = plan;
  GptTrainer trainer(t, corpus);
  UntilStep observer(last);
  trainer.run(observer);
  return trainer.report();
}

class CheckpointOn : public testing::TestWithParam<std::string> {
 protected:
  ScratchFolder folder;
  std::string whole = folder.path("whole.safetensors"), part = folder.path("part.safetensors");
};

class Warned final : public TrainingObserver {
 public:
  void on_not_finite(uint32_t steps_done, double loss, const std::string& weights) override {
    told.push_back(fmt::format("{} {}: {}", steps_done, loss, weights));
  }
  std::vector<std::string> told;
};

TEST_P(CheckpointOn, ALossThatIsNoNumberIsToldOnce) {
  const Corpus corpus = small_corpus();
  GptTraining t = small_gpt(GetParam());
  t.checkpoints = {.save = part};
  const auto told = [&] {
    Warned observer;
    GptTrainer(t, corpus).run(observer);
    return observer.told;
  };
  EXPECT_THAT(told(), testing::IsEmpty());
  TensorDict file = load(part);
  for (const std::string& name : file.names()) file.at(name).realize();
  const Tensor weight = file.at("model.lnf.weight");
  file.set("model.lnf.weight", (weight.to("CPU") * NAN).realize());
  save(whole, file);
  t.checkpoints = {.resume = whole};
  t.recipe.steps = 12;
  EXPECT_THAT(told(), testing::ElementsAre(testing::StartsWith("10 nan: nan in ")));
}

TEST_P(CheckpointOn, GptGoesOnAsWithoutABreak) {
  const Corpus corpus = small_corpus();
  const GptTraining t = small_gpt(GetParam());
  const TrainingReport uninterrupted = train(t, corpus, {.save = whole});
  ASSERT_EQ(uninterrupted.steps.size(), 9u);
  for (const uint32_t broken_at : {1u, 2u, 4u, 8u}) {
    train(t, corpus, {.save = part}, broken_at);
    const TrainingReport resumed = train(t, corpus, {.resume = part, .save = part});
    EXPECT_EQ(resumed.resumed_at, broken_at);
    EXPECT_EQ(resumed.steps_of_this_run(), 9 - broken_at);
    EXPECT_EQ(losses(resumed), losses(uninterrupted)) << "broken at " << broken_at;
    ASSERT_EQ(resumed.validations.size(), uninterrupted.validations.size());
    for (size_t i = 0; i < resumed.validations.size(); i++)
      EXPECT_EQ(resumed.validations[i].loss, uninterrupted.validations[i].loss);
    EXPECT_EQ(contents(part), contents(whole)) << "broken at " << broken_at;
  }
}

TEST_P(CheckpointOn, DigitsGoOnAsWithoutABreak) {
  const io::ImageSplit images = draw_digits({.seed = 1, .train_count = 64, .test_count = 8});
  DigitsTraining t;
  t.device = GetParam();
  t.recipe = {.channels1 = 2, .channels2 = 2, .hidden = 8, .batch = 8};
  t.steps = 5;
  const auto run = [&](const CheckpointPlan& plan, uint32_t last) {
    t.checkpoints = plan;
    DigitsTrainer trainer(t, images);
    UntilStep observer(last);
    trainer.run(observer);
    return losses(trainer.report());
  };
  const std::vector<float> uninterrupted = run({.save = whole}, UINT32_MAX);
  run({.save = part}, 3);
  EXPECT_EQ(run({.resume = part, .save = part}, UINT32_MAX), uninterrupted);
  EXPECT_EQ(contents(part), contents(whole));
}

TEST_P(CheckpointOn, CopyGoesOnAsWithoutABreak) {
  CopyTraining t{
      .length = 4, .alphabet = 8, .layers = 1, .heads = 2, .embed = 8, .batch = 2, .steps = 5};
  t.device = GetParam();
  const auto run = [&](const CheckpointPlan& plan, uint32_t last) {
    t.checkpoints = plan;
    CopyTrainer trainer(t);
    UntilStep observer(last);
    trainer.run(observer);
    return losses(trainer.report());
  };
  const std::vector<float> uninterrupted = run({.save = whole}, UINT32_MAX);
  run({.save = part}, 2);
  EXPECT_EQ(run({.resume = part, .save = part}, UINT32_MAX), uninterrupted);
  EXPECT_EQ(contents(part), contents(whole));
}

INSTANTIATE_TEST_SUITE_P(Devices, CheckpointOn, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

class CheckpointErrors : public testing::Test {
 protected:
  void SetUp() override {
    train(training, corpus, {.save = path}, 2);
    original = contents(path);
  }
  // What going on from the file says; that nothing was trained is part of it.
  template <class E>
  std::string refusal(const GptTraining& t, const Corpus& text) {
    return error_text<E>([&] { train(t, text, {.resume = path}); });
  }
  template <class E>
  std::string refusal(const std::function<void(TensorDict&)>& change) {
    TensorDict file = load(path, {.device = "NULL"});
    const TensorDict before = file;
    change(file);
    save(path, file);
    return refusal<E>(training, corpus);
  }

  ScratchFolder folder;
  std::string path = folder.path("state.safetensors");
  Corpus corpus = small_corpus();
  GptTraining training = small_gpt("NULL");
  std::vector<uint8_t> original;
};

TEST_F(CheckpointErrors, AnotherModelOrOtherSettings) {
  GptTraining other = training;
  other.recipe.embed = 16;
  EXPECT_THAT(refusal<InvalidArgument>(other, corpus),
              AllOf(HasSubstr(path), HasSubstr("setting.embed is 8, this training's is 16")));
  other = training;
  other.optimizer.beta1 = 0.5;
  EXPECT_THAT(refusal<InvalidArgument>(other, corpus), HasSubstr("setting.beta1 is 0.9"));
  other = training;
  other.recipe.seed = 4;
  EXPECT_THAT(refusal<InvalidArgument>(other, corpus), HasSubstr("setting.seed is 3"));
  other = training;
  other.recipe.steps = 1;
  EXPECT_THAT(refusal<InvalidArgument>(other, corpus), HasSubstr("2 steps are done there"));
}

TEST_F(CheckpointErrors, AnotherText) {
  std::vector<uint8_t> bytes = small_text();
  std::ranges::reverse(bytes);
  EXPECT_THAT(refusal<InvalidArgument>(training, Corpus(bytes, "another")),
              HasSubstr("the checkpoint's text_xxh64 is"));
}

TEST_F(CheckpointErrors, AnotherTask) {
  EXPECT_THAT(error_text<InvalidArgument>([&] { Checkpoint(path, kDigitsTask, "NULL"); }),
              HasSubstr("a checkpoint of the training 'gpt', not 'digits'"));
}

TEST_F(CheckpointErrors, MissingAndForeignTensors) {
  EXPECT_THAT(refusal<InvalidArgument>([](TensorDict& f) { f.erase("model.lnf.bias"); }),
              AllOf(HasSubstr(path), HasSubstr("'lnf.bias' is missing")));
}
TEST_F(CheckpointErrors, AnotherShape) {
  EXPECT_THAT(refusal<ShapeError>([](TensorDict& f) {
                f.set("model.lnf.bias", Tensor::zeros({9}, {.device = "NULL"}));
              }),
              AllOf(HasSubstr(path), HasSubstr("'lnf.bias' is (8,), (9,) was given")));
}
TEST_F(CheckpointErrors, AnotherOptimizer) {
  EXPECT_THAT(refusal<InvalidArgument>([](TensorDict& f) {
                for (const std::string& name : f.names()) {
                  if (!name.starts_with("optimizer.state")) continue;
                  if (name.ends_with(".exp_avg"))
                    f.set(name.substr(0, name.size() - 7) + "momentum_buffer", f.at(name));
                  f.erase(name);
                }
              }),
              AllOf(HasSubstr(path), HasSubstr("AdamW"), HasSubstr("momentum_buffer"),
                    HasSubstr("another optimizer")));
}
TEST_F(CheckpointErrors, HistoriesThatAreNone) {
  EXPECT_THAT(refusal<InvalidArgument>([](TensorDict& f) {
                f.set("history.loss", Tensor::zeros({7}, {.device = "NULL"}));
              }),
              HasSubstr("after 2 steps it has 7 losses"));
}
TEST_F(CheckpointErrors, MetadataThatIsWrong) {
  EXPECT_THAT(refusal<InvalidArgument>([](TensorDict& f) { f.set_metadata("step", {"two"}); }),
              HasSubstr("its step is 'two'"));
  EXPECT_THAT(refusal<InvalidArgument>([](TensorDict& f) {
                f.set_metadata("step", {"2"});
                f.set_metadata("data_position", {"3"});
              }),
              HasSubstr("the next batch is 2, not 3"));
  EXPECT_THAT(
      refusal<InvalidArgument>([](TensorDict& f) { f.set_metadata("tuff_checkpoint", {"2"}); }),
      HasSubstr("version 2; this tuff reads version 1"));
}

TEST_F(CheckpointErrors, FilesThatAreNoCheckpoints) {
  TensorDict plain;
  plain.set("x", Tensor::zeros({3}, {.device = "NULL"}));
  save(path, plain);
  EXPECT_THAT(refusal<InvalidArgument>(training, corpus), HasSubstr("no checkpoint of a training"));
  EXPECT_THAT(error_text<IoError>(
                  [&] { train(training, corpus, {.resume = folder.path("missing.safetensors")}); }),
              HasSubstr("No such file"));
}

TEST_F(CheckpointErrors, TruncatedFiles) {
  for (const size_t left : {size_t(0), size_t(7), size_t(100), original.size() - 1}) {
    folder.write("state.safetensors", std::span(original).first(left));
    EXPECT_THAT(refusal<IoError>(training, corpus), HasSubstr(path)) << left;
  }
}

TEST_F(CheckpointErrors, PlacesThatCannotBeWritten) {
  const std::string missing = folder.path("no/such/state.safetensors");
  EXPECT_THAT(error_text<IoError>([&] { train(training, corpus, {.save = missing}); }),
              HasSubstr("no/such"));
  EXPECT_THAT(error_text<IoError>([&] { train(training, corpus, {.save = folder.path()}); }),
              HasSubstr("Is a directory"));
}

TEST_F(CheckpointErrors, ModelsThatCannotWrite) {
  const auto generator_error = [&](const std::function<void(TensorDict&)>& change) {
    folder.write("state.safetensors", original);
    TensorDict file = load(path, {.device = "NULL"});
    for (const std::string& name : file.names()) file.at(name);
    change(file);
    save(path, file);
    return error_text<InvalidArgument>([&] { load_gpt(path, "NULL"); });
  };
  EXPECT_EQ(generator_error([](TensorDict&) {}), "");
  for (const char* name : {"setting.embed", "setting.context"})
    EXPECT_THAT(generator_error([&](TensorDict& f) { f.set_metadata(name, {"60"}); }),
                AllOf(HasSubstr(path), HasSubstr("its tensors are not those of a GPT")))
        << name;
  EXPECT_THAT(generator_error([](TensorDict& f) { f.set_metadata("setting.layers", {"60"}); }),
              AllOf(HasSubstr(path), HasSubstr("'blocks.1.ln1.weight', 'blocks.1.ln1.bias'"), HasSubstr("are missing")));
  for (const char* name : {"layers", "embed", "context", "heads", "batch", "steps", "lr"})
    for (const char* value : {"0", "4000000000"})
      EXPECT_THAT(generator_error([&](TensorDict& f) {
                    f.set_metadata(std::string("setting.") + name, {value});
                  }),
                  AllOf(HasSubstr(path), HasSubstr(std::string("its ") + name + " is " + value)));
  EXPECT_THAT(generator_error([](TensorDict& f) { f.set_metadata("setting.dropout", {"nan"}); }),
              HasSubstr("its dropout is nan; it has to be from 0 to 0.99"));
  EXPECT_THAT(generator_error([](TensorDict& f) { f.set_metadata("setting.heads", {"3"}); }),
              HasSubstr("3 heads do not divide embed 8"));
  EXPECT_THAT(generator_error([](TensorDict& f) { f.set_metadata("vocabulary", {"6161"}); }),
              HasSubstr("not a list of ascending bytes"));
  EXPECT_THAT(generator_error([](TensorDict& f) { f.erase("model.blocks.0.mlp.fc.weight"); }),
              HasSubstr("'blocks.0.mlp.fc.weight' is missing"));
}

}  // namespace
}  // namespace tuff::models
