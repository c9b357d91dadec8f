// Trains the character-level GPT of gpt_reference.h on a text, and lets it write. Called by
// `tuff train gpt` and by tests. Must never print.
#pragma once

#include <memory>
#include <string>

#include "io/corpus.h"
#include "io/gpt_reference.h"
#include "io/training.h"

namespace tuff::io {

struct GptTraining {
  GptRecipe recipe;  // its vocabulary is set from the corpus
  GptOptimizer optimizer;
  double dropout = 0;  // 0 in the reference
  bool jit = true;
  std::string device;  // "" is the default device
};

class GptTrainer {
 public:
  // InvalidArgument for a bad recipe or a text shorter than the context; opens the device.
  GptTrainer(const GptTraining& settings, const Corpus& corpus);
  ~GptTrainer();
  // Once. Validation on 8 fixed batches before the first step, every 50 and after the last.
  void run(TrainingObserver& observer);
  const TrainingReport& report() const;
  // Text that the model writes after a line break; ends early when the observer asks.
  std::string sample(uint32_t characters, double temperature, TrainingObserver& observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::io
