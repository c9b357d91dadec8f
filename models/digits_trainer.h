// Trains the ConvNet of digits_reference.h on images of digits, and a softmax regression on the
// same batches for comparison. Called by `tuff train digits` and by tests. Must never print.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/confusion.h"
#include "models/digits_reference.h"
#include "io/idx.h"
#include "models/training.h"

namespace tuff::models {

struct DigitsTraining {
  DigitsNetRecipe recipe;  // rows and cols are set from the images
  uint32_t steps = 0;
  uint32_t test_images = UINT32_MAX;  // asked at most, the first ones
  bool jit = true;
  std::string device;  // "" is the default device
  double seconds = 0;  // see LoopSettings
  CheckpointPlan checkpoints;
};

// What a checkpoint of this training is told by.
inline constexpr const char* kDigitsTask = "digits";

// As those of the GPT: see gpt_trainer.h.
template <class Function>
void for_each_setting(DigitsTraining& t, const Function& f) {
  f("channels1", t.recipe.channels1, SettingRange{1, 1024});
  f("channels2", t.recipe.channels2, SettingRange{1, 1024});
  f("hidden", t.recipe.hidden, SettingRange{1, 8192});
  f("batch", t.recipe.batch, SettingRange{1, 4096});
  f("steps", t.steps, kTrainingSteps);
  f("seed", t.recipe.seed, kAnySeed);
  f("lr", t.recipe.learning_rate, kLearningRates);
}

class DigitsTrainer {
 public:
  // InvalidArgument for a bad recipe or an empty set; opens the device.
  DigitsTrainer(const DigitsTraining& settings, const io::ImageSplit& images);
  ~DigitsTrainer();
  void run(TrainingObserver& observer);  // once
  const TrainingReport& report() const;
  // The ConvNet's answers to the test images; those not asked before an interrupt are left out.
  ConfusionTable test(TrainingObserver& observer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Test accuracy of a softmax regression (one linear layer) after as many steps of the same batches.
double softmax_regression_accuracy(const DigitsTraining& settings, const io::ImageSplit& images,
                                   TrainingObserver& observer);

}  // namespace tuff::models
