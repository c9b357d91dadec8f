// The GPT and the digits' ConvNet, trained, as ONNX models: what the importer reads gives the same
// logits, for batches and texts of other sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/onnx.h>

#include <map>

#include "io/scratch_folder.h"
#include "models/digits.h"
#include "models/digits_trainer.h"
#include "models/gpt_model.h"

namespace tuff::models {
namespace {

std::map<std::string, int64_t> operators(const std::string& path) {
  std::map<std::string, int64_t> out;
  for (const onnx::OperatorUse& o : onnx::describe(path).operators) out[o.name] = o.count;
  return out;
}

void expect_near(const Tensor& wanted, const Tensor& found) {
  ASSERT_EQ(std::vector<int64_t>(wanted.sizes()), std::vector<int64_t>(found.sizes()));
  EXPECT_LT((wanted - found).abs().max().item(), 1e-5);
}

Tensor tokens(const Sizes& sizes, int64_t vocabulary) {
  std::vector<int32_t> out(size_t(int64_t(sizes[0]) * int64_t(sizes[1])));
  for (size_t i = 0; i < out.size(); i++) out[i] = int32_t((7 * i * i + 3) % size_t(vocabulary));
  return Tensor::from(out, sizes);
}

TEST(ModelsSave, GptOfAnyBatchAndLength) {
  const ScratchFolder folder;
  const std::string path = folder.path("gpt.onnx");
  const Gpt gpt({.vocabulary = 31, .layers = 2, .heads = 2, .embed = 32, .context = 12}, "");
  onnx::save(path, [&](const auto& in) { return std::vector<Tensor>{gpt(in[0])}; },
             {tokens({2, 12}, 31)},
             {.input_names = {"tokens"},
              .output_names = {"logits"},
              .dynamic = {{0, 0, "batch", 1, 64}, {0, 1, "time", 1, 12}},
              .parameters = gpt.state_dict()});
  const onnx::Model model = onnx::load(path);
  for (const Sizes& sizes : {Sizes{2, 12}, Sizes{5, 7}, Sizes{1, 1}}) {
    const Tensor x = tokens(sizes, 31);
    expect_near(gpt(x), model({{"tokens", x}}).at("logits"));
  }
  const auto used = operators(path);
  EXPECT_EQ(used.at("MatMul"), 2 * 6 + 1);
  EXPECT_EQ(used.at("Softmax"), 2);
  EXPECT_EQ(used.at("Gather"), 1);
  for (const nn::NamedTensor& p : gpt.state_dict())
    EXPECT_TRUE(model.parameters().contains(p.name)) << p.name;
}

TEST(ModelsSave, TrainedConvNetOfAnyBatch) {
  const ScratchFolder folder;
  const std::string path = folder.path("digits.onnx");
  const io::ImageSplit images = draw_digits({.train_count = 200, .test_count = 20});
  DigitsTraining settings;
  settings.recipe.channels1 = 4, settings.recipe.channels2 = 8, settings.recipe.hidden = 16;
  settings.recipe.batch = 16, settings.steps = 5;
  DigitsTrainer trainer(settings, images);
  TrainingObserver silent;
  trainer.run(silent);
  const Classifier& net = trainer.model();
  const auto pictures = [&](int64_t n) {
    std::vector<float> out;
    for (int64_t i = 0; i < n; i++)
      for (const uint8_t pixel : images.test.image(uint32_t(i))) out.push_back(float(pixel) / 255);
    return Tensor::from(out, {n, 1, kDigitExtent, kDigitExtent});
  };
  onnx::save(path, [&](const auto& in) { return std::vector<Tensor>{net(in[0])}; }, {pictures(3)},
             {.dynamic = {{0, 0, "batch", 1, 4096}}, .parameters = net.state_dict()});
  const onnx::Model model = onnx::load(path);
  for (const int64_t n : {3, 1, 11})
    expect_near(net(pictures(n)), model({{"x", pictures(n)}}).at("y"));
  const auto used = operators(path);
  EXPECT_EQ(used.at("Conv"), 2);
  EXPECT_EQ(used.at("MaxPool"), 2);
  EXPECT_EQ(used.at("MatMul"), 2);
  EXPECT_EQ(used.at("Relu"), 3);
}

}  // namespace
}  // namespace tuff::models
