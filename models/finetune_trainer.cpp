#include "models/finetune_trainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include <tuff/jit.h>

#include "base/check.h"
#include "base/os_memory_room.h"
#include "engine/device.h"
#include "models/checkpoint.h"

namespace tuff::models {
namespace {

constexpr uint32_t kValidations = 10;

// Host side of batches: (rows, length) of tokens, targets, texts and positions, and the part that
// each learned token has in the mean.
class RowBatches {
 public:
  RowBatches(const PackedTexts& texts, uint32_t rows, std::string device)
      : texts_(texts), rows_(rows), device_(std::move(device)) {}

  std::vector<Tensor> make_inputs() const {
    const Sizes sizes{int64_t{rows_}, int64_t{texts_.length()}};
    std::vector<Tensor> out;
    for (int i = 0; i < 4; i++) out.push_back(Tensor::zeros(sizes, {DType::I32, device_}));
    out.push_back(Tensor::zeros({}, {DType::F32, device_}));
    for (Tensor& t : out) t = t.clone().realize();
    return out;
  }
  // Row k of the batch is row_of(k).
  template <class Function>
  void write(const Function& row_of, std::vector<Tensor>& inputs) {
    for (std::vector<int32_t>& v : values_) v.clear();
    for (uint32_t k = 0; k < rows_; k++) {
      const size_t row = row_of(k);
      const std::span<const int32_t> parts[] = {texts_.tokens(row), texts_.targets(row),
                                                texts_.texts(row), texts_.positions(row)};
      for (size_t i = 0; i < 4; i++) values_[i].insert(values_[i].end(), parts[i].begin(), parts[i].end());
    }
    const auto left_out = std::ranges::count(values_[1], PackedTexts::kNotLearned);
    learned_ = values_[1].size() - size_t(left_out);
    const float part = 1 / float(std::max<size_t>(learned_, 1));
    for (size_t i = 0; i < 4; i++)
      inputs[i].copy_from(values_[i].data(), values_[i].size() * sizeof(int32_t));
    inputs[4].copy_from(&part, sizeof part);
  }
  size_t learned() const { return learned_; }  // of the last batch

 private:
  const PackedTexts& texts_;
  const uint32_t rows_;
  const std::string device_;
  std::array<std::vector<int32_t>, 4> values_;
  size_t learned_ = 0;
};

class FinetuneTask final : public TrainingTask {
 public:
  // `tuned`: the model by the parameters; `targets`: what they are.
  FinetuneTask(const FinetuneTraining& settings, const language::Model& tuned,
               const nn::StateDict& parameters, std::string targets, const PackedTexts& texts,
               const PackedTexts* heldout, const std::string& device)
      : TrainingTask(parameters, groups_of(parameters, settings)),
        settings_(settings),
        model_(tuned),
        targets_(std::move(targets)),
        texts_(texts),
        heldout_(heldout),
        batches_(texts, settings.batch, device),
        order_(texts.rows(), settings.seed, settings.shuffle),
        validation_([this](const std::vector<Tensor>& in) { return std::vector{loss(in)}; }) {
    if (!heldout) return;
    heldout_batches_.emplace(*heldout, settings.batch, device);
    heldout_inputs_ = heldout_batches_->make_inputs();
  }

  std::vector<Tensor> make_inputs() override { return batches_.make_inputs(); }
  void write_batch(uint32_t number, std::vector<Tensor>& inputs) override {
    const uint64_t first = uint64_t{number} * settings_.batch;
    batches_.write([&](uint32_t k) { return order_.at(first + k); }, inputs);
  }
  uint32_t batches_per_step() const override { return settings_.accumulate; }
  double max_gradient_norm() const override { return settings_.max_norm; }
  void before_step(uint32_t step) override {
    optimizer().set_lr(settings_.learning_rate * rate_share(settings_.schedule, step,
                                                            settings_.warmup_steps,
                                                            settings_.steps));
  }
  Tensor loss(const std::vector<Tensor>& in) override {
    const Tensor sum = model_.cross_entropy(in[0], in[1], PackedTexts::kNotLearned, Reduction::Sum,
                                            {.texts = in[2],
                                             .positions = in[3],
                                             .checkpoints = settings_.recompute});
    return sum * in[4];
  }
  Metadata identity() const override {
    Metadata out{{"task", {kFinetuneTask}}};
    append_settings(out, settings_);
    const auto add = [&](const char* key, const std::string& value) { out.push_back({key, {value}}); };
    const language::Description& d = model_.description();
    add("model", fmt::format("{} {} {}", d.architecture, d.parameters, d.weight_bytes));
    add("targets", targets_);
    add("texts_xxh64", texts_.hash_hex());
    return out;
  }
  bool validates_after(uint32_t done) const override {
    if (!heldout_) return false;
    const uint32_t interval = std::max(settings_.steps / kValidations, 1u);
    return done % interval == 0 || done == settings_.steps;
  }
  // The mean over all tokens; rows beyond the last are those of the first batch again, and the
  // batch counts as a whole.
  double validation_loss(TrainingObserver& observer) override {
    double sum = 0, count = 0;
    for (size_t first = 0; first < heldout_->rows() && !observer.stop_requested();
         first += settings_.batch) {
      heldout_batches_->write([&](uint32_t k) { return (first + k) % heldout_->rows(); },
                              heldout_inputs_);
      const double n = double(heldout_batches_->learned());
      sum += validation_(heldout_inputs_)[0].item() * n, count += n;
    }
    return sum / std::max(count, 1.0);
  }

