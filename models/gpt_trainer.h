// Trains the character-level GPT of gpt_reference.h on a text, and lets it write. Called by
// `tuff train gpt` and by tests. Must never print.
#pragma once

#include <memory>
#include <string>

#include "models/corpus.h"
#include "models/gpt_model.h"
#include "models/training.h"

namespace tuff::models {

struct GptTraining : TrainingOptions {
  GptRecipe recipe;  // its vocabulary is set from the corpus
  GptOptimizer optimizer;
  double dropout = 0;  // 0 in the reference
};

// What a checkpoint of this training is told by.
inline constexpr const char* kGptTask = "gpt";
inline constexpr const char* kVocabularyKey = "vocabulary";  // Vocabulary::hex()

// The settings that decide on the losses, by the names of the command line's options where there
// are such, and their ranges.
template <class Function>
void for_each_setting(GptTraining& t, const Function& f) {
  f("layers", t.recipe.layers, SettingRange{1, 64});
  f("heads", t.recipe.heads, SettingRange{1, 256});
  f("embed", t.recipe.embed, SettingRange{1, 8192});
  f("context", t.recipe.context, SettingRange{1, 8192});
  f("batch", t.recipe.batch, SettingRange{1, 4096});
  f("steps", t.recipe.steps, kTrainingSteps);
  f("seed", t.recipe.seed, kAnySeed);
  f("dropout", t.dropout, SettingRange{0, 0.99});
  f("lr", t.optimizer.learning_rate, kLearningRates);
  f("lr_end", t.optimizer.learning_rate_end, SettingRange{0, 10});
  f("warmup_steps", t.optimizer.warmup_steps, SettingRange{0, kMaxTrainingSteps});
  f("beta1", t.optimizer.beta1, SettingRange{0, 1});
  f("beta2", t.optimizer.beta2, SettingRange{0, 1});
  f("epsilon", t.optimizer.epsilon, SettingRange{0, 1});
  f("weight_decay", t.optimizer.weight_decay, SettingRange{0, 10});
}

class GptTrainer final : public Trainer {
 public:
  // InvalidArgument for a bad recipe or a text shorter than the context; opens the device.
  GptTrainer(const GptTraining& settings, const Corpus& corpus);
  // Once. Validation on 8 fixed batches before the first step, every 50 and after the last.
  void run(TrainingObserver& observer);
  // Text that the model writes after a line break, as GptGenerator does; ends early when the
  // observer asks.
  std::string sample(uint32_t characters, double temperature, TrainingObserver& observer);

 private:
  GptTraining settings_;
  const Corpus& corpus_;
  Gpt model_;
  std::unique_ptr<TrainingTask> task_;
};

}  // namespace tuff::models
