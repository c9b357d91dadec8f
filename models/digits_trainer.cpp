#include "models/digits_trainer.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include <tuff/jit.h>
#include <tuff/optim.h>

#include "base/check.h"
#include "models/checkpoint.h"

namespace tuff::models {
namespace {

constexpr uint32_t kRegressionStream = 100;  // of initial weights

class ConvNet final : public Classifier {
 public:
  ConvNet(const DigitsNetRecipe& recipe, const std::string& device)
      : ConvNet(RecipeParameters(digits_parameters(recipe), recipe.seed, device)) {}

  Tensor operator()(const Tensor& x) const override {
    const Tensor h = conv2(conv1(x).relu().max_pool2d(2)).relu().max_pool2d(2);
    return fc2(fc1(h.flatten(1)).relu());
  }
  nn::StateDict state_dict() const override {
    nn::StateDict out;
    nn::append_state(out, "conv1", conv1.state_dict());
    nn::append_state(out, "conv2", conv2.state_dict());
    nn::append_state(out, "fc1", fc1.state_dict());
    nn::append_state(out, "fc2", fc2.state_dict());
    return out;
  }

 private:
  explicit ConvNet(RecipeParameters source)
      : conv1(source.conv2d(2)),
        conv2(source.conv2d(2)),
        fc1(source.linear()),
        fc2(source.linear()) {}
  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2;
};

class SoftmaxRegression final : public Classifier {
 public:
  SoftmaxRegression(const DigitsNetRecipe& recipe, const std::string& device)
      : linear(initial(recipe, device)) {}
  Tensor operator()(const Tensor& x) const override { return linear(x.flatten(1)); }
  nn::StateDict state_dict() const override {
    nn::StateDict out;
    nn::append_state(out, "linear", linear.state_dict());
    return out;
  }

 private:
  static nn::Linear initial(const DigitsNetRecipe& recipe, const std::string& device) {
    const uint32_t pixels = recipe.rows * recipe.cols;
    std::vector<ReferenceParameter> list{
        {"linear.w", {io::kImageClasses, pixels}, 1 / std::sqrt(double(pixels))},
        {"linear.b", {io::kImageClasses}, 0, 0.0f}};
    return RecipeParameters(std::move(list), recipe.seed + kRegressionStream, device).linear();
  }
  nn::Linear linear;
};

// Host side of a batch of images: pixels as byte / 255, and labels.
class ImageBatches {
 public:
  ImageBatches(const DigitsNetRecipe& recipe, std::string device)
      : recipe_(recipe),
        device_(std::move(device)),
        rows_(recipe.batch),
        x_(size_t{recipe.batch} * recipe.rows * recipe.cols),
        y_(recipe.batch) {}

  std::vector<Tensor> make_inputs() const {
    return {Tensor::from(x_, {recipe_.batch, 1, recipe_.rows, recipe_.cols}, {DType::F32, device_}),
            Tensor::from(y_, {recipe_.batch}, {DType::I32, device_})};
  }
  std::span<uint32_t> rows() { return rows_; }
  void write(const io::ImageSet& images, std::vector<Tensor>& inputs) {
    size_t at = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (const uint8_t pixel : images.image(rows_[i])) x_[at++] = float(pixel) / 255.0f;
      y_[i] = images.labels[rows_[i]];
    }
    inputs[0].copy_from(x_.data(), x_.size() * sizeof(float));
    inputs[1].copy_from(y_.data(), y_.size() * sizeof(int32_t));
  }

 private:
  const DigitsNetRecipe& recipe_;
  std::string device_;
  std::vector<uint32_t> rows_;
  std::vector<float> x_;
  std::vector<int32_t> y_;
};

class DigitsTask final : public TrainingTask {
 public:
  DigitsTask(const DigitsTraining& settings, const io::ImageSet& images, const Classifier& model,
             const std::string& device)
      : TrainingTask(model.state_dict(),
                     {.lr = settings.recipe.learning_rate, .weight_decay = 0}),
        settings_(settings),
        recipe_(settings.recipe),
        images_(images),
        model_(model),
        batches_(recipe_, device) {}