 private:
  // Weights decay, norms and biases do not.
  static optim::AdamW::Groups groups_of(const nn::StateDict& parameters,
                                        const FinetuneTraining& settings) {
    optim::AdamW::Options options{.lr = settings.learning_rate,
                                  .weight_decay = settings.weight_decay};
    nn::Parameters maps, others;
    for (const nn::NamedTensor& p : parameters)
      (p.tensor.dim() > 1 ? maps : others).push_back(p.tensor);
    optim::AdamW::Groups groups{{maps, options}};
    options.weight_decay = 0;
    if (!others.empty()) groups.push_back({others, options});
    return groups;
  }
  const FinetuneTraining& settings_;
  const language::Model model_;
  const std::string targets_;
  const PackedTexts& texts_;
  const PackedTexts* heldout_;
  RowBatches batches_;
  std::optional<RowBatches> heldout_batches_;
  RowOrder order_;
  std::vector<Tensor> heldout_inputs_;
  Jit validation_;
};

std::optional<language::Adapter> first_adapter(const FinetuneTraining& t,
                                               const language::Model& model) {
  if (t.full) return {};
  if (!t.adapter.empty()) return language::Adapter::open(t.adapter, model);
  return language::Adapter::create(
      model, {.rank = t.rank, .alpha = t.alpha, .targets = t.targets, .seed = t.seed});
}

// What a device has left.
uint64_t room_of(const std::string& device) {
  const std::shared_ptr<engine::Device> opened = engine::Device::get(device);
  const hcq::DeviceInfo& info = opened->hcq().info();
  if (!info.hardware) return os::memory_room().free_bytes;
  const uint64_t taken = opened->hcq().allocator().stats().live_bytes;
  return info.memory_bytes - std::min(taken, info.memory_bytes);
}

nn::StateDict first_parameters(const std::optional<language::Adapter>& adapter,
                               const language::Model& model, const std::string& device) {
  if (adapter) return adapter->parameters();
  require_room(model.description().parameters, room_of(device), device);
  return model.parameters();
}

}  // namespace

double rate_share(uint32_t schedule, uint32_t step, uint32_t warmup_steps, uint32_t steps) {
  if (step < warmup_steps) return double(step + 1) / double(warmup_steps + 1);
  const std::string_view kind = kRateSchedules[schedule];
  if (kind == "constant") return 1;
  const double done =
      double(step - warmup_steps) / double(std::max(steps, warmup_steps + 1) - warmup_steps);
  if (kind == "linear") return 1 - done;
  return (1 + std::cos(std::numbers::pi * done)) / 2;
}

// Fisher and Yates' shuffle by numbers that are the same on every machine.
size_t RowOrder::at(uint64_t place) {
  const uint64_t pass = place / order_.size();
  if (pass != pass_) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::mt19937_64 random((uint64_t{seed_} << 32) + pass);
    for (size_t i = order_.size(); shuffle_ && i > 1; i--)
      std::swap(order_[i - 1], order_[random() % i]);
    pass_ = pass;
  }
  return order_[place % order_.size()];
}

// Before any of it is taken: a training that ends for want of memory has cost its user time.
void require_room(uint64_t weights, uint64_t room, const std::string& device) {
  const uint64_t needed = weights * kTrainedWeightBytes;
  constexpr double kGib = 1 << 30;
  if (needed > room)
    fail<OutOfMemory>("to train all {} weights takes {:.1f} GiB (F32, gradients and AdamW's two "
                      "moments), of which {:.1f} GiB are missing: {} has {:.1f} GiB left; an "
                      "adapter takes little", weights, double(needed) / kGib, double(needed - room) / kGib,
                      device, double(room) / kGib);
}

FinetuneTrainer::FinetuneTrainer(const FinetuneTraining& settings, const language::Model& model,
                                 const PackedTexts& texts, const PackedTexts* heldout)
    : Trainer(settings.device),
      settings_(settings),
      adapter_(first_adapter(settings, model)),
      parameters_(first_parameters(adapter_, model, device())),
      tuned_(adapter_ ? model.with_adapter(*adapter_) : model.with_parameters(parameters_)) {
  const std::string targets =
      adapter_ ? fmt::format("{}", fmt::join(adapter_->options().targets, " ")) : "all weights";
  task_ = std::make_unique<FinetuneTask>(settings_, tuned_, parameters_, targets, texts, heldout,
                                         device());
  ready(*task_);
}

void FinetuneTrainer::run(TrainingObserver& observer) {
  run_task(*task_, settings_.steps, settings_, observer);
}

}  // namespace tuff::models
