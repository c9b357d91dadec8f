#include "tensor/errors_table.h"

#include <cmath>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

namespace tuff::test {
namespace {

using Table = std::vector<Wrong>;
using indexing::Ellipsis;
using indexing::Slice;

const TensorOptions kCpu{.device = "CPU"};
Tensor floats(const Sizes& s) { return Tensor::empty(s, {.device = "CPU"}); }
Tensor ints(const Sizes& s) { return Tensor::empty(s, {DType::I32, "CPU"}); }
Tensor bools(const Sizes& s) { return Tensor::empty(s, {DType::Bool, "CPU"}); }
Tensor elsewhere(const Sizes& s) { return Tensor::empty(s, {.device = "NULL"}); }
Tensor ints_elsewhere(const Sizes& s) { return Tensor::empty(s, {DType::I32, "NULL"}); }
Tensor leaf(const Sizes& s) { return floats(s).set_requires_grad(); }

const Table& creation() {
  static const Table table = {
      {"empty", "ShapeError", "negative", [] { Tensor::empty({2, -1}, kCpu); }},
      {"empty size", "ShapeError", "2^63",
       [] { Tensor::empty({int64_t(1) << 40, int64_t(1) << 40}, kCpu); }},
      {"empty dtype", "InvalidArgument", "no element type",
       [] { Tensor::empty({2}, {DType::Index, "CPU"}); }},
      {"empty device", "InvalidArgument", "TPU", [] { Tensor::empty({2}, {.device = "TPU"}); }},
      {"full", "ShapeError", "negative", [] { Tensor::full({-2}, 1, kCpu); }},
      {"full gradient", "InvalidArgument", "no gradient",
       [] { Tensor::full({2}, 1, {DType::I32, "CPU", true}); }},
      {"zeros", "ShapeError", "(2, -1)", [] { Tensor::zeros({2, -1}, kCpu); }},
      {"zeros device", "InvalidArgument", "TPU", [] { Tensor::zeros({2}, {.device = "TPU"}); }},
      {"ones", "ShapeError", "negative", [] { Tensor::ones({-1}, kCpu); }},
      {"arange", "InvalidArgument", "step is 0",
       [] { Tensor::arange(0, 3, 0, {DType::I32, "CPU"}); }},
      {"arange endless", "InvalidArgument", "no number of elements",
       [] { Tensor::arange(0.0, INFINITY, 1.0, {DType::F32, "CPU"}); }},
      {"arange nan", "InvalidArgument", "no number of elements",
       [] { Tensor::arange(NAN, 3.0, 1.0, {DType::F32, "CPU"}); }},
      {"linspace", "InvalidArgument", "-1 steps", [] { Tensor::linspace(0, 1, -1, kCpu); }},
      {"eye", "ShapeError", "(-3, -3)", [] { Tensor::eye(-3, kCpu); }},
      {"eye wide", "ShapeError", "negative", [] { Tensor::eye(3, -1, kCpu); }},
      {"from_bytes", "ShapeError", "negative", [] { Tensor::from_bytes(nullptr, {-1}, kCpu); }},
      {"from_blob", "InvalidArgument", "a null pointer",
       [] { Tensor::from_blob(static_cast<void*>(nullptr), {2}, {}, kCpu); }},
      {"from_blob alignment", "InvalidArgument", "not aligned to the 4 bytes",
       [] { Tensor::from_blob(reinterpret_cast<void*>(6), {2}, {}, kCpu); }},
      {"from_blob shape", "ShapeError", "negative",
       [] { Tensor::from_blob(reinterpret_cast<void*>(8), {-1}, {}, kCpu); }},
      {"from_blob strides", "ShapeError", "1 strides for the 2 axes of (2, 2)",
       [] { Tensor::from_blob(reinterpret_cast<void*>(8), {2, 2}, {.strides = {1}}, kCpu); }},
      {"from_blob overlap", "ShapeError", "strides (1, 1) overlap",
       [] { Tensor::from_blob(reinterpret_cast<void*>(8), {2, 2}, {.strides = {1, 1}}, kCpu); }},
      {"from_blob gradient", "InvalidArgument", "no gradient",
       [] { Tensor::from_blob(reinterpret_cast<void*>(8), {2}, {}, {DType::I32, "CPU", true}); }},
      {"get_rng_state", "InvalidArgument", "TPU", [] { Tensor::get_rng_state("TPU"); }},
      {"set_rng_state", "InvalidArgument", "four words",
       [] { Tensor::set_rng_state(ints({4}), "CPU"); }},
      {"set_rng_state size", "InvalidArgument", "four words",
       [] { Tensor::set_rng_state(Tensor::empty({5}, {DType::U32, "CPU"}), "CPU"); }},
      {"from_file", "IoError", "No such file", [] { Tensor::from_file("/none/such", {2}); }},
      {"from_file range", "IoError", "bytes at byte 0 are asked for",
       [] { Tensor::from_file("/proc/self/exe", {1024, 1024, 1024, 1024}); }},
      {"from_file type", "InvalidArgument", "no element type",
       [] { Tensor::from_file("/proc/self/exe", {2}, DType::Void); }},
      {"from", "ShapeError", "3 values", [] { Tensor::from({1, 2, 3}, {2, 2}, kCpu); }},
      {"rand", "InvalidArgument", "int32", [] { Tensor::rand({2}, {DType::I32, "CPU"}); }},
      {"rand shape", "ShapeError", "negative", [] { Tensor::rand({-2}, kCpu); }},
      {"randn", "InvalidArgument", "int32", [] { Tensor::randn({2}, {DType::I32, "CPU"}); }},
      {"rand_like", "InvalidArgument", "int32", [] { ints({2}).rand_like(); }},
      {"randn_like", "InvalidArgument", "bool", [] { bools({2}).randn_like(); }},
      {"uniform", "InvalidArgument", "above", [] { Tensor::uniform({2}, 1, 0, kCpu); }},
      {"uniform nan", "InvalidArgument", "above", [] { Tensor::uniform({2}, NAN, 0, kCpu); }},
      {"normal", "InvalidArgument", "-1", [] { Tensor::normal(0, -1, {2}, kCpu); }},
      {"normal dtype", "InvalidArgument", "int32",
       [] { Tensor::normal(0, 1, {2}, {DType::I32, "CPU"}); }},
      {"randint", "InvalidArgument", "[3, 3)",
       [] { Tensor::randint(3, 3, {2}, {DType::I32, "CPU"}); }},
      {"randint range", "InvalidArgument", "2^24",
       [] { Tensor::randint(0, 1 << 25, {2}, {DType::I32, "CPU"}); }},
      {"kaiming_uniform", "ShapeError", "fewer than 2 axes",
       [] { Tensor::kaiming_uniform({3}, 0, FanMode::In, kCpu); }},
      {"kaiming_normal", "ShapeError", "(3,)",
       [] { Tensor::kaiming_normal({3}, 0, FanMode::In, kCpu); }},
      {"glorot_uniform", "ShapeError", "fewer than 2 axes",
       [] { Tensor::glorot_uniform({}, 1, kCpu); }},
      {"glorot_normal", "ShapeError", "(3,)", [] { Tensor::glorot_normal({3}, 1, kCpu); }},
  };
  return table;
}

const Table& movement() {
  static const Table table = {
      {"size", "IndexError", "axis 2", [] { floats({2, 3}).size(2); }},
      {"reshape count", "ShapeError", "elements", [] { floats({2, 3}).reshape({4, 2}); }},
      {"reshape unknown", "ShapeError", "-1", [] { floats({2, 3}).reshape({-1, -1}); }},
      {"reshape rest", "ShapeError", "do not fit", [] { floats({2, 3}).reshape({-1, 4}); }},
      {"reshape nothing", "ShapeError", "do not fit", [] { floats({0}).reshape({-1, 0}); }},
      {"view", "ShapeError", "elements", [] { floats({2, 3}).view({5}); }},
      {"permute twice", "ShapeError", "permutation", [] { floats({2, 3}).permute({0, 0}); }},
      {"permute rank", "ShapeError", "permute", [] { floats({2, 3}).permute({0}); }},
      {"permute axis", "IndexError", "axis 2", [] { floats({2, 3}).permute({0, 2}); }},
      {"transpose", "IndexError", "axis 2 is outside a tensor of 2 axes",
       [] { floats({2, 3}).transpose(0, 2); }},
      {"T", "IndexError", "axis -2", [] { floats({2}).T(); }},
      {"expand", "ShapeError", "expand", [] { floats({2, 3}).expand({2, 4}); }},
      {"expand again", "ShapeError", "axis 1 of (2, 3) is not 1 and differs from (2, 5)",
       [] { floats({2, 1}).expand({2, 3}).expand({2, 5}); }},
      {"expand to 1", "ShapeError", "(2, 1)", [] { floats({2, 1}).expand({2, 3}).expand({2, 1}); }},
      {"expand ones", "ShapeError", "(4, 3)", [] { Tensor::ones({4, 3}, kCpu).expand({2, 1}); }},
      {"expand zeros", "ShapeError", "(5,)", [] { Tensor::zeros({5}, kCpu).expand({7}); }},
      {"expand new axis", "ShapeError", "axis 0 of (-1, 3) is new to (3,)",
       [] { floats({3}).expand({-1, 3}); }},
      {"expand rank", "ShapeError", "more axes", [] { floats({2, 3}).expand({3}); }},
      {"pad", "ShapeError", "pairs", [] { floats({2, 3}).pad({1}); }},
      {"pad rank", "ShapeError", "pairs", [] { floats({3}).pad({1, 1, 1, 1}); }},
      {"pad crop", "ShapeError", "crop", [] { floats({2, 3}).pad({-2, -2}); }},
      {"shrink", "ShapeError", "not inside", [] { floats({2, 3}).shrink({{0, 2}, {1, 4}}); }},
      {"shrink rank", "ShapeError", "1 axes given", [] { floats({2, 3}).shrink({{0, 2}}); }},
      {"flip", "IndexError", "axis 5", [] { floats({2, 3}).flip({5}); }},
      {"flip twice", "ShapeError", "twice", [] { floats({2, 3}).flip({1, -1}); }},
      {"slice step", "InvalidArgument", "step is 0", [] { floats({4}).slice(0, 0, 4, 0); }},
      {"slice axis", "IndexError", "axis 1", [] { floats({4}).slice(1, 0, 4); }},
      {"narrow", "ShapeError", "2..5 is not inside axis 0", [] { floats({4}).narrow(0, 2, 3); }},
      {"select", "IndexError", "index 4", [] { floats({4}).select(0, 4); }},
      {"squeeze", "IndexError", "axis 2", [] { floats({1, 2}).squeeze(2); }},
      {"unsqueeze", "IndexError", "axis 4", [] { floats({1, 2}).unsqueeze(4); }},
      {"flatten", "ShapeError", "behind", [] { floats({1, 2, 3}).flatten(2, 1); }},
      {"repeat", "ShapeError", "counts", [] { floats({2, 3}).repeat({2}); }},
      {"repeat negative", "ShapeError", "-1 repeats", [] { floats({2}).repeat({-1}); }},
      {"cat shapes", "ShapeError", "(2, 3) and (2, 4)",
       [] { Tensor::cat({floats({2, 3}), floats({2, 4})}, 0); }},
      {"cat nothing", "InvalidArgument", "no tensors", [] { Tensor::cat({}); }},
      {"cat devices", "InvalidArgument", "NULL",
       [] { Tensor::cat({floats({2}), elsewhere({2})}); }},
      {"cat scalars", "IndexError", "0 axes", [] { Tensor::cat({floats({}), floats({})}); }},
      {"stack", "ShapeError", "(2,) and (3,) differ",
       [] { Tensor::stack({floats({2}), floats({3})}); }},
      {"stack nothing", "InvalidArgument", "no tensors", [] { Tensor::stack({}); }},
      {"split", "InvalidArgument", "not positive", [] { floats({4}).split(0); }},
      {"split_with_sizes", "ShapeError", "(1, 2) do not add up",
       [] { floats({4}).split_with_sizes({1, 2}); }},
      {"split_with_sizes negative", "ShapeError", "add up",
       [] { floats({4}).split_with_sizes({5, -1}); }},
      {"chunk", "InvalidArgument", "0 chunks", [] { floats({4}).chunk(0); }},
      {"tril", "ShapeError", "fewer than 2 axes", [] { floats({4}).tril(); }},
      {"triu", "ShapeError", "triu: (4,)", [] { floats({4}).triu(); }},
      {"gather rank", "ShapeError", "differ in rank", [] { floats({4, 2}).gather(0, ints({2})); }},
      {"gather dtype", "InvalidArgument", "not integers",
       [] { floats({4}).gather(0, floats({2})); }},
      {"gather size", "ShapeError", "larger than input",
       [] { floats({4, 2}).gather(0, ints({2, 3})); }},
      {"gather device", "InvalidArgument", "NULL",
       [] { floats({4}).gather(0, ints_elsewhere({2})); }},
      {"one_hot", "InvalidArgument", "not integers", [] { floats({4}).one_hot(3); }},
      {"one_hot classes", "InvalidArgument", "0 classes", [] { ints({4}).one_hot(0); }},
      {"index_select", "ShapeError", "more than one axis",
       [] { floats({4}).index_select(0, ints({2, 2})); }},
      {"index_select axis", "IndexError", "axis 1", [] { floats({4}).index_select(1, ints({2})); }},
      {"index_select dtype", "InvalidArgument", "not integers",
       [] { floats({4}).index_select(0, floats({2})); }},
      {"take", "InvalidArgument", "bool, not integers", [] { floats({4}).take(bools({2})); }},
      {"index", "IndexError", "2 indices for a tensor (4,)", [] { floats({4}).index({0, 0}); }},
      {"index number", "IndexError", "-5 is outside axis 0", [] { floats({4}).index({-5}); }},
      {"index mask", "ShapeError", "a mask of (3,) on the axes from 1 of (4, 5)",
       [] { floats({4, 5}).index({Slice{}, bools({3})}); }},
      {"index mask axes", "InvalidArgument", "a mask without axes",
       [] { floats({4}).index({bools({})}); }},
      {"index mask device", "InvalidArgument", "NULL",
       [] { floats({4}).index({Tensor::empty({4}, {DType::Bool, "NULL"})}); }},
      {"nonzero", "Unsupported", "2^31 - 1",
       [] { Tensor::full({int64_t(1) << 32}, 1, kCpu).nonzero(); }},
      {"index_put", "ShapeError", "a value of (3,) for (2,) picked elements",
       [] { floats({4}).index_put({Slice{0, 2}}, floats({3})); }},
      {"index_put nothing", "ShapeError", "a value of (3,) for (0,) picked elements",
       [] { floats({4}).index_put({Slice{0, 0}}, floats({3})); }},
      {"index_put tensors to nothing", "ShapeError", "a value of (7,) for (0, 3) picked elements",
       [] { floats({0, 3}).index_put({ints({0}), Slice{}}, floats({7})); }},
      {"index_put tensors", "ShapeError", "a value of (3,) for (2,) picked elements",
       [] { floats({4}).index_put({ints({2})}, floats({3})); }},
      {"index_put mask", "ShapeError", "a mask of (3,)",
       [] { floats({4}).index_put({bools({3})}, 1); }},
      {"index_put number", "IndexError", "4 is outside axis 0",
       [] { floats({4}).index_put({4}, 1); }},
      {"index_put ellipses", "InvalidArgument", "more than one ellipsis",
       [] { floats({4}).index_put({Ellipsis, Ellipsis}, 1); }},
      {"index_put device", "InvalidArgument", "NULL",
       [] { floats({4}).index_put({0}, elsewhere({})); }},
      {"index_put_ leaf", "InvalidArgument", "NoGradGuard", [] { leaf({4}).index_put_({0}, 1); }},
      {"index dtype", "InvalidArgument", "not integers", [] { floats({4}).index({floats({4})}); }},
      {"index ellipses", "InvalidArgument", "more than one ellipsis",
       [] { floats({4}).index({Ellipsis, Ellipsis}); }},
      {"index shapes", "ShapeError", "(2,) and (3,) do not broadcast",
       [] { floats({4, 4}).index({ints({2}), ints({3})}); }},
      {"index step", "InvalidArgument", "step is 0", [] { floats({4}).index({Slice{0, 2, 0}}); }},
      {"index device", "InvalidArgument", "NULL", [] { floats({4}).index({ints_elsewhere({4})}); }},
      {"embedding", "ShapeError", "2 axes", [] { Tensor::embedding(floats({4}), ints({2})); }},
      {"embedding dtype", "InvalidArgument", "not integers",
       [] { Tensor::embedding(floats({4, 2}), floats({2})); }},
  };
  return table;
}

const Table& element_wise() {
  static const Table table = {
      {"operator+", "ShapeError", "(2, 3) and (2, 4) do not broadcast: 3 against 4",
       [] { floats({2, 3}) + floats({2, 4}); }},
      {"operator+ devices", "InvalidArgument", "NULL", [] { floats({2}) + elsewhere({2}); }},
      {"operator+ undefined", "InvalidArgument", "undefined", [] { Tensor() + floats({2}); }},
      {"operator& on floats", "InvalidArgument", "not defined on float32",
       [] { floats({2}) & floats({2}); }},
      {"operator- bools", "InvalidArgument", "bool", [] { bools({2}) - bools({2}); }},
      {"operator<< on floats", "InvalidArgument", "left shift: not defined on float32",
       [] { floats({2}) << ints({2}); }},
      {"operator>> on bools", "InvalidArgument", "right shift: not defined on bool",
       [] { bools({2}) >> ints({2}); }},
      {"operator< shapes", "ShapeError", "less: shapes", [] { floats({2}) < floats({3}); }},
      {"neg", "InvalidArgument", "bool", [] { bools({2}).neg(); }},
      {"gelu", "InvalidArgument", "'fast'", [] { floats({2}).gelu("fast"); }},
      {"softplus", "InvalidArgument", "beta is 0", [] { floats({2}).softplus(0); }},
      {"pow", "InvalidArgument", "to the power -2", [] { ints({2}).pow(-2); }},
      {"pow shapes", "ShapeError", "pow: shapes", [] { floats({2}).pow(floats({3})); }},
      {"pow bools", "InvalidArgument", "bool", [] { bools({2}).pow(bools({2})); }},
      {"floor_divide", "InvalidArgument", "divided by 0", [] { ints({2}).floor_divide(0); }},
      {"floor_divide bools", "InvalidArgument", "bool",
       [] { bools({2}).floor_divide(bools({2})); }},
      {"remainder", "InvalidArgument", "divided by 0", [] { ints({2}) % 0; }},
      {"remainder shapes", "ShapeError", "remainder: shapes",
       [] { floats({2}).remainder(floats({3})); }},
      {"fmod", "InvalidArgument", "(2,) are divided by 0", [] { ints({2}).fmod(0); }},
      {"fmod device", "InvalidArgument", "NULL", [] { floats({2}).fmod(elsewhere({2})); }},
      {"bitwise_not", "InvalidArgument", "not defined on float32",
       [] { floats({2}).bitwise_not(); }},
      {"bitwise_left_shift", "InvalidArgument", "float32",
       [] { ints({2}).bitwise_left_shift(floats({2})); }},
      {"bitwise_right_shift", "InvalidArgument", "float32",
       [] { floats({2}).bitwise_right_shift(ints({2})); }},
      {"clamp", "InvalidArgument", "neither", [] { floats({2}).clamp(std::nullopt); }},
      {"maximum", "ShapeError", "maximum: shapes", [] { floats({2}).maximum(floats({3})); }},
      {"minimum", "ShapeError", "minimum: shapes", [] { floats({2}).minimum(floats({3})); }},
      {"where", "InvalidArgument", "not bool",
       [] { Tensor::where(ints({2}), floats({2}), floats({2})); }},
      {"where shapes", "ShapeError", "where: shapes",
       [] { Tensor::where(bools({3}), floats({2}), floats({2})); }},
      {"where device", "InvalidArgument", "NULL",
       [] { Tensor::where(bools({2}), elsewhere({2}), elsewhere({2})); }},
      {"masked_fill", "InvalidArgument", "mask is int32",
       [] { floats({2}).masked_fill(ints({2}), 0); }},
      {"cast", "InvalidArgument", "no element type", [] { floats({2}).cast(DType::Index); }},
      {"bitcast", "InvalidArgument", "differ in size", [] { floats({2}).bitcast(DType::F64); }},
      {"bitcast bool", "InvalidArgument", "bool", [] { bools({2}).bitcast(DType::I8); }},
  };
  return table;
}

const Table& reductions() {
  static const Table table = {
      {"sum", "IndexError", "sum: axis 3", [] { floats({2, 2}).sum({3}); }},
      {"sum twice", "ShapeError", "twice", [] { floats({2, 2}).sum({0, -2}); }},
      {"mean", "IndexError", "mean: axis", [] { floats({2, 2}).mean({2}); }},
      {"prod", "IndexError", "prod: axis -3", [] { floats({2, 2}).prod({-3}); }},
      {"max of nothing", "ShapeError", "no elements", [] { floats({2, 0}).max({1}); }},
      {"max axis", "IndexError", "max: axis", [] { floats({2}).max({1}); }},
      {"min of nothing", "ShapeError", "no elements", [] { ints({0}).min(); }},
      {"any", "IndexError", "any: axis", [] { floats({2}).any({1}); }},
      {"all", "IndexError", "all: axis", [] { floats({2}).all({1}); }},
      {"var", "IndexError", "var: axis", [] { floats({2}).var({1}); }},
      {"std", "IndexError", "axis 1", [] { floats({2}).std({1}); }},
      {"argmax", "IndexError", "argmax: axis 2", [] { floats({2, 2}).argmax(2); }},
      {"argmax of nothing", "ShapeError", "no elements", [] { floats({0, 2}).argmax(0); }},
      {"argmin", "IndexError", "argmin: axis", [] { floats({2}).argmin(1); }},
      {"argmin of a scalar", "IndexError", "argmin: axis 1 is outside a tensor of 0 axes",
       [] { floats({}).argmin(1); }},
      {"sum of a scalar", "IndexError", "sum: axis -2", [] { floats({}).sum({-2}); }},
      {"mean of a scalar twice", "ShapeError", "twice", [] { floats({}).mean({0, -1}); }},
      {"cumsum of a scalar", "IndexError", "cumsum: axis 1", [] { floats({}).cumsum(1); }},
      {"argmin of nothing", "ShapeError", "no elements", [] { floats({0}).argmin(); }},
      {"logsumexp", "IndexError", "axis 2", [] { floats({2, 2}).logsumexp({2}); }},
      {"logsumexp of nothing", "ShapeError", "no elements", [] { floats({2, 0}).logsumexp({1}); }},
      {"softmax", "IndexError", "axis 2", [] { floats({2, 2}).softmax(2); }},
      {"log_softmax", "IndexError", "log_softmax: axis", [] { floats({2, 2}).log_softmax(-3); }},
      {"cumsum", "IndexError", "cumsum: axis 1", [] { floats({2}).cumsum(1); }},
  };
  return table;
}

const Table& networks() {
  static const Table table = {
      {"matmul", "ShapeError", "inner dimensions differ: (3, 4) x (5, 6)",
       [] { floats({3, 4}).matmul(floats({5, 6})); }},
      {"matmul scalar", "ShapeError", "scalar", [] { floats({}).matmul(floats({2})); }},
      {"matmul batches", "ShapeError", "broadcast",
       [] { floats({2, 3, 4}).matmul(floats({3, 4, 5})); }},
      {"matmul device", "InvalidArgument", "NULL",
       [] { floats({3, 4}).matmul(elsewhere({4, 6})); }},
      {"einsum operands", "InvalidArgument", "2 operands named, 1 given",
       [] { Tensor::einsum("ij,jk->ik", {floats({2, 2})}); }},
      {"einsum nothing", "InvalidArgument", "no operands", [] { Tensor::einsum("", {}); }},
      {"einsum letters", "ShapeError", "(2, 2) for 3 letters",
       [] { Tensor::einsum("ijk", {floats({2, 2})}); }},
      {"einsum extents", "ShapeError", "'j' is both 3 and 4",
       [] { Tensor::einsum("ij,jk", {floats({2, 3}), floats({4, 2})}); }},
      {"einsum diagonal", "ShapeError", "'i' is both 2 and 3",
       [] { Tensor::einsum("ii", {floats({2, 3})}); }},
      {"einsum output", "InvalidArgument", "'z' of the output",
       [] { Tensor::einsum("ij->iz", {floats({2, 2})}); }},
      {"einsum output twice", "InvalidArgument", "occurs twice",
       [] { Tensor::einsum("ij->ii", {floats({2, 2})}); }},
      {"einsum sign", "InvalidArgument", "no letter",
       [] { Tensor::einsum("i+j", {floats({2, 2})}); }},
      {"einsum dots", "InvalidArgument", "three dots",
       [] { Tensor::einsum("i..", {floats({2, 2})}); }},
      {"einsum output without dots", "InvalidArgument", "leaves out the ellipsis",
       [] { Tensor::einsum("i...->i", {floats({2, 2})}); }},
      {"einsum device", "InvalidArgument", "NULL",
       [] { Tensor::einsum("i,i", {floats({2}), elsewhere({2})}); }},
      {"linear", "ShapeError", "(5, 4)", [] { floats({2, 3}).linear(floats({5, 4})); }},
      {"linear bias", "ShapeError", "bias (4,)",
       [] { floats({2, 3}).linear(floats({5, 3}), floats({4})); }},
      {"conv2d axes", "ShapeError", "4 axes",
       [] { floats({2, 3, 4}).conv2d(floats({1, 2, 3, 3})); }},
      {"conv2d channels", "ShapeError", "channels",
       [] { floats({1, 3, 5, 5}).conv2d(floats({1, 2, 3, 3})); }},
      {"conv2d window", "ShapeError", "does not fit",
       [] { floats({1, 2, 2, 5}).conv2d(floats({1, 2, 3, 3})); }},
      {"conv2d stride", "InvalidArgument", "positive",
       [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 0); }},
      {"conv2d dilation", "InvalidArgument", "dilation 1x0",
       [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 1, 0, {1, 0}); }},
      {"conv2d padding", "InvalidArgument", "padding -1x-1",
       [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 1, -1); }},
      {"conv2d groups", "ShapeError", "3 groups",
       [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 1, 0, 1, 3); }},
      {"conv2d bias", "ShapeError", "bias (3,)",
       [] { floats({1, 2, 5, 5}).conv2d(floats({4, 2, 3, 3}), floats({3})); }},
      {"max_pool2d", "ShapeError", "does not fit", [] { floats({1, 1, 2, 2}).max_pool2d(3); }},
      {"max_pool2d axes", "ShapeError", "fewer than 2 axes", [] { floats({4}).max_pool2d(2); }},
      {"max_pool2d padding", "InvalidArgument", "more than half",
       [] { floats({1, 1, 4, 4}).max_pool2d(2, 2, 2); }},
      {"max_pool2d stride", "InvalidArgument", "stride 0x0",
       [] { floats({1, 1, 4, 4}).max_pool2d(2, 0); }},
      {"avg_pool2d", "ShapeError", "does not fit", [] { floats({1, 1, 2, 2}).avg_pool2d({2, 3}); }},
      {"avg_pool2d divisor", "InvalidArgument", "divisor_override",
       [] { floats({1, 1, 2, 2}).avg_pool2d(2, {}, 0, false, true, 0); }},
      {"layernorm", "ShapeError", "(5,)", [] { floats({2, 3}).layernorm({5}); }},
      {"layernorm nothing", "ShapeError", "normalized shape ()",
       [] { floats({2, 3}).layernorm({}); }},
      {"layernorm weight", "ShapeError", "parameter (2,)",
       [] { floats({2, 3}).layernorm({3}, floats({2})); }},
      {"rms_norm", "ShapeError", "rms_norm: (2, 3)", [] { floats({2, 3}).rms_norm({2, 4}); }},
      {"batchnorm", "InvalidArgument", "running statistics",
       [] { floats({2, 3}).batchnorm({}, {}); }},
      {"batchnorm axes", "ShapeError", "(N, C, ...)",
       [] { floats({3}).batchnorm(floats({3}), floats({3})); }},
      {"batchnorm channels", "ShapeError", "mean (4,) for 3 channels",
       [] { floats({2, 3}).batchnorm(floats({4}), floats({3})); }},
      {"batchnorm batch", "ShapeError", "training needs 2",
       [] { floats({1, 3}).batchnorm({}, {}, {}, {}, true); }},
      {"dropout", "InvalidArgument", "1.5", [] { floats({2}).dropout(1.5); }},
      {"dropout nan", "InvalidArgument", "not in 0..1", [] { floats({2}).dropout(NAN); }},
      {"scaled_dot_product_attention", "ShapeError", "do not fit",
       [] {
         Tensor::scaled_dot_product_attention(floats({2, 3}), floats({2, 4}), floats({2, 3}));
       }},
      {"scaled_dot_product_attention mask", "InvalidArgument", "not both",
       [] {
         Tensor::scaled_dot_product_attention(floats({2, 3}), floats({2, 3}), floats({2, 3}),
                                              bools({2, 2}), 0, true);
       }},
      {"scaled_dot_product_attention dropout", "InvalidArgument", "probability 2",
       [] {
         Tensor::scaled_dot_product_attention(floats({2, 3}), floats({2, 3}), floats({2, 3}), {},
                                              2);
       }},
      {"cross_entropy", "ShapeError", "(4,)", [] { floats({3, 5}).cross_entropy(ints({4})); }},
      {"cross_entropy dtype", "InvalidArgument", "not integer",
       [] { floats({3, 5}).cross_entropy(floats({3})); }},
      {"cross_entropy weight", "ShapeError", "weight (4,) for 5 classes",
       [] { floats({3, 5}).cross_entropy(ints({3}), floats({4})); }},
      {"cross_entropy smoothing", "InvalidArgument", "label_smoothing 2",
       [] { floats({3, 5}).cross_entropy(ints({3}), {}, -100, Reduction::Mean, 2); }},
      {"cross_entropy scalar", "ShapeError", "no classes",
       [] { floats({}).cross_entropy(ints({})); }},
      {"cross_entropy device", "InvalidArgument", "NULL",
       [] { floats({3, 5}).cross_entropy(ints_elsewhere({3})); }},
      {"mse_loss", "ShapeError", "mse_loss: shapes", [] { floats({3}).mse_loss(floats({2})); }},
      {"binary_cross_entropy_with_logits", "ShapeError", "(3,) and target (2,)",
       [] { floats({3}).binary_cross_entropy_with_logits(floats({2})); }},
      {"binary_cross_entropy_with_logits weight", "ShapeError", "broadcasts (3,) to (2, 3)",
       [] { floats({3}).binary_cross_entropy_with_logits(floats({3}), floats({2, 3})); }},
  };
  return table;
}

