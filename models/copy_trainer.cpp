#include "models/copy_trainer.h"

#include <tuff/jit.h>
#include <tuff/optim.h>

#include "base/check.h"
#include "models/checkpoint.h"

namespace tuff::models {
namespace {

constexpr uint32_t kTrainStream = 0x40000, kTestStream = 0x50000;
constexpr uint32_t kTestBatches = 8;

GptRecipe recipe_of(const CopyTraining& s) {
  if (s.length == 0) fail<InvalidArgument>("copy: length 0; at least 1 token is needed");
  return {.vocabulary = s.alphabet,
          .layers = s.layers,
          .heads = s.heads,
          .embed = s.embed,
          .context = 2 * s.length - 1,
          .batch = s.batch,
          .steps = s.steps,
          .seed = s.seed};
}

// Batches of sequences; the model reads all but the last token and answers the second half.
class Sequences {
 public:
  Sequences(const CopyTraining& settings, std::string device)
      : settings_(settings),
        device_(std::move(device)),
        context_(2 * settings.length - 1),
        x_(size_t{settings.batch} * context_),
        y_(size_t{settings.batch} * settings.length) {}

  std::vector<Tensor> make_inputs() const {
    const TensorOptions options{DType::I32, device_};
    return {Tensor::from(x_, {settings_.batch, context_}, options),
            Tensor::from(y_, {int64_t(y_.size())}, options)};
  }
  void write(uint32_t stream, uint32_t batch_index, std::vector<Tensor>& inputs) {
    const ReferenceRandom random(settings_.seed);
    for (uint32_t row = 0; row < settings_.batch; ++row) {
      int32_t* y = y_.data() + size_t{row} * settings_.length;
      const uint32_t first = (batch_index * settings_.batch + row) * settings_.length;
      for (uint32_t i = 0; i < settings_.length; ++i) {
        y[i] = static_cast<int32_t>(random.bits(stream, first + i) % settings_.alphabet);
      }
      int32_t* x = x_.data() + size_t{row} * context_;
      for (uint32_t t = 0; t < context_; ++t) x[t] = y[t % settings_.length];
    }
    inputs[0].copy_from(x_.data(), x_.size() * sizeof(int32_t));
    inputs[1].copy_from(y_.data(), y_.size() * sizeof(int32_t));
  }
  std::span<const int32_t> answers() const { return y_; }

 private:
  const CopyTraining& settings_;
  std::string device_;
  uint32_t context_;
  std::vector<int32_t> x_, y_;
};

// Logits of the second half: (B * length, alphabet).
Tensor answers_of(const Gpt& model, const Tensor& x, int64_t length) {
  return model(x).narrow(1, length - 1, length).flatten(0, 1);
}

class CopyTask final : public TrainingTask {
 public:
  CopyTask(const CopyTraining& settings, const Gpt& model, const std::string& device)
      : TrainingTask(model.state_dict(), {.lr = settings.learning_rate, .weight_decay = 0}),
        settings_(settings),
        model_(model),
        sequences_(settings, device) {}

  std::vector<Tensor> make_inputs() override { return sequences_.make_inputs(); }
  void write_batch(uint32_t step, std::vector<Tensor>& inputs) override {
    sequences_.write(kTrainStream, step, inputs);
  }
  void before_step(uint32_t step) override {
    const GptOptimizer schedule{.learning_rate = settings_.learning_rate,
                                .learning_rate_end = settings_.learning_rate / 10};
    optimizer().set_lr(gpt_learning_rate(schedule, step, settings_.steps));
  }
  Tensor loss(const std::vector<Tensor>& inputs) override {
    return answers_of(model_, inputs[0], settings_.length).cross_entropy(inputs[1]);
  }
  Metadata identity() const override {
    Metadata out{{"task", {kCopyTask}}};
    append_settings(out, settings_);
    return out;
  }

 private:
  const CopyTraining& settings_;
  const Gpt& model_;
  Sequences sequences_;
};

}  // namespace

CopyTrainer::CopyTrainer(const CopyTraining& settings)
    : Trainer(settings.device), settings_(settings), model_(recipe_of(settings_), device()) {
  model_.mask_attention = settings_.mask_attention;
  task_ = std::make_unique<CopyTask>(settings_, model_, device());
  ready(*task_);
}

void CopyTrainer::run(TrainingObserver& observer) {
  run_task(*task_, settings_.steps, settings_, observer);
}

double CopyTrainer::accuracy(TrainingObserver& observer) const {
  const CopyTraining& s = settings_;
  Sequences sequences(s, device());
  std::vector<Tensor> inputs = sequences.make_inputs();
  Jit answer([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{answers_of(model_, in[0], s.length).argmax(1)};
  });
  uint64_t right = 0, asked = 0;
  for (uint32_t i = 0; i < kTestBatches && !observer.stop_requested(); ++i) {
    sequences.write(kTestStream, i, inputs);
    const std::vector<int32_t> given = answer({inputs[0]})[0].to_vector<int32_t>();
    for (size_t k = 0; k < given.size(); ++k) right += given[k] == sequences.answers()[k];
    asked += given.size();
  }
  return asked ? static_cast<double>(right) / static_cast<double>(asked) : 0;
}

}  // namespace tuff::models
