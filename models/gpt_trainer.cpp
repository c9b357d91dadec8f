#include "models/gpt_trainer.h"

#include <tuff/jit.h>
#include <tuff/optim.h>

#include "base/check.h"
#include "models/checkpoint.h"
#include "models/gpt_generator.h"

namespace tuff::models {
namespace {

// Host side of batches of text: (B, T) tokens and the (B * T) tokens that follow them.
class TextBatches {
 public:
  TextBatches(const GptRecipe& recipe, std::string device)
      : recipe_(recipe),
        device_(std::move(device)),
        starts_(recipe.batch),
        x_(size_t{recipe.batch} * recipe.context),
        y_(x_.size()) {}

  std::vector<Tensor> make_inputs() const {
    const TensorOptions options{DType::I32, device_};
    return {Tensor::from(x_, {recipe_.batch, recipe_.context}, options),
            Tensor::from(y_, {int64_t{recipe_.batch} * recipe_.context}, options)};
  }
  std::span<uint32_t> starts() { return starts_; }
  void write(std::span<const uint8_t> tokens, std::vector<Tensor>& inputs) {
    size_t at = 0;
    for (const uint32_t start : starts_) {
      for (uint32_t t = 0; t < recipe_.context; ++t, ++at) {
        x_[at] = tokens[start + t];
        y_[at] = tokens[start + t + 1];
      }
    }
    inputs[0].copy_from(x_.data(), x_.size() * sizeof(int32_t));
    inputs[1].copy_from(y_.data(), y_.size() * sizeof(int32_t));
  }

 private:
  const GptRecipe& recipe_;
  std::string device_;
  std::vector<uint32_t> starts_;
  std::vector<int32_t> x_, y_;
};

optim::AdamW::Options adamw_options(const GptOptimizer& o) {
  return {.lr = o.learning_rate,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.epsilon,
          .weight_decay = o.weight_decay,
          .decay_matrices_only = true};
}

GptTraining with_vocabulary(GptTraining settings, const Corpus& corpus) {
  settings.recipe.vocabulary = static_cast<uint32_t>(corpus.vocabulary().size());
  corpus.require_context(settings.recipe.context);
  return settings;
}

class GptTask final : public TrainingTask {
 public:
  GptTask(const GptTraining& settings, const Corpus& corpus, Gpt& model)
      : TrainingTask(model.state_dict(), adamw_options(settings.optimizer)),
        settings_(settings),
        corpus_(corpus),
        model_(model),
        batches_(settings.recipe, model.wte.weight.device()),
        validation_inputs_(batches_.make_inputs()),
        validation_([this](const std::vector<Tensor>& in) { return std::vector{loss(in)}; }) {}

  std::vector<Tensor> make_inputs() override { return batches_.make_inputs(); }
  void write_batch(uint32_t step, std::vector<Tensor>& inputs) override {
    const std::span<const uint8_t> tokens = corpus_.train_tokens();
    gpt_train_offsets(settings_.recipe, step, tokens.size(), batches_.starts());
    batches_.write(tokens, inputs);
  }
  void before_step(uint32_t step) override {
    optimizer().set_lr(gpt_learning_rate(settings_.optimizer, step, settings_.recipe.steps));
  }
  Tensor loss(const std::vector<Tensor>& inputs) override {
    const Tensor logits = model_(inputs[0]);
    return logits.flatten(0, 1).cross_entropy(inputs[1]);
  }
  Metadata identity() const override {
    Metadata out{{"task", {kGptTask}}};
    append_settings(out, settings_);
    out.push_back({kVocabularyKey, {corpus_.vocabulary().hex()}});
    out.push_back({"text_xxh64", {corpus_.hash_hex()}});
    return out;
  }
  bool validates_after(uint32_t done) const override {
    return done % kGptValidationInterval == 0 || done == settings_.recipe.steps;
  }
  double validation_loss(TrainingObserver& observer) override {
    const std::span<const uint8_t> tokens = corpus_.heldout_tokens();
    double sum = 0;
    for (uint32_t i = 0; i < kGptValidationBatches && !observer.stop_requested(); ++i) {
      gpt_validation_offsets(settings_.recipe, i, tokens.size(), batches_.starts());
      batches_.write(tokens, validation_inputs_);
      sum += validation_(validation_inputs_)[0].item();
    }
    return sum / kGptValidationBatches;
  }

 private:
  const GptTraining& settings_;
  const Corpus& corpus_;
  Gpt& model_;
  TextBatches batches_;
  std::vector<Tensor> validation_inputs_;
  Jit validation_;
};

}  // namespace

GptTrainer::GptTrainer(const GptTraining& settings, const Corpus& corpus)
    : Trainer(settings.device),
      settings_(with_vocabulary(settings, corpus)),
      corpus_(corpus),
      model_(settings_.recipe, device()) {
  model_.dropout = settings_.dropout;
  task_ = std::make_unique<GptTask>(settings_, corpus_, model_);
  ready(*task_);
}

void GptTrainer::run(TrainingObserver& observer) {
  if (settings_.dropout > 0) Tensor::manual_seed(settings_.recipe.seed);
  run_task(*task_, settings_.recipe.steps, settings_, observer);
}

std::string GptTrainer::sample(uint32_t characters, double temperature,
                               TrainingObserver& observer) {
  const Vocabulary& vocabulary = corpus_.vocabulary();
  const uint8_t first = first_token(vocabulary);
  GptGenerator generator(model_, settings_.recipe.seed);
  generator.read({&first, 1});
  std::vector<uint8_t> written;
  while (written.size() < characters && !observer.stop_requested())
    written.push_back(generator.write(temperature));
  return vocabulary.decode(written);
}

}  // namespace tuff::models