  std::vector<Tensor> make_inputs() override { return batches_.make_inputs(); }
  void write_batch(uint32_t step, std::vector<Tensor>& inputs) override {
    digits_batch(recipe_, step, images_.count, batches_.rows());
    batches_.write(images_, inputs);
  }
  Tensor loss(const std::vector<Tensor>& inputs) override {
    return model_(inputs[0]).cross_entropy(inputs[1]);
  }
  Metadata identity() const override {
    Metadata out{{"task", {kDigitsTask}}};
    append_settings(out, settings_);
    const uint64_t pixels = XXH64(images_.pixels.data(), images_.pixels.size(), 0);
    const uint64_t both = XXH64(images_.labels.data(), images_.labels.size(), pixels);
    out.push_back({"images_xxh64", {fmt::format("{:016x}", both)}});
    return out;
  }

 private:
  const DigitsTraining& settings_;
  const DigitsNetRecipe& recipe_;
  const io::ImageSet& images_;
  const Classifier& model_;
  ImageBatches batches_;
};

DigitsTraining with_extents(DigitsTraining settings, const io::ImageSplit& images) {
  if (images.train.count == 0 || images.test.count == 0) {
    fail<InvalidArgument>("digits: {} training and {} test images; both must be at least 1",
                          images.train.count, images.test.count);
  }
  settings.recipe.rows = images.train.rows;
  settings.recipe.cols = images.train.cols;
  return settings;
}

}  // namespace

DigitsTrainer::DigitsTrainer(const DigitsTraining& settings, const io::ImageSplit& images,
                             ClassifierKind kind)
    : Trainer(settings.device), settings_(with_extents(settings, images)), images_(images) {
  if (kind == ClassifierKind::ConvNet)
    model_ = std::make_unique<ConvNet>(settings_.recipe, device());
  else
    model_ = std::make_unique<SoftmaxRegression>(settings_.recipe, device());
  task_ = std::make_unique<DigitsTask>(settings_, images_.train, *model_, device());
  ready(*task_);
}

void DigitsTrainer::run(TrainingObserver& observer) {
  run_task(*task_, settings_.steps, settings_, observer);
}

// The last batch is filled up with the last image, whose extra answers are not counted.
ConfusionTable DigitsTrainer::test(TrainingObserver& observer) const {
  const DigitsNetRecipe& recipe = settings_.recipe;
  const io::ImageSet& images = images_.test;
  const uint32_t count = std::min(images.count, settings_.test_images);
  ImageBatches batches(recipe, device());
  std::vector<Tensor> inputs = batches.make_inputs();
  std::vector<int32_t> answers(recipe.batch);
  Jit classify([this](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{(*model_)(in[0]).argmax(1)};
  });
  ConfusionTable table(io::kImageClasses);
  for (uint32_t first = 0; first < count && !observer.stop_requested(); first += recipe.batch) {
    for (uint32_t i = 0; i < recipe.batch; ++i) {
      batches.rows()[i] = std::min(first + i, count - 1);
    }
    batches.write(images, inputs);
    // The answers do not depend on the labels: the function takes the images alone.
    classify({inputs[0]})[0].copy_to(answers.data(), answers.size() * sizeof(int32_t));
    for (uint32_t i = 0; i < std::min(recipe.batch, count - first); ++i) {
      table.add(images.labels[first + i], static_cast<uint32_t>(answers[i]));
    }
  }
  return table;
}

double softmax_regression_accuracy(const DigitsTraining& settings, const io::ImageSplit& images,
                                   TrainingObserver& observer) {
  DigitsTraining same = settings;
  same.seconds = 0;
  same.checkpoints = {};
  DigitsTrainer trainer(same, images, ClassifierKind::SoftmaxRegression);
  trainer.run(observer);
  return trainer.test(observer).accuracy();
}

}  // namespace tuff::models
