// Fine-tunes a language model: trains an adapter (LoRA) beside weights that stay as they are,
// packed ones too, or all weights. Called by `tuff finetune` and by tests. Must never print.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tuff/adapter.h>

#include "models/finetune_texts.h"
#include "models/training.h"

namespace tuff::models {

// After the warm-up the learning rate falls to 0, or stays.
inline constexpr const char* kRateSchedules[] = {"cosine", "linear", "constant"};

struct FinetuneTraining : TrainingOptions {
  bool full = false;  // all weights, and no adapter
  std::vector<std::string> targets = language::LoraOptions().targets;
  uint32_t rank = 16;
  double alpha = 32;
  std::string adapter;      // a folder to begin with, which says these three; "": a new one
  uint32_t context = 512;   // tokens of a row
  uint32_t batch = 4;       // rows at once
  uint32_t accumulate = 1;  // batches to a step
  uint32_t steps = 0;
  uint32_t seed = 0;
  uint32_t warmup_steps = 0;  // the rate rises to the whole one
  uint32_t schedule = 0;      // of kRateSchedules
  double learning_rate = 2e-4, weight_decay = 0;
  double max_norm = 1;        // of all gradients together; 0: any
  bool shuffle = true;        // rows, in every pass over them
  bool recompute = false;     // what is inside of layers, for gradients
};

// What a checkpoint of this training is told by.
inline constexpr const char* kFinetuneTask = "finetune";

// As those of the GPT: see gpt_trainer.h.
template <class Function>
void for_each_setting(FinetuneTraining& t, const Function& f) {
  f("full", t.full, SettingRange{0, 1});
  f("rank", t.rank, SettingRange{1, 4096});
  f("alpha", t.alpha, SettingRange{1e-6, 1e6});
  f("context", t.context, SettingRange{2, 1 << 20});
  f("batch", t.batch, SettingRange{1, 4096});
  f("accumulate", t.accumulate, SettingRange{1, 4096});
  f("steps", t.steps, kTrainingSteps);
  f("seed", t.seed, kAnySeed);
  f("warmup", t.warmup_steps, SettingRange{0, kMaxTrainingSteps});
  f("lr", t.learning_rate, kLearningRates);
  f("schedule", t.schedule, SettingRange{0, 2});
  f("weight-decay", t.weight_decay, SettingRange{0, 10});
  f("max-norm", t.max_norm, SettingRange{0, 1e9});
  f("shuffle", t.shuffle, SettingRange{0, 1});
}

// Part of the whole rate that a step has.
double rate_share(uint32_t schedule, uint32_t step, uint32_t warmup_steps, uint32_t steps);

// Which rows a batch has: passes over all rows, each in an order of its own.
class RowOrder {
 public:
  RowOrder(size_t rows, uint32_t seed, bool shuffle) : order_(rows), seed_(seed), shuffle_(shuffle) {}
  size_t at(uint64_t place);

 private:
  std::vector<uint32_t> order_;
  uint32_t seed_;
  bool shuffle_;
  uint64_t pass_ = UINT64_MAX;  // of order_
};

// What a training of all weights needs at least: these, gradients and AdamW's two moments, in F32.
inline constexpr uint64_t kTrainedWeightBytes = 4 * sizeof(float);
// OutOfMemory saying how much of it is missing where a device has so many bytes.
void require_room(uint64_t weights, uint64_t room, const std::string& device);

class FinetuneTrainer final : public Trainer {
 public:
  // `heldout` may be null: no validation, which else is before the first step, every tenth of the
  // steps and after the last. InvalidArgument as Adapter has it, Unsupported as Model::parameters()
  // has, OutOfMemory saying how much is missing for all weights; opens the device.
  FinetuneTrainer(const FinetuneTraining& settings, const language::Model& model,
                  const PackedTexts& texts, const PackedTexts* heldout);
  void run(TrainingObserver& observer);  // once
  // None where all weights are trained.
  const std::optional<language::Adapter>& adapter() const { return adapter_; }
  const language::Model& tuned() const { return tuned_; }

 private:
  FinetuneTraining settings_;
  std::optional<language::Adapter> adapter_;
  nn::StateDict parameters_;
  language::Model tuned_;
  std::unique_ptr<TrainingTask> task_;
};

}  // namespace tuff::models
