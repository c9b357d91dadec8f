// What is picked, or put, by index: gathers, scatters, order, positions that depend on data.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "onnx/host.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

Outputs gather(const Node& node) {
  const Value &x = node.value(0), &index = node.value(1);
  const int64_t axis = axis_of(node.integer("axis", 0), x.rank());
  if (!is_int(index.dtype())) fail<InvalidArgument>("indices are {}", name(index.dtype()));
  if (node.folds()) {
    const HostNumbers from = x.numbers();
    std::vector<int64_t> places;
    for (const Size& s : index.numbers().ints)
      places.push_back(axis_of(int64_t(s), from.shape[size_t(axis)]));
    HostNumbers out = host_take(from, axis, places);
    const std::vector<int64_t> inner = index.numbers().shape;
    out.shape.erase(out.shape.begin() + axis);
    out.shape.insert(out.shape.begin() + axis, inner.begin(), inner.end());
    return {out};
  }
  const Tensor t = node.tensor(0);
  // One position that the host knows is a view.
  if (index.folds() && index.rank() == 0 && index.numbers().ints[0].is_number())
    return {t.select(axis, index.numbers().ints[0])};
  const Tensor places = node.tensor(1);
  Sizes sizes = t.sizes();
  sizes.erase(sizes.begin() + axis);
  const Sizes inner = places.sizes();
  sizes.insert(sizes.begin() + axis, inner.begin(), inner.end());
  return {t.index_select(axis, places.flatten()).reshape(sizes)};
}

Outputs gather_elements(const Node& node) {
  const Tensor x = node.tensor(0);
  return {x.gather(axis_of(node.integer("axis", 0), x.dim()), node.tensor(1))};
}

// Coordinates stand along the last axis of the index; the first `batch_dims` axes are of both.
std::vector<Index> coordinates(const Tensor& index, int64_t batch_dims) {
  std::vector<Index> out;
  const int64_t inner = index.dim() - 1;
  if (inner < 0 || batch_dims < 0 || batch_dims > inner)
    fail<InvalidArgument>("{} axes of batches of indices {}", batch_dims,
                          shape_text(index.sizes()));
  for (int64_t b = 0; b < batch_dims; b++) {
    Sizes sizes(size_t(inner), 1);
    sizes[size_t(b)] = index.size(b);
    out.emplace_back(Tensor::arange(0, Number(index.size(b)), 1,
                                    {.dtype = DType::I64, .device = index.device()})
                         .reshape(sizes));
  }
  for (int64_t k = 0; k < int64_t(index.size(-1)); k++) out.emplace_back(index.select(-1, k));
  return out;
}

Outputs gather_nd(const Node& node) {
  return {node.tensor(0).index(coordinates(node.tensor(1), node.integer("batch_dims", 0)))};
}

// ---- scatters

std::string reduction_word(const Node& node) {
  const std::string word = node.text("reduction", "none");
  if (word == "add") return "sum";
  if (word == "mul") return "prod";
  if (word == "max") return "amax";
  if (word == "min") return "amin";
  if (word == "none") return "";
  fail<InvalidArgument>("the reduction '{}'", word);
}

Outputs scatter_elements(const Node& node) {
  const Tensor x = node.tensor(0), index = node.tensor(1), updates = node.tensor(2);
  const int64_t axis = axis_of(node.integer("axis", 0), x.dim());
  const std::string word = reduction_word(node);
  if (word.empty()) return {x.scatter(axis, index, updates)};
  return {x.scatter_reduce(axis, index, updates, word)};
}

// Coordinates become positions among the rows that they name.
Outputs scatter_nd(const Node& node) {
  const Tensor x = node.tensor(0), index = node.tensor(1), updates = node.tensor(2);
  const auto depth = int64_t(index.size(-1));
  Size rows = 1, row = 1;
  for (int64_t a = 0; a < x.dim(); a++) (a < depth ? rows : row) *= x.size(a);
  Tensor place = Tensor::zeros({1}, node.options(DType::I64));
  const Tensor flat = index.reshape({-1, depth});
  for (int64_t k = 0; k < depth; k++) {
    const Tensor at = flat.select(1, k);
    place = place * Number(x.size(k)) + Tensor::where(at < 0, at + Number(x.size(k)), at);
  }
  const Tensor table = x.reshape({rows, row}), source = updates.reshape({-1, row});
  const std::string word = reduction_word(node);
  if (depth == 0) place = place.expand({source.size(0)});
  if (word.empty()) return {table.index_copy(0, place, source).reshape(x.sizes())};
  const Tensor wide = place.unsqueeze(1).expand(source.sizes());
  return {table.scatter_reduce(0, wide, source, word).reshape(x.sizes())};
}

