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

struct DigitsTraining : TrainingOptions {
  DigitsNetRecipe recipe;  // rows and cols are set from the images
  uint32_t steps = 0;
  uint32_t test_images = UINT32_MAX;  // asked at most, the first ones
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

// Images (N, 1, rows, cols) -> logits (N, classes).
class Classifier {
 public:
  virtual ~Classifier() = default;
  virtual Tensor operator()(const Tensor& x) const = 0;
  virtual nn::StateDict state_dict() const = 0;
};
enum class ClassifierKind : uint8_t { ConvNet, SoftmaxRegression };

class DigitsTrainer final : public Trainer {
 public:
  // InvalidArgument for a bad recipe or an empty set; opens the device.
  DigitsTrainer(const DigitsTraining& settings, const io::ImageSplit& images,
                ClassifierKind kind = ClassifierKind::ConvNet);
  void run(TrainingObserver& observer);  // once
  // The model's answers to the test images; those not asked before an interrupt are left out.
  ConfusionTable test(TrainingObserver& observer) const;
  const Classifier& model() const { return *model_; }

 private:
  DigitsTraining settings_;
  const io::ImageSplit& images_;
  std::unique_ptr<const Classifier> model_;
  std::unique_ptr<TrainingTask> task_;
};

// Test accuracy of a softmax regression (one linear layer) after as many steps of the same batches.
double softmax_regression_accuracy(const DigitsTraining& settings, const io::ImageSplit& images,
                                   TrainingObserver& observer);

}  // namespace tuff::models
