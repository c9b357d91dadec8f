// The copying task: 16 random tokens, then the same 16 again; the model has to predict the second
// half. A transformer learns it through attention, and cannot without: the test of attention and of
// its gradient. Called by `tuff train copy` and by tests. Must never print.
#pragma once

#include <memory>
#include <string>

#include "models/gpt_model.h"
#include "models/training.h"

namespace tuff::models {

struct CopyTraining : TrainingOptions {
  uint32_t length = 16;    // tokens to copy
  uint32_t alphabet = 32;  // chance is right once in so many
  uint32_t layers = 2, heads = 4, embed = 64, batch = 32;
  uint32_t steps = 300;
  uint32_t seed = 1;
  double learning_rate = 3e-3;
  bool mask_attention = false;
};

// What a checkpoint of this training is told by.
inline constexpr const char* kCopyTask = "copy";

// As those of the GPT: see gpt_trainer.h.
template <class Function>
void for_each_setting(CopyTraining& t, const Function& f) {
  f("length", t.length, SettingRange{1, 4096});
  f("alphabet", t.alphabet, SettingRange{1, 8192});
  f("layers", t.layers, SettingRange{1, 64});
  f("heads", t.heads, SettingRange{1, 256});
  f("embed", t.embed, SettingRange{1, 8192});
  f("batch", t.batch, SettingRange{1, 4096});
  f("steps", t.steps, kTrainingSteps);
  f("seed", t.seed, kAnySeed);
  f("lr", t.learning_rate, kLearningRates);
  f("mask-attention", t.mask_attention, SettingRange{0, 1});
}

class CopyTrainer final : public Trainer {
 public:
  explicit CopyTrainer(const CopyTraining& settings);
  void run(TrainingObserver& observer);  // once
  // Share of right tokens in the second halves of fresh sequences.
  double accuracy(TrainingObserver& observer) const;

 private:
  CopyTraining settings_;
  Gpt model_;
  std::unique_ptr<TrainingTask> task_;
};

}  // namespace tuff::models