// A cache with an update at each row's own position, modulo its length if the mode is circular.
Outputs tensor_scatter(const Node& node) {
  const Tensor cache = node.tensor(0), update = node.tensor(1);
  const int64_t axis = axis_of(node.integer("axis", -2), cache.dim());
  const std::string mode = node.text("mode", "linear");
  Sizes along(size_t(cache.dim()), 1), batch(size_t(cache.dim()), 1);
  along[size_t(axis)] = update.size(axis), batch[0] = cache.size(0);
  Tensor place = Tensor::arange(0, Number(update.size(axis)), 1, node.options(DType::I64))
                     .reshape(along);
  if (node.has(2)) place = place + node.tensor(2).reshape(batch);
  if (mode == "circular") place = place % Number(cache.size(axis));
  return {cache.scatter(axis, place.expand(update.sizes()), update)};
}

// ---- one-hot, order

Outputs one_hot(const Node& node) {
  const Tensor index = node.tensor(0), values = node.tensor(2);
  const int64_t depth = whole(node.floats(1).at(0)),
                axis = axis_of(node.integer("axis", -1), index.dim() + 1);
  const Tensor whole = index.cast(DType::I64).unsqueeze(axis);
  Sizes sizes(size_t(whole.dim()), 1);
  sizes[size_t(axis)] = depth;
  const Tensor places = Tensor::arange(0, depth, 1, node.options(DType::I64)).reshape(sizes);
  const Tensor hot = (Tensor::where(whole < 0, whole + depth, whole) == places);
  return {Tensor::where(hot, values.select(0, 1), values.select(0, 0))};
}

Outputs top_k(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t k = node.version() >= 10 ? node.integer(1) : node.integer("k");
  const auto [values, places] = x.topk(k, axis_of(node.integer("axis", -1), x.dim()),
                                       node.integer("largest", 1) != 0);
  return {values, places.cast(DType::I64)};
}

// ---- as many as the data says: computed at once

Outputs nonzero(const Node& node) {
  Tensor x = node.tensor(0);
  if (x.dim() == 0) x = x.reshape({1});
  return {x.nonzero().T().cast(DType::I64)};
}

Outputs compress(const Node& node) {
  Tensor x = node.tensor(0);
  if (!node.has("axis")) x = x.flatten();
  const int64_t axis = axis_of(node.integer("axis", 0), x.dim());
  std::vector<int64_t> places;
  const std::vector<int64_t> keeps = node.integers(1);
  for (size_t i = 0; i < keeps.size(); i++)
    if (keeps[i]) places.push_back(int64_t(i));
  return {x.index_select(axis, Tensor::from(places, {int64_t(places.size())},
                                            {.device = node.device()}))};
}

// Slices of the flattened tensor, or of an axis, each once; where they first were, which one each
// is, how many.
Outputs unique(const Node& node) {
  const Tensor x = node.tensor(0);
  const UniqueElements all =
      node.has("axis") ? x.unique(axis_of(node.integer("axis"), x.dim())) : x.flatten().unique();
  const int64_t axis = node.has("axis") ? axis_of(node.integer("axis"), x.dim()) : 0;
  const std::vector<int64_t> inverse = all.inverse.cast(DType::I64).to_vector<int64_t>();
  const auto count = int64_t(all.counts.numel());
  std::vector<int64_t> first(size_t(count), -1), order(size_t(count), 0), rank(size_t(count), 0);
  for (size_t i = inverse.size(); i-- > 0;) first[size_t(inverse[i])] = int64_t(i);
  std::iota(order.begin(), order.end(), 0);
  if (!node.integer("sorted", 1))
    std::ranges::sort(order, {}, [&](int64_t i) { return first[size_t(i)]; });
  for (size_t i = 0; i < order.size(); i++) rank[size_t(order[i])] = int64_t(i);
  const auto vector = [&](const std::vector<int64_t>& v) {
    return Tensor::from(v, {int64_t(v.size())}, {.device = node.device()});
  };
  const Tensor by = vector(order);
  return {all.values.index_select(axis, by), vector(first).index_select(0, by),
          vector(rank).index_select(0, all.inverse.flatten()),
          all.counts.index_select(0, by).cast(DType::I64)};
}