const Table& state() {
  static const Table table = {
      {"item", "ShapeError", "not 1", [] { floats({2}).item(); }},
      {"to", "InvalidArgument", "TPU", [] { floats({2}).to("TPU"); }},
      {"to_vector", "InvalidArgument", "float32, not int32",
       [] { floats({2}).to_vector<int32_t>(); }},
      {"copy_to", "InvalidArgument", "4 bytes given, the tensor has 8",
       [] {
         char v[4];
         floats({2}).copy_to(v, sizeof v);
       }},
      {"copy_from", "InvalidArgument", "4 bytes given, the tensor has 8",
       [] {
         char v[4]{};
         floats({2}).copy_from(v, sizeof v);
       }},
      {"data_ptr", "InvalidArgument", "on NULL", [] { elsewhere({2}).data_ptr(); }},
      {"copy_from read-only", "InvalidArgument", "read-only",
       [] {
         const float v[2]{};
         Tensor::from_blob(static_cast<const void*>(v), {2}, {}, kCpu).copy_from(v, sizeof v);
       }},
      {"assign read-only", "InvalidArgument", "read-only",
       [] {
         const float v[2]{};
         Tensor t = Tensor::from_blob(static_cast<const void*>(v), {2}, {}, kCpu);
         t.assign(t * 2);
       }},
      {"assign shape", "ShapeError", "(3,)", [] { floats({2}).assign(floats({3})); }},
      {"assign dtype", "InvalidArgument", "int32", [] { floats({2}).assign(ints({2})); }},
      {"assign device", "InvalidArgument", "NULL", [] { floats({2}).assign(elsewhere({2})); }},
      {"set_requires_grad", "InvalidArgument", "no gradient",
       [] { ints({2}).set_requires_grad(); }},
      {"set_grad", "ShapeError", "(3,) for a tensor of (2,)",
       [] { floats({2}).set_grad(floats({3})); }},
      {"set_grad device", "InvalidArgument", "NULL", [] { floats({2}).set_grad(elsewhere({2})); }},
      {"backward shape", "ShapeError", "no scalar", [] { leaf({2}).backward(); }},
      {"backward nothing", "InvalidArgument", "requires_grad",
       [] { floats({2}).sum().backward(); }},
      {"backward gradient", "ShapeError", "gradient (3,) for a tensor of (2,)",
       [] { leaf({2}).backward(floats({3})); }},
      {"backward dtype", "InvalidArgument", "only floats", [] { ints({}).backward(); }},
      {"gradient", "InvalidArgument", "int32", [] { ints({}).gradient({floats({2})}); }},
      {"gradient undefined", "InvalidArgument", "undefined",
       [] { floats({}).gradient({Tensor()}); }},
      {"optimizer empty", "InvalidArgument", "no parameters", [] { optim::SGD({}, {}); }},
      {"optimizer leaf", "InvalidArgument", "requires_grad", [] { optim::SGD({floats({2})}, {}); }},
      {"optimizer step", "InvalidArgument", "call backward()",
       [] { optim::Adam({leaf({2})}, {}).step(); }, true},
      {"clip_grad_norm_", "InvalidArgument", "no parameter has a gradient",
       [] { optim::clip_grad_norm_({leaf({2})}, 1); }},
      {"clip_grad_norm_ type", "InvalidArgument", "norm_type 0",
       [] { optim::clip_grad_norm_({leaf({2})}, 1, 0); }},
      {"clip_grad_value_", "InvalidArgument", "clip_value -1",
       [] { optim::clip_grad_value_({leaf({2})}, -1); }},
      {"StepLR", "InvalidArgument", "0 steps",
       [] {
         optim::SGD o({leaf({2})}, {});
         optim::StepLR(o, 0);
       },
       true},
      {"OneCycleLR", "InvalidArgument", "pct_start 2",
       [] {
         optim::SGD o({leaf({2})}, {});
         optim::OneCycleLR(o, 1, 5, 2);
       },
       true},
      {"OneCycleLR end", "InvalidArgument", "step 5 of 5",
       [] {
         optim::SGD o({leaf({2})}, {});
         optim::OneCycleLR(o, 1, 5).rate(5);
       },
       true},
      {"LambdaLR", "InvalidArgument", "no function",
       [] {
         optim::SGD o({leaf({2})}, {});
         optim::LambdaLR(o, {});
       },
       true},
      {"Dropout", "InvalidArgument", "probability 2", [] { nn::Dropout(2); }},
      {"MultiHeadAttention", "InvalidArgument", "3 heads",
       [] { nn::MultiHeadAttention(4, 3, 0, true, kCpu); }},
      {"MultiHeadAttention input", "ShapeError", "(batch, time, 4)",
       [] { nn::MultiHeadAttention(4, 2, 0, true, kCpu)(floats({2, 4})); }, true},
      {"Conv2d", "InvalidArgument", "3 groups",
       [] { nn::Conv2d(4, 6, 3, 1, 0, true, kCpu, 1, 3); }},
      {"load_state_dict", "InvalidArgument", "'b' is missing",
       [] { nn::load_state_dict({{"a", floats({2})}, {"b", floats({2})}}, {{"a", floats({2})}}); }},
      {"load_state_dict unknown", "InvalidArgument", "no tensor 'c'",
       [] { nn::load_state_dict({{"a", floats({2})}}, {{"c", floats({2})}}); }},
      {"load_state_dict shape", "ShapeError", "'a' is (2,), (3,) was given",
       [] { nn::load_state_dict({{"a", floats({2})}}, {{"a", floats({3})}}); }},
      {"jit", "InvalidArgument", "no function", [] { Jit(Jit::Function()); }},
  };
  return table;
}

