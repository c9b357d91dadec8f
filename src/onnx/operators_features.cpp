// Features of classic models (ai.onnx.ml), and counts of n-grams.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "onnx/operators.h"
#include "onnx/scores.h"

namespace tuff::onnx {
namespace {

// Of the last axis; a vector is a row.
Outputs array_features(const Node& node) {
  const Tensor x = node.tensor(0), rows = x.dim() == 1 ? x.unsqueeze(0) : x;
  return {rows.index_select(-1, node.tensor(1).flatten())};
}

Outputs binarize(const Node& node) {
  const Tensor x = node.tensor(0);
  return {(x > node.number("threshold", 0)).cast(x.dtype())};
}

// A number for all features, or one for each: ShapeError for another count.
Tensor of_features(const Node& node, const char* name, double otherwise, const Tensor& x) {
  std::vector<double> all = node.numbers(name, {otherwise});
  if (all.empty()) all = {otherwise};
  const Size width = x.dim() == 0 ? Size(1) : x.size(-1);
  if (all.size() != 1 && !(Size(int64_t(all.size())) == width))
    fail<ShapeError>("the attribute {} has {} numbers for {} features", name, all.size(),
                     width.str());
  return Tensor::from(std::vector<float>(all.begin(), all.end()), {int64_t(all.size())},
                      {.device = node.device()})
      .cast(x.dtype());
}

Outputs scale(const Node& node) {
  const Tensor x = as_floats(node.tensor(0));
  return {((x - of_features(node, "offset", 0, x)) * of_features(node, "scale", 1, x))
              .cast(DType::F32)};
}

Outputs normalize(const Node& node) {
  const Tensor x = as_floats(node.tensor(0));
  const std::string norm = node.text("norm", "MAX");
  Tensor length;
  if (norm == "MAX")
    length = x.max({-1}, true);
  else if (norm == "L1")
    length = x.abs().sum({-1}, true);
  else if (norm == "L2")
    length = x.square().sum({-1}, true).sqrt();
  else
    fail<InvalidArgument>("norm is '{}': one of MAX, L1 and L2 is wanted", norm);
  return {Tensor::where(length == 0, x, x / length).cast(DType::F32)};
}

Outputs impute(const Node& node) {
  const Tensor x = node.tensor(0);
  if (!is_float(x.dtype())) {
    const std::vector<int64_t> values = node.integers("imputed_value_int64s");
    if (values.empty() || (values.size() != 1 && !(Size(int64_t(values.size())) == x.size(-1))))
      fail<ShapeError>("imputed_value_int64s has {} numbers for {}", values.size(),
                       shape_text(x.sizes()));
    const Tensor given = Tensor::from(values, {int64_t(values.size())}, {.device = node.device()});
    return {Tensor::where(x == node.integer("replaced_value_int64", 0), given.cast(x.dtype()), x)};
  }
  if (node.numbers("imputed_value_floats").empty())
    fail<InvalidArgument>("imputed_value_floats has no numbers");
  const double replaced = node.number("replaced_value_float", 0);
  const Tensor missing = std::isnan(replaced) ? x.isnan() : x == replaced;
  return {Tensor::where(missing, of_features(node, "imputed_value_floats", 0, x), x)};
}

// Each input cut, or filled with zeros, to as many columns as the attribute says.
Outputs vectorize_features(const Node& node) {
  const std::vector<int64_t> widths = node.integers("inputdimensions");
  std::vector<Tensor> parts;
  for (size_t i = 0; i < node.count(); i++) {
    Tensor x = as_floats(node.tensor(i));
    if (x.dim() == 1) x = x.unsqueeze(0);
    if (x.dim() != 2) fail<ShapeError>("input {} of {} has not 2 axes", i, shape_text(x.sizes()));
    const int64_t wanted = widths.at(i);
    const auto width = int64_t(x.size(1));
    if (wanted < 0) fail<InvalidArgument>("inputdimensions says {} of input {}", wanted, i);
    parts.push_back(wanted < width ? x.narrow(1, 0, wanted) : x.pad({0, wanted - width}));
  }
  if (parts.empty()) fail<InvalidArgument>("no inputs are given");
  return {Tensor::cat(parts, 1).cast(DType::F32)};
}

// ---- categories

Outputs one_hot_categories(const Node& node) {
  if (!node.texts("cats_strings").empty())
    fail<Unsupported>("cats_strings has categories that are strings, which no tensor holds");
  const std::vector<int64_t> categories = node.integers("cats_int64s");
  if (categories.empty()) fail<InvalidArgument>("cats_int64s has no categories");
  const Tensor table = Tensor::from(categories, {int64_t(categories.size())},
                                    {.device = node.device()});
  const Tensor y = (node.tensor(0).cast(DType::I64).unsqueeze(-1) == table).cast(DType::F32);
  if (node.integer("zeros", 1) == 0 && !read(y.any({-1}).all()).ints.at(0))
    fail<InvalidArgument>("an element is none of cats_int64s, and zeros is 0: nothing else may be "
                          "given");
  return {y};
}

// Keys or values of a LabelEncoder: an attribute of integers, one of floats, or a tensor.
HostNumbers labels_of(const Node& node, const std::string& what) {
  if (!node.texts(what + "s_strings").empty() || !node.texts("classes_strings").empty())
    fail<Unsupported>("{}s are strings, which no tensor holds", what);
  if (node.has(what + "s_tensor")) return node.constant(what + "s_tensor").numbers();
  HostNumbers out;
  if (node.has(what + "s_floats")) {
    out.dtype = DType::F32, out.floats = node.numbers(what + "s_floats");
  } else {
    const std::vector<int64_t> all = node.integers(what + "s_int64s");
    out.ints.assign(all.begin(), all.end());
  }
  out.shape = {out.count()};
  return out;
}

Number default_label(const Node& node, const HostNumbers& values) {
  if (node.has("default_tensor")) return node.constant("default_tensor").numbers().number(0);
  if (values.is_float()) return node.number("default_float", -0.0);
  return node.integer("default_int64", -1);
}

// Of equal keys the last one counts; NaN is equal to NaN.
HostNumbers without_repeated(const HostNumbers& keys, const HostNumbers& of) {
  std::map<std::pair<bool, double>, int64_t> floats;
  std::map<int64_t, int64_t> integers;
  for (int64_t i = 0; i < keys.count(); i++) {
    if (!keys.is_float()) {
      integers[int64_t(keys.ints[size_t(i)])] = i;
      continue;
    }
    const double key = keys.floats[size_t(i)];
    floats[std::isnan(key) ? std::pair(true, 0.0) : std::pair(false, key)] = i;
  }
  std::vector<int64_t> places;
  for (const auto& [key, place] : floats) places.push_back(place);
  for (const auto& [key, place] : integers) places.push_back(place);
  return picked(of, places, {int64_t(places.size())});
}

Outputs encode_labels(const Node& node) {
  const HostNumbers all = labels_of(node, "key"), of_all = labels_of(node, "value");
  if (all.count() != of_all.count() || all.count() == 0)
    fail<InvalidArgument>("{} keys and {} values", all.count(), of_all.count());
  const Tensor x = node.tensor(0).unsqueeze(-1);
  const Tensor keys = Value(without_repeated(all, all)).tensor(node.device()).cast(x.dtype()),
               values = Value(without_repeated(all, of_all)).tensor(node.device());
  Tensor equal = x == keys;
  if (is_float(x.dtype())) equal = equal | (x.isnan() & keys.isnan());
  const Tensor found = Tensor::where(equal, values, 0).sum({-1}).cast(values.dtype());
  return {Tensor::where(equal.any({-1}), found, default_label(node, of_all))};
}

// ---- n-grams

using Gram = std::vector<int64_t>;

// The n-grams of a pool, and the column of the result in which each is counted.
struct Vocabulary {
  std::map<Gram, size_t> columns;
  size_t width = 0;   // columns
  size_t longest = 0;  // n-gram
};

constexpr size_t kMostCounts = size_t{1} << 28;

// n-grams of size i + 1 begin at the i-th of `ngram_counts` in the pool.
Vocabulary vocabulary_of(const Node& node) {
  if (node.has("pool_strings")) fail<Unsupported>("n-grams of strings");
  const std::vector<int64_t> pool = node.integers("pool_int64s"),
                             starts = node.integers("ngram_counts"),
                             columns = node.integers("ngram_indexes");
  Vocabulary out;
  out.longest = starts.size();
  size_t number = 0;
  for (size_t i = 0; i < starts.size(); i++) {
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : int64_t(pool.size());
    if (starts[i] < 0 || end < starts[i] || end > int64_t(pool.size()))
      fail<InvalidArgument>("n-grams of {} begin at {} and end at {} of a pool of {}", i + 1,
                            starts[i], end, pool.size());
    for (auto at = pool.begin() + starts[i]; pool.begin() + end - at >= ptrdiff_t(i + 1);
         at += ptrdiff_t(i + 1), number++) {
      const int64_t column = columns.at(number);
      if (column < 0 || column >= int64_t(kMostCounts))
        fail<InvalidArgument>("the n-gram {} has the column {}", number, column);
      out.columns.insert_or_assign(Gram(at, at + ptrdiff_t(i + 1)), size_t(column));
    }
  }
  for (const int64_t column : columns)
    if (column >= 0 && column < int64_t(kMostCounts))
      out.width = std::max(out.width, size_t(column) + 1);
  return out;
}

// Those of n neighbours that are `step` apart.
void count_grams(std::span<const int64_t> row, size_t n, size_t step, const Vocabulary& words,
                 std::span<float> counts) {
  Gram gram(n);
  for (size_t begin = 0; begin + (n - 1) * step < row.size(); begin++) {
    for (size_t k = 0; k < n; k++) gram[k] = row[begin + k * step];
    if (const auto found = words.columns.find(gram); found != words.columns.end())
      counts[found->second]++;
  }
}

void weigh(const Node& node, std::vector<float>& counts, size_t width) {
  const std::string mode = node.text("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    fail<InvalidArgument>("mode '{}' is none of TF, IDF and TFIDF", mode);
  const std::vector<double> weights = node.numbers("weights");
  for (size_t i = 0; mode != "TF" && i < counts.size(); i++) {
    if (mode == "IDF") counts[i] = counts[i] > 0 ? 1 : 0;
    if (!weights.empty()) counts[i] *= float(weights.at(i % width));
  }
}

// How often each n-gram stands in each row of integers, which the host reads.
Outputs ngram_counts(const Node& node) {
  const Vocabulary words = vocabulary_of(node);
  const std::vector<int64_t> x = node.integers(0);
  const Sizes sizes = node.value(0).sizes();
  if (sizes.size() > 2) fail<ShapeError>("one row or rows are wanted, not {}", shape_text(sizes));
  const size_t rows = sizes.size() == 2 ? size_t(int64_t(sizes[0])) : 1,
               length = rows ? x.size() / rows : 0;
  if (words.width != 0 && rows > kMostCounts / words.width)
    fail<InvalidArgument>("{} rows of {} counts", rows, words.width);
  const auto shortest = size_t(std::max<int64_t>(node.integer("min_gram_length"), 1)),
             longest = std::min(size_t(std::max<int64_t>(node.integer("max_gram_length"), 0)),
                                words.longest),
             skips = size_t(std::max<int64_t>(node.integer("max_skip_count"), 0));
  std::vector<float> counts(rows * words.width);
  for (size_t r = 0; r < rows; r++)
    for (size_t n = shortest; n <= longest; n++)
      for (size_t step = 1; step <= (n == 1 ? 0 : skips) + 1 && (n - 1) * step < length; step++)
        count_grams(std::span(x).subspan(r * length, length), n, step, words,
                    std::span(counts).subspan(r * words.width, words.width));
  weigh(node, counts, words.width);
  Sizes out{int64_t(words.width)};
  if (sizes.size() == 2) out.insert(out.begin(), sizes[0]);
  return {Tensor::from_bytes(counts.data(), out, node.options(DType::F32))};
}

constexpr Operator kRows[] = {
    {kClassic, "ArrayFeatureExtractor", 1, kNewest, array_features},
    {kClassic, "Binarizer", 1, kNewest, binarize},
    {kClassic, "FeatureVectorizer", 1, kNewest, vectorize_features},
    {kClassic, "Imputer", 1, kNewest, impute},
    {kClassic, "LabelEncoder", 1, kNewest, encode_labels},
    {kClassic, "Normalizer", 1, kNewest, normalize},
    {kClassic, "OneHotEncoder", 1, kNewest, one_hot_categories},
    {kClassic, "Scaler", 1, kNewest, scale},
    {"", "TfIdfVectorizer", 9, kNewest, ngram_counts},
};

}  // namespace

std::span<const Operator> feature_operators() { return kRows; }

}  // namespace tuff::onnx
