// Features of classic models (ai.onnx.ml), and counts of n-grams.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

constexpr const char* kMl = "ai.onnx.ml";

// Of the last axis; a vector is a row.
Outputs array_features(const Node& node) {
  const Tensor x = node.tensor(0), rows = x.dim() == 1 ? x.unsqueeze(0) : x;
  return {rows.index_select(-1, node.tensor(1).flatten())};
}

Outputs binarize(const Node& node) {
  const Tensor x = node.tensor(0);
  return {(x > node.number("threshold", 0)).cast(x.dtype())};
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
    {kMl, "ArrayFeatureExtractor", 1, kNewest, array_features},
    {kMl, "Binarizer", 1, kNewest, binarize},
    {"", "TfIdfVectorizer", 9, kNewest, ngram_counts},
};

}  // namespace

std::span<const Operator> feature_operators() { return kRows; }

}  // namespace tuff::onnx