// Nothing but an undefined tensor is wrong input for these.
#define TUFF_UNDEFINED(call)                                                        \
  Wrong {                                                                           \
    #call, "InvalidArgument", "an undefined tensor was used", [] { Tensor().call; } \
  }
const Table& undefined() {
  static const Table table = {
      TUFF_UNDEFINED(sizes()),
      TUFF_UNDEFINED(dim()),
      TUFF_UNDEFINED(numel()),
      TUFF_UNDEFINED(dtype()),
      TUFF_UNDEFINED(device()),
      TUFF_UNDEFINED(requires_grad()),
      TUFF_UNDEFINED(grad()),
      TUFF_UNDEFINED(is_realized()),
      TUFF_UNDEFINED(realize()),
      TUFF_UNDEFINED(contiguous()),
      TUFF_UNDEFINED(detach()),
      TUFF_UNDEFINED(empty_like()),
      TUFF_UNDEFINED(full_like(1)),
      TUFF_UNDEFINED(zeros_like()),
      TUFF_UNDEFINED(ones_like()),
      TUFF_UNDEFINED(abs()),
      TUFF_UNDEFINED(sign()),
      TUFF_UNDEFINED(reciprocal()),
      TUFF_UNDEFINED(sqrt()),
      TUFF_UNDEFINED(rsqrt()),
      TUFF_UNDEFINED(exp()),
      TUFF_UNDEFINED(exp2()),
      TUFF_UNDEFINED(log()),
      TUFF_UNDEFINED(log2()),
      TUFF_UNDEFINED(sin()),
      TUFF_UNDEFINED(cos()),
      TUFF_UNDEFINED(tan()),
      TUFF_UNDEFINED(tanh()),
      TUFF_UNDEFINED(erf()),
      TUFF_UNDEFINED(sigmoid()),
      TUFF_UNDEFINED(relu()),
      TUFF_UNDEFINED(leaky_relu()),
      TUFF_UNDEFINED(gelu()),
      TUFF_UNDEFINED(silu()),
      TUFF_UNDEFINED(softplus()),
      TUFF_UNDEFINED(trunc()),
      TUFF_UNDEFINED(floor()),
      TUFF_UNDEFINED(ceil()),
      TUFF_UNDEFINED(round()),
      TUFF_UNDEFINED(square()),
      TUFF_UNDEFINED(pow(2)),
      TUFF_UNDEFINED(logical_not()),
      TUFF_UNDEFINED(isnan()),
      TUFF_UNDEFINED(isinf()),
      TUFF_UNDEFINED(sum()),
      TUFF_UNDEFINED(max()),
      TUFF_UNDEFINED(cast(DType::F32)),
      TUFF_UNDEFINED(reshape({1})),
      TUFF_UNDEFINED(item()),
      TUFF_UNDEFINED(backward()),
      TUFF_UNDEFINED(cross_entropy(Tensor())),
      TUFF_UNDEFINED(batchnorm({}, {})),
      TUFF_UNDEFINED(softmax()),
      TUFF_UNDEFINED(index({0})),
      TUFF_UNDEFINED(to("CPU")),
      TUFF_UNDEFINED(assign(Tensor())),
  };
  return table;
}
#undef TUFF_UNDEFINED

}  // namespace

std::vector<const Wrong*> wrong_rows() {
  std::vector<const Wrong*> out;
  for (const Table* t : {&creation(), &movement(), &element_wise(), &reductions(), &networks(),
                         &state(), &undefined()}) {
    for (const Wrong& w : *t) out.push_back(&w);
  }
  for (const Wrong* w : wrong_rows_of_parts()) out.push_back(w);
  for (const Wrong* w : wrong_rows_of_names()) out.push_back(w);
  for (const Wrong* w : wrong_rows_of_windows()) out.push_back(w);
  return out;
}

}  // namespace tuff::test
