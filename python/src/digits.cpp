// tuff.digits: what `tuff train digits` trains, for examples and tests: drawn digits, initial
// parameters, batches.
#include "models/digits.h"
#include "base/check.h"
#include "models/digits_reference.h"
#include "models/training.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

py::tuple tensors_of(const io::ImageSet& set) {
  const TensorOptions bytes{.dtype = DType::U8, .device = "CPU"};
  return py::make_tuple(
      Tensor::from_bytes(set.pixels.data(), {set.count, set.rows, set.cols}, bytes),
      Tensor::from_bytes(set.labels.data(), {set.count}, bytes));
}

py::tuple draw(uint32_t seed, uint32_t train_count, uint32_t test_count) {
  const io::ImageSplit split =
      models::draw_digits({.seed = seed, .train_count = train_count, .test_count = test_count});
  return py::make_tuple(tensors_of(split.train), tensors_of(split.test));
}

std::vector<Tensor> parameters(uint32_t seed, const std::string& device) {
  const models::DigitsNetRecipe recipe{.seed = seed};
  std::vector<models::ReferenceParameter> list = models::digits_parameters(recipe);
  const size_t count = list.size();
  models::RecipeParameters source(std::move(list), seed, device);
  std::vector<Tensor> out;
  for (size_t i = 0; i < count; i++) out.push_back(source.next());
  return out;
}

std::vector<uint32_t> batch(uint32_t step, uint32_t image_count, uint32_t size, uint32_t seed) {
  std::vector<uint32_t> rows(size);
  models::digits_batch({.batch = size, .seed = seed}, step, image_count, rows);
  return rows;
}

}  // namespace

void bind_digits(py::module_& parent) {
  const models::DigitRecipe drawn;
  const models::DigitsNetRecipe net;
  py::module_ m = parent.def_submodule("digits", "What `tuff train digits` trains.");
  m.def(
      "draw", &draw, arg("seed") = drawn.seed, arg("train_count") = drawn.train_count,
      arg("test_count") = drawn.test_count,
      "((images, labels), (images, labels)) to train and to test with, uint8: images of 28 x 28.");
  m.def(
      "parameters", &parameters, arg("seed") = net.seed, arg("device") = "",
      "Initial values: conv1 (16, 1, 5, 5), conv2 (32, 16, 5, 5), fc1 (128, 1568), fc2 (10, 128), "
      "each weight with its bias after it.");
  m.def("batch", &batch, arg("step"), arg("image_count"), arg("size") = net.batch,
        arg("seed") = net.seed, "The numbers of the images of one step.");
}

}  // namespace tuff::python
