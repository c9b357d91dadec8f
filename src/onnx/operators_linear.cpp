// Linear models and support vector machines (ai.onnx.ml).
#include <algorithm>

#include <tuff/scan.h>

#include "base/check.h"
#include "onnx/operators.h"
#include "onnx/scores.h"

namespace tuff::onnx {
namespace {

// Rows of features; a vector is one row.
Tensor rows_of(const Node& node) {
  const Tensor x = as_floats(node.tensor(0));
  return x.dim() == 1 ? x.unsqueeze(0) : x;
}

// An attribute's numbers, of these extents: ShapeError for more or fewer.
Tensor numbers_of(const Node& node, const char* name, int64_t rows, const Size& columns,
                  DType dtype) {
  const std::vector<double> all = node.numbers(name);
  const auto wanted = rows * int64_t(columns);
  if (int64_t(all.size()) != wanted)
    fail<ShapeError>("the attribute {} has {} numbers: {} x {} are wanted", name, all.size(), rows,
                     columns.str());
  return Tensor::from(std::vector<float>(all.begin(), all.end()), {rows, columns},
                      {.device = node.device()})
      .cast(dtype);
}

Outputs linear_regressor(const Node& node) {
  const Tensor x = rows_of(node);
  const int64_t targets = node.positive("targets", 1);
  Tensor y = x.matmul(numbers_of(node, "coefficients", targets, x.size(1), x.dtype()).T());
  if (node.has("intercepts")) y = y + numbers_of(node, "intercepts", 1, targets, x.dtype());
  return {transformed(y, transform_of(node)).cast(DType::F32)};
}

Outputs linear_classifier(const Node& node) {
  const Labels labels(node, "classlabels_ints", "classlabels_strings");
  const Transform how = transform_of(node);
  const Tensor x = rows_of(node);
  const auto width = int64_t(x.size(1)),
             count = width == 0 ? 0 : int64_t(node.numbers("coefficients").size()) / width;
  Tensor scores = x.matmul(numbers_of(node, "coefficients", count, width, x.dtype()).T());
  if (node.has("intercepts"))
    scores = scores + numbers_of(node, "intercepts", 1, count, x.dtype());
  if (count == 1) {
    const Tensor chosen = labels.at((scores > 0).squeeze(-1).cast(DType::I64));
    const Tensor all = labels.count() == 2 ? of_both_classes(scores, how, true)
                                           : transformed(scores, how);
    return {chosen, all.cast(DType::F32)};
  }
  return {labels.at(scores.argmax(-1)), transformed(scores, how).cast(DType::F32)};
}

// ---- support vector machines

// What kernels make of each row and each vector.
Tensor kernel_products(const Node& node, const Tensor& x, const Tensor& vectors) {
  const std::string kind = node.text("kernel_type", "LINEAR");
  std::vector<double> numbers = node.numbers("kernel_params");
  numbers.resize(3);
  const double gamma = numbers[0], added = numbers[1], degree = numbers[2];
  if (kind == "RBF")
    return ((x.unsqueeze(1) - vectors).square().sum({-1}) * -gamma).exp();
  const Tensor dot = x.matmul(vectors.T());
  if (kind == "LINEAR") return dot;
  if (kind == "POLY") return (dot * gamma + added).pow(degree);
  if (kind == "SIGMOID") return (dot * gamma + added).tanh();
  fail<InvalidArgument>("kernel_type is '{}': one of LINEAR, POLY, RBF and SIGMOID is wanted",
                        kind);
}

Outputs svm_regressor(const Node& node) {
  const Tensor x = rows_of(node);
  const int64_t count = node.has("n_supports") && node.integer("n_supports") != 0
                            ? node.positive("n_supports")
                            : 0;
  const Tensor rho = numbers_of(node, "rho", 1, 1, x.dtype());
  Tensor y;
  if (count > 0) {
    const Tensor vectors = numbers_of(node, "support_vectors", count, x.size(1), x.dtype());
    y = kernel_products(node, x, vectors)
            .matmul(numbers_of(node, "coefficients", count, 1, x.dtype()));
  } else {
    y = x.matmul(numbers_of(node, "coefficients", 1, x.size(1), x.dtype()).T());
  }
  y = y + rho;
  if (node.integer("one_class", 0) != 0)
    return {Tensor::where(y > 0, Tensor::full({}, 1, node.options(DType::F32)), -1.0)};
  return {transformed(y, transform_of(node)).cast(DType::F32)};
}

// Each two classes have a machine, whose vectors are those of both. As matrices: what a machine
// multiplies each vector's product with (vectors, machines), and which class it votes for where its
// sum is positive, and where it is not (machines, classes).
struct Machines {
  std::vector<float> factors, first, second;
  int64_t vectors = 0, count = 0;
};

Machines machines_of(const Node& node, const std::vector<int64_t>& per_class) {
  const std::vector<double> coefficients = node.numbers("coefficients");
  const auto classes = int64_t(per_class.size());
  require_reckonable(double(classes) * double(classes) *
                     double(classes + std::ssize(coefficients)));
  std::vector<int64_t> of_vector;  // the class of each
  for (int64_t c = 0; c < classes; c++) {
    if (per_class[size_t(c)] < 0 || per_class[size_t(c)] > int64_t(coefficients.size()))
      fail<InvalidArgument>("the class {} has {} vectors, with {} coefficients", c,
                            per_class[size_t(c)], coefficients.size());
    of_vector.insert(of_vector.end(), size_t(per_class[size_t(c)]), c);
  }
  Machines m;
  m.vectors = int64_t(of_vector.size()), m.count = classes * (classes - 1) / 2;
  if (int64_t(coefficients.size()) != (classes - 1) * m.vectors)
    fail<ShapeError>("{} coefficients of {} vectors and {} classes", coefficients.size(),
                     m.vectors, classes);
  m.factors.resize(size_t(m.vectors * m.count));
  m.first.resize(size_t(m.count * classes)), m.second.resize(size_t(m.count * classes));
  int64_t machine = 0;
  for (int64_t i = 0; i < classes; i++) {
    for (int64_t j = i + 1; j < classes; j++, machine++) {
      m.first[size_t(machine * classes + i)] = m.second[size_t(machine * classes + j)] = 1;
      for (int64_t v = 0; v < m.vectors; v++) {
        const int64_t own = of_vector[size_t(v)];
        if (own != i && own != j) continue;
        const int64_t row = own == i ? j - 1 : i;
        m.factors[size_t(v * m.count + machine)] = float(coefficients[size_t(row * m.vectors + v)]);
      }
    }
  }
  return m;
}

// A score of each machine, and the votes that each class gets.
struct Contest {
  Tensor scores, votes;
};

Contest contest(const Node& node, const Tensor& x, const std::vector<int64_t>& per_class) {
  const Machines m = machines_of(node, per_class);
  const auto classes = int64_t(per_class.size());
  const auto matrix = [&](const std::vector<float>& values, int64_t rows, int64_t columns) {
    return Tensor::from(values, {rows, columns}, {.device = node.device()}).cast(x.dtype());
  };
  const Tensor vectors = numbers_of(node, "support_vectors", m.vectors, x.size(1), x.dtype());
  const Tensor scores =
      kernel_products(node, x, vectors).matmul(matrix(m.factors, m.vectors, m.count)) +
      numbers_of(node, "rho", 1, m.count, x.dtype());
  const Tensor wins = (scores > 0).cast(x.dtype());
  return {scores, wins.matmul(matrix(m.first, m.count, classes)) +
                      (1 - wins).matmul(matrix(m.second, m.count, classes))};
}

// ---- probabilities of classes from those of pairs (Wu, Lin and Weng, "Probability estimates for
// multi-class classification by pairwise coupling", 2004), by the iteration that runtimes make, of
// as many steps at most and with their end

constexpr int64_t kMostClasses = 64;  // each is a part of a step's graph

// (N, classes, classes): in row i and column j the probability of i beside j.
Tensor of_pairs(const Node& node, const Tensor& scores, int64_t classes) {
  const auto pairs = classes * (classes - 1) / 2, cells = classes * classes;
  std::vector<float> above(size_t(pairs * cells)), below = above;
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; i++) {
    for (int64_t j = i + 1; j < classes; j++, pair++) {
      above[size_t(pair * cells + i * classes + j)] = 1;
      below[size_t(pair * cells + j * classes + i)] = 1;
    }
  }
  const auto matrix = [&](const std::vector<float>& values) {
    return Tensor::from(values, {pairs, cells}, {.device = node.device()}).cast(scores.dtype());
  };
  const Tensor a = numbers_of(node, "prob_a", 1, pairs, scores.dtype()),
               b = numbers_of(node, "prob_b", 1, pairs, scores.dtype());
  const Tensor p = (1 - (scores * a + b).sigmoid()).clamp(1e-7, 1 - 1e-7);
  return (p.matmul(matrix(above)) + (1 - p).matmul(matrix(below)))
      .reshape({scores.size(0), classes, classes});
}

// One class after the other gets nearer to what the pairs say.
Tensor coupling_step(const Tensor& q, const Tensor& before, int64_t classes) {
  Tensor p = before, qp = (q * p.unsqueeze(1)).sum({-1}), pqp = (p * qp).sum({-1}, true);
  const Tensor done = (qp - pqp).abs().max({-1}, true) < 0.005 / double(classes);
  for (int64_t t = 0; t < classes; t++) {
    const Tensor own = q.select(1, t), pivot = own.narrow(1, t, 1), at = qp.narrow(1, t, 1);
    const Tensor more = (pqp - at) / pivot, whole = 1 + more;
    const Tensor here = (Tensor::arange(0, classes, 1, {DType::I32, p.device()}) == t)
                            .cast(p.dtype());
    p = (p + here * more) / whole;
    pqp = (pqp + more * (more * pivot + 2 * at)) / whole.square();
    qp = (qp + more * own) / whole;
  }
  return Tensor::where(done, before, p);
}

Tensor probabilities(const Node& node, const Tensor& scores, int64_t classes) {
  if (classes > kMostClasses)
    fail<Unsupported>("probabilities of {} classes by support vector machines", classes);
  const Tensor pairs = of_pairs(node, scores, classes), turned = pairs.transpose(1, 2);
  const Tensor own = Tensor::eye(classes, node.options(scores.dtype()));
  const Tensor q = own * turned.square().sum({-1}, true) - pairs * turned;
  const Tensor first = Tensor::full({scores.size(0), classes}, 1.0 / double(classes),
                                    node.options(scores.dtype()));
  const auto step = [&](const Tensors& s, const Tensors&) {
    return Scanned{{coupling_step(q, s[0], classes)}, {}};
  };
  return scan(step, {first}, {}, {.steps = std::max<int64_t>(100, classes)}).states[0];
}

Outputs svm_classifier(const Node& node) {
  const Labels labels(node, "classlabels_ints", "classlabels_strings");
  const Transform how = transform_of(node);
  const std::vector<int64_t> per_class = node.integers("vectors_per_class");
  const Tensor x = rows_of(node);
  if (!per_class.empty()) {
    if (per_class.size() < 2) fail<InvalidArgument>("vectors_per_class names one class");
    const Contest c = contest(node, x, per_class);
    const auto classes = int64_t(per_class.size());
    if (!node.numbers("prob_a").empty())
      return {labels.at(c.votes.argmax(-1)),
              transformed(probabilities(node, c.scores, classes), how).cast(DType::F32)};
    const Tensor all = classes == 2 ? of_both_classes(c.scores, how, false)
                                             : transformed(c.scores, how);
    return {labels.at(c.votes.argmax(-1)), all.cast(DType::F32)};
  }
  const int64_t classes = std::max<int64_t>(labels.count(), 1);
  const std::vector<double> rho = node.numbers("rho");
  if (rho.empty()) fail<InvalidArgument>("the attribute rho has no numbers");
  const Tensor scores =
      x.matmul(numbers_of(node, "coefficients", classes, x.size(1), x.dtype()).T()) + rho[0];
  return {labels.at(scores.argmax(-1)), transformed(scores, how).cast(DType::F32)};
}

constexpr Operator kRows[] = {
    {kClassic, "LinearClassifier", 1, kNewest, linear_classifier},
    {kClassic, "LinearRegressor", 1, kNewest, linear_regressor},
    {kClassic, "SVMClassifier", 1, kNewest, svm_classifier},
    {kClassic, "SVMRegressor", 1, kNewest, svm_regressor},
};

}  // namespace

std::span<const Operator> linear_operators() { return kRows; }

}  // namespace tuff::onnx
