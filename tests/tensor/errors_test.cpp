// Wrong shapes, axes, dtypes and devices: the documented error, its text naming the values, and
// nothing scheduled or submitted.
#include <gtest/gtest.h>

#include <functional>

#include <tuff/jit.h>
#include <tuff/optim.h>
#include "engine/stats.h"

namespace tuff::test {
namespace {

struct Wrong {
  const char* name;
  const char* kind;
  const char* text;  // part of the message
  std::function<void()> call;
};

Tensor floats(const Sizes& s) { return Tensor::empty(s, {.device = "CPU"}); }
Tensor ints(const Sizes& s) { return Tensor::empty(s, {DType::I32, "CPU"}); }
Tensor bools(const Sizes& s) { return Tensor::empty(s, {DType::Bool, "CPU"}); }

const std::vector<Wrong> kTable = {
    {"matmul", "ShapeError", "inner dimensions differ: (3, 4) x (5, 6)",
     [] { floats({3, 4}).matmul(floats({5, 6})); }},
    {"matmul scalar", "ShapeError", "scalar", [] { floats({}).matmul(floats({2})); }},
    {"broadcast", "ShapeError", "(2, 3) and (2, 4) do not broadcast: 3 against 4",
     [] { floats({2, 3}) + floats({2, 4}); }},
    {"linear", "ShapeError", "(5, 4)", [] { floats({2, 3}).linear(floats({5, 4})); }},
    {"conv2d axes", "ShapeError", "4 axes", [] { floats({2, 3, 4}).conv2d(floats({1, 2, 3, 3})); }},
    {"conv2d channels", "ShapeError", "channels",
     [] { floats({1, 3, 5, 5}).conv2d(floats({1, 2, 3, 3})); }},
    {"conv2d window", "ShapeError", "does not fit",
     [] { floats({1, 2, 2, 5}).conv2d(floats({1, 2, 3, 3})); }},
    {"conv2d stride", "InvalidArgument", "positive",
     [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 0); }},
    {"conv2d bias", "ShapeError", "bias (3,)",
     [] { floats({1, 2, 5, 5}).conv2d(floats({4, 2, 3, 3}), floats({3})); }},
    {"max_pool2d", "ShapeError", "does not fit", [] { floats({1, 1, 2, 2}).max_pool2d(3); }},
    {"layernorm", "ShapeError", "(5,)", [] { floats({2, 3}).layernorm({5}); }},
    {"attention", "ShapeError", "do not fit",
     [] { Tensor::scaled_dot_product_attention(floats({2, 3}), floats({2, 4}), floats({2, 3})); }},
    {"embedding", "ShapeError", "2 axes", [] { Tensor::embedding(floats({4}), ints({2})); }},
    {"cross_entropy", "ShapeError", "(4,)", [] { floats({3, 5}).cross_entropy(ints({4})); }},
    {"cross_entropy dtype", "InvalidArgument", "not integer",
     [] { floats({3, 5}).cross_entropy(floats({3})); }},
    {"reshape count", "ShapeError", "elements", [] { floats({2, 3}).reshape({4, 2}); }},
    {"reshape unknown", "ShapeError", "-1", [] { floats({2, 3}).reshape({-1, -1}); }},
    {"reshape rest", "ShapeError", "do not fit", [] { floats({2, 3}).reshape({-1, 4}); }},
    {"permute twice", "ShapeError", "permutation", [] { floats({2, 3}).permute({0, 0}); }},
    {"permute rank", "ShapeError", "", [] { floats({2, 3}).permute({0}); }},
    {"transpose", "ShapeError", "axis 2 is outside a tensor of 2 axes",
     [] { floats({2, 3}).transpose(0, 2); }},
    {"expand", "ShapeError", "", [] { floats({2, 3}).expand({2, 4}); }},
    {"expand rank", "ShapeError", "more axes", [] { floats({2, 3}).expand({3}); }},
    {"pad", "ShapeError", "pairs", [] { floats({2, 3}).pad({1}); }},
    {"pad crop", "ShapeError", "crop", [] { floats({2, 3}).pad({-2, -2}); }},
    {"shrink", "ShapeError", "not inside", [] { floats({2, 3}).shrink({{0, 2}, {1, 4}}); }},
    {"flip", "ShapeError", "axis 5", [] { floats({2, 3}).flip({5}); }},
    {"slice step", "InvalidArgument", "step is 0", [] { floats({4}).slice(0, 0, 4, 0); }},
    {"narrow", "ShapeError", "2..5 is not inside axis 0", [] { floats({4}).narrow(0, 2, 3); }},
    {"select", "ShapeError", "index 4", [] { floats({4}).select(0, 4); }},
    {"repeat", "ShapeError", "counts", [] { floats({2, 3}).repeat({2}); }},
    {"cat shapes", "ShapeError", "(2, 3) and (2, 4)",
     [] { Tensor::cat({floats({2, 3}), floats({2, 4})}, 0); }},
    {"cat nothing", "InvalidArgument", "no tensors", [] { Tensor::cat({}); }},
    {"split", "InvalidArgument", "not positive", [] { floats({4}).split(0); }},
    {"chunk", "InvalidArgument", "0 chunks", [] { floats({4}).chunk(0); }},
    {"gather rank", "ShapeError", "differ in rank", [] { floats({4, 2}).gather(0, ints({2})); }},
    {"gather dtype", "InvalidArgument", "not integers", [] { floats({4}).gather(0, floats({2})); }},
    {"one_hot", "InvalidArgument", "not integers", [] { floats({4}).one_hot(3); }},
    {"tril", "ShapeError", "fewer than 2 axes", [] { floats({4}).tril(); }},
    {"sum axis", "ShapeError", "sum: axis 3", [] { floats({2, 2}).sum({3}); }},
    {"sum twice", "ShapeError", "twice", [] { floats({2, 2}).sum({0, -2}); }},
    {"max of nothing", "ShapeError", "no elements", [] { floats({2, 0}).max({1}); }},
    {"softmax axis", "ShapeError", "axis 2", [] { floats({2, 2}).softmax(2); }},
    {"and on floats", "InvalidArgument", "not defined on float32",
     [] { floats({2}) & floats({2}); }},
    {"subtract bools", "InvalidArgument", "bool", [] { bools({2}) - bools({2}); }},
    {"neg bool", "InvalidArgument", "bool", [] { bools({2}).neg(); }},
    {"where", "InvalidArgument", "not bool",
     [] { Tensor::where(ints({2}), floats({2}), floats({2})); }},
    {"cast", "InvalidArgument", "no element type", [] { floats({2}).cast(DType::Index); }},
    {"bitcast", "InvalidArgument", "differ in size", [] { floats({2}).bitcast(DType::F64); }},
    {"clamp", "InvalidArgument", "neither", [] { floats({2}).clamp({}, {}); }},
    {"dropout", "InvalidArgument", "1.5", [] { floats({2}).dropout(1.5); }},
    {"devices", "InvalidArgument", "NULL",
     [] { floats({2}) + Tensor::empty({2}, {.device = "NULL"}); }},
    {"unknown device", "InvalidArgument", "TPU", [] { Tensor::zeros({2}, {.device = "TPU"}); }},
    {"negative extent", "ShapeError", "negative",
     [] { Tensor::zeros({2, -1}, {.device = "CPU"}); }},
    {"count", "ShapeError", "3 values", [] { Tensor::from({1, 2, 3}, {2, 2}, {.device = "CPU"}); }},
    {"undefined", "InvalidArgument", "undefined", [] { Tensor() + floats({2}); }},
    {"item", "ShapeError", "not 1", [] { floats({2}).item(); }},
    {"to_vector", "InvalidArgument", "float32, not int32",
     [] { floats({2}).to_vector<int32_t>(); }},
    {"copy_to", "InvalidArgument", "bytes",
     [] {
       float v;
       floats({2}).copy_to(&v, sizeof v);
     }},
    {"assign shape", "ShapeError", "(3,)", [] { floats({2}).assign(floats({3})); }},
    {"assign dtype", "InvalidArgument", "int32", [] { floats({2}).assign(ints({2})); }},
    {"requires_grad", "InvalidArgument", "no gradient", [] { ints({2}).set_requires_grad(); }},
    {"backward shape", "ShapeError", "no scalar",
     [] { floats({2}).set_requires_grad().backward(); }},
    {"backward nothing", "InvalidArgument", "requires_grad", [] { floats({2}).sum().backward(); }},
    {"arange", "InvalidArgument", "step is 0",
     [] { Tensor::arange(0, 3, 0, {DType::I32, "CPU"}); }},
    {"randint", "InvalidArgument", "empty",
     [] { Tensor::randint(3, 3, {2}, {DType::I32, "CPU"}); }},
    {"rand dtype", "InvalidArgument", "int32", [] { Tensor::rand({2}, {DType::I32, "CPU"}); }},
    {"uniform", "InvalidArgument", "above", [] { Tensor::uniform({2}, 1, 0, {.device = "CPU"}); }},
    {"optimizer empty", "InvalidArgument", "no parameters", [] { optim::SGD({}, {}); }},
    {"optimizer leaf", "InvalidArgument", "requires_grad", [] { optim::SGD({floats({2})}, {}); }},
    {"jit", "InvalidArgument", "no function", [] { Jit(Jit::Function()); }},
};

TEST(TensorErrors, AreThrownBeforeAnythingIsScheduled) {
  for (const Wrong& w : kTable) {
    const uint64_t scheduled = engine::counters().schedule_ns, submits = engine::counters().submits;
    try {
      w.call();
      ADD_FAILURE() << w.name << ": no error";
    } catch (const Error& e) {
      EXPECT_STREQ(e.kind(), w.kind) << w.name << ": " << e.what();
      EXPECT_NE(std::string(e.what()).find(w.text), std::string::npos)
          << w.name << ": " << e.what();
    }
    EXPECT_EQ(engine::counters().schedule_ns, scheduled) << w.name;
    EXPECT_EQ(engine::counters().submits, submits) << w.name;
  }
}

}  // namespace
}  // namespace tuff::test