// The first so many of a sequence turned round, the rest as it is.
Outputs reverse_sequence(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t time = axis_of(node.integer("time_axis", 0), x.dim()),
                batch = axis_of(node.integer("batch_axis", 1), x.dim());
  Sizes along(size_t(x.dim()), 1), each(size_t(x.dim()), 1);
  along[size_t(time)] = x.size(time), each[size_t(batch)] = x.size(batch);
  const Tensor length = node.tensor(1).reshape(each);
  const Tensor at =
      Tensor::arange(0, Number(x.size(time)), 1, node.options(DType::I64)).reshape(along);
  const Tensor from = Tensor::where(at < length, length - 1 - at, at);
  return {x.gather(time, from.expand(x.sizes()))};
}

// ---- boxes

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_at(const std::vector<double>& all, size_t i, bool by_center) {
  const double *b = all.data() + 4 * i;
  if (by_center)
    return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

double overlap(const Box& a, const Box& b) {
  const double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1),
               w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (h <= 0 || w <= 0) return 0;
  return h * w / (a.area() + b.area() - h * w);
}

// Boxes of one class by descending score, without those that overlap a chosen one too much.
std::vector<size_t> suppressed(const std::vector<Box>& boxes, const double* scores, size_t most,
                               double overlap_limit, double score_limit) {
  std::vector<size_t> order, chosen;
  for (size_t i = 0; i < boxes.size(); i++)
    if (scores[i] > score_limit) order.push_back(i);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (const size_t i : order) {
    if (chosen.size() == most) break;
    if (std::ranges::none_of(
            chosen, [&](size_t c) { return overlap(boxes[i], boxes[c]) > overlap_limit; }))
      chosen.push_back(i);
  }
  return chosen;
}

Outputs non_max_suppression(const Node& node) {
  const Sizes sizes = node.value(1).sizes();  // (batches, classes, boxes)
  const auto batches = size_t(int64_t(sizes.at(0))), classes = size_t(int64_t(sizes.at(1))),
             count = size_t(int64_t(sizes.at(2)));
  const std::vector<double> boxes = node.floats(0), scores = node.floats(1);
  if (sizes.size() != 3 || boxes.size() != batches * count * 4)
    fail<ShapeError>("{} numbers of boxes for scores {}", boxes.size(), shape_text(sizes));
  const auto most = node.has(2) ? size_t(std::max<int64_t>(0, node.integer(2))) : 0;
  const double overlap_limit = node.has(3) ? node.number(3) : 0;
  const double score_limit =
      node.has(4) ? node.number(4) : -std::numeric_limits<double>::infinity();
  std::vector<int64_t> out;
  for (size_t n = 0; n < batches; n++) {
    std::vector<Box> all;
    for (size_t i = 0; i < count; i++)
      all.push_back(box_at(boxes, n * count + i, node.integer("center_point_box", 0) != 0));
    for (size_t c = 0; c < classes; c++)
      for (const size_t i : suppressed(all, scores.data() + (n * classes + c) * count, most,
                                       overlap_limit, score_limit)) {
        const size_t row[] = {n, c, i};
        out.insert(out.end(), std::begin(row), std::end(row));
      }
  }
  return {Tensor::from(out, {int64_t(out.size() / 3), 3}, {.device = node.device()})};
}

constexpr Operator kRows[] = {
    {"", "Compress", 9, kNewest, compress, 0},
    {"", "Gather", 1, kNewest, gather, 0},
    {"", "GatherElements", 11, kNewest, gather_elements, 0},
    {"", "GatherND", 11, kNewest, gather_nd, 0},
    {"", "NonMaxSuppression", 10, kNewest, non_max_suppression},
    {"", "NonZero", 9, kNewest, nonzero},
    {"", "OneHot", 9, kNewest, one_hot},
    {"", "ReverseSequence", 10, kNewest, reverse_sequence, 0},
    {"", "Scatter", 9, kNewest, scatter_elements, 0},
    {"", "ScatterElements", 11, kNewest, scatter_elements, 0},
    {"", "ScatterND", 11, kNewest, scatter_nd, 0},
    {"", "TensorScatter", 24, kNewest, tensor_scatter, 0},
    {"", "TopK", 1, kNewest, top_k, 0},
    {"", "Unique", 11, kNewest, unique, 0},
};

}  // namespace

std::span<const Operator> index_operators() { return kRows; }

}  // namespace tuff::onnx
