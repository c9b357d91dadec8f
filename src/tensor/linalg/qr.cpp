// Householder's QR factorization in panels of columns. Rows and columns are rolled, so that the
// next column and its row always stand first and every step is the same kernels. A panel's
// reflections are applied together (compact WY: Schreiber and Van Loan, 1989; their triangle from
// the products of their vectors: Puglisi, 1992).
#include "tensor/linalg/qr.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/linalg/triangular.h"

namespace tuff::linalg {

using ir::UOp;

namespace {

// The columns of a panel's state (batch, m, length + 2): the panel, in which vectors replace what
// was eliminated; 1 in rows that are not done; of rows that are done in this panel tau.
struct Panel {
  int64_t length;
  int64_t open() const { return length; }
  int64_t tau() const { return length + 1; }
};

// That of the first column, whose numbers (batch, 1, 1) are given as wide as they are needed.
struct Reflection {
  Tensor alpha, sigma;  // the first element; the sum of the squares of those below
  Tensor size(int64_t m, int64_t n) const {
    const Tensor a = wide(alpha, m, n);
    return (a * a + wide(sigma, m, n)).sqrt();
  }
  Tensor is_none(int64_t m, int64_t n) const { return wide(sigma, m, n) == 0; }
  Tensor beta(int64_t m, int64_t n) const {
    const Tensor a = wide(alpha, m, n), s = size(m, n);
    return Tensor::where(is_none(m, n), a, Tensor::where(a < 0, s, s.neg()));
  }
  // tau = (beta - alpha) / beta
  Tensor tau(int64_t m, int64_t n) const {
    const Tensor b = beta(m, n);
    return Tensor::where(is_none(m, n), 0, (b - wide(alpha, m, n)) / b);
  }
  // What the elements below are divided by.
  Tensor divisor(int64_t m, int64_t n) const {
    return Tensor::where(is_none(m, n), 1, wide(alpha, m, n) - beta(m, n));
  }
};

Tensor reflected(const Tensor& s, const Panel& p, const Tensor& done) {
  const int64_t m = rows_of(s), h = p.length, rest = m - 1, others = h - 1;
  const Tensor below = rows(s, 1, rest), open = columns(below, p.open(), 1);
  const Tensor x = Tensor::where(wide(open, rest, h) != 0, wide(columns(below, 0, 1), rest, h), 0);
  const Tensor products = (x * columns(below, 0, h)).sum({1}, true).contiguous();
  const Reflection r{part(s, 0, 1, 0, 1), columns(products, 0, 1)};
  // tau times the products of the whole vector with the other columns
  const auto share = [&](int64_t k) {
    const Tensor first = wide(part(s, 0, 1, 1, others), k, others);
    const Tensor sum = first + wide(columns(products, 1, others), k, others) / r.divisor(k, others);
    return Tensor::where(wide(columns(done, 1, others), k, others) != 0, 0, sum * r.tau(k, others));
  };
  const auto vector = [&](int64_t k) {
    const Tensor scaled = wide(columns(below, 0, 1), rest, k) / r.divisor(rest, k);
    return Tensor::where(wide(open, rest, k) != 0, scaled, 0);
  };
  std::vector<Tensor> left, first;
  if (others > 0) {
    left.push_back(columns(below, 1, others) - vector(others) * share(rest));
    first.push_back(part(s, 0, 1, 1, others) - share(1));
  }
  left.push_back(Tensor::where(open != 0, vector(1), columns(below, 0, 1)));
  left.push_back(columns(below, p.open(), 2));
  first.push_back(r.beta(1, 1));
  first.push_back(s.zeros_like().narrow(1, 0, 1).narrow(2, 0, 1));
  first.push_back(r.tau(1, 1));
  return Tensor::cat({Tensor::cat(left, 2), Tensor::cat(first, 2)}, 1).contiguous();
}

// I - V T Vᵀ, whose rows are those of the matrix after the panel's roll.
struct Block {
  Tensor v, t;
};

Block block_of(const Tensor& s, const Panel& p) {
  const int64_t m = rows_of(s), h = p.length;
  const Tensor open = wide(columns(s, p.open(), 1), m, h) != 0;
  const Tensor upper = rows(Tensor::where(open, columns(s, 0, h), 0), 0, m - h);
  const Tensor corner = with_ones_from(part(s, m - h, h, 0, h).tril(-1), 0);
  Block b;
  b.v = (m > h ? Tensor::cat({upper, corner}, 1) : corner).contiguous();
  const Tensor tau = part(s, m - h, h, p.tau(), 1).contiguous();
  const Tensor across = wide(tau.transpose(1, 2), h, h);
  const Tensor products = (matmul(b.v.transpose(1, 2), b.v) * across).contiguous();
  const Tensor inverse = inverse_of_triangle(products, {.unit = true});
  b.t = (inverse.transpose(1, 2) * across).contiguous();
  return b;
}

// Q of the first rows and columns of the identity: the reflections from the last to the first.
Tensor product_of(const std::vector<Block>& blocks, const Tensor& like, int64_t m, int64_t k) {
  const int64_t h = columns_of(blocks[0].v), all = h * int64_t(blocks.size());
  Tensor q = stored(rolled_rows(ones_on_diagonal(like, m, k), all % m));
  for (size_t i = blocks.size(); i-- > 0;) {
    const Block& b = blocks[i];
    const Tensor y = matmul(b.t, matmul(b.v.transpose(1, 2), q).contiguous()).contiguous();
    q = rolled_rows((q - matmul(b.v, y)).contiguous(), m - h).contiguous();
  }
  return q;
}

// Of k = n <= m columns.
std::pair<Tensor, Tensor> tall(const Tensor& given, bool complete) {
  const int64_t m = rows_of(given), n = columns_of(given);
  const Blocks b = blocks_of(n);
  const int64_t h = b.length, all = b.covered(), height = std::max(m, all), rest = all - h;
  const Tensor scale = magnitude_of(given).contiguous();
  Tensor a = padded(given / scale, height, all).contiguous();
  const TensorOptions like{.dtype = a.dtype(), .device = a.device()};
  Tensor open = Tensor::ones({given.size(0), height, 1}, like);
  const Tensor nothing = open.zeros_like();
  const std::vector<Tensor> done_columns = marks(a, {h, 1});
  std::vector<Block> blocks;
  for (const Tensor& done : marks(a, b)) {
    const Panel p{h};
    Tensor s = Tensor::cat({columns(a, 0, h), open, nothing}, 2).contiguous();
    for (const Tensor& column : done_columns) s = reflected(s, p, column);
    blocks.push_back(block_of(s, p));
    const Tensor panel = columns(s, 0, h);
    open = columns(s, p.open(), 1).contiguous();
    if (rest == 0) {
      a = panel.contiguous();
      break;
    }
    const Block& w = blocks.back();
    const Tensor others = rolled_rows(columns(a, h, rest), h).contiguous();
    const Tensor is_done = wide(columns(done, h, rest), h, rest) != 0;
    const Tensor y = Tensor::where(is_done, 0, matmul(w.v.transpose(1, 2), others)).contiguous();
    const Tensor z = matmul(w.t.transpose(1, 2), y).contiguous();
    const Tensor left = (others - matmul(w.v, z)).contiguous();
    a = Tensor::cat({left, panel}, 2).contiguous();
  }
  const int64_t k = complete ? m : n;
  const Tensor r = part(rolled_rows(a, (height - all % height) % height), 0, k, 0, n);
  const Tensor q = product_of(blocks, a, height, k);
  return {rows(q, 0, m).contiguous(), (r.triu() * scale).contiguous()};
}

}  // namespace

Tensor magnitude_of(const Tensor& a) {
  const bool is_wide = a.dtype() == DType::F64;
  const DType bits = is_wide ? DType::U64 : DType::U32;
  const uint64_t exponent = is_wide ? 0x7FF0000000000000 : 0x7F800000;
  const Tensor largest = a.detach().abs().max({1, 2}, true);
  const Tensor power = (largest.bitcast(bits) & Number(exponent)).bitcast(a.dtype());
  return Tensor::where((power > 0) & power.isfinite(), power, 1);
}

std::pair<Tensor, Tensor> values_of_qr(const Tensor& a, bool complete) {
  const int64_t m = rows_of(a), n = columns_of(a);
  if (m >= n) return tall(a, complete);
  auto [q, r] = tall(columns(a, 0, m).contiguous(), false);
  const Tensor others = matmul(q.transpose(1, 2), columns(a, m, n - m)).contiguous();
  return {q, Tensor::cat({r, others}, 2).contiguous()};
}

namespace {

Tensor q_of(const Tensor& q, const Tensor& r, const Tensor& a);
Tensor r_of(const Tensor& q, const Tensor& r, const Tensor& a);

// (to Q + Q S) R⁻ᵀ, S the symmetric matrix whose lower triangle is that of R to_Rᵀ - to_Qᵀ Q
// (Walter and Lehmann, 2013; Seeger and others, 2017).
Tensor through_qr(const Tensor& q, const Tensor& r, const Tensor& to_q, const Tensor& to_r) {
  const Tensor inner = to_r.defined() ? matmul(r, to_r.transpose(1, 2))
                                      : matmul(to_q.transpose(1, 2), q).neg();
  const Tensor symmetric = inner.tril() + inner.tril(-1).transpose(1, 2);
  const Tensor moved = matmul(q, symmetric);
  const Tensor all = to_q.defined() ? to_q + moved : moved;
  return triangular_solution(r, all.transpose(1, 2), {.upper = true}).transpose(1, 2);
}

// The sources are (value, a, the other factor).
std::vector<UOp> row_of_q(const UOp& u, const UOp& gradient) {
  const Tensor value = tensor_of(u->src(0), u), a = tensor_of(u->src(1), u);
  const Tensor r = r_of(value, tensor_of(u->src(2), u), a);
  return gradients_of_sources({through_qr(tensor_of(u, u), r, tensor_of(gradient, u), {})});
}
std::vector<UOp> row_of_r(const UOp& u, const UOp& gradient) {
  const Tensor value = tensor_of(u->src(0), u), a = tensor_of(u->src(1), u);
  const Tensor q = q_of(tensor_of(u->src(2), u), value, a);
  return gradients_of_sources({through_qr(q, tensor_of(u, u), {}, tensor_of(gradient, u).triu())});
}
std::vector<UOp> row_of_complete(const UOp&, const UOp&) {
  fail<Unsupported>(
      "qr: mode \"complete\" of more rows than columns has no gradient, as the columns that it "
      "adds to Q are arbitrary: take \"reduced\"");
}
constexpr ir::GradientRule kQ{"qr_q", row_of_q}, kR{"qr_r", row_of_r},
    kComplete{"qr_complete", row_of_complete};

Tensor q_of(const Tensor& q, const Tensor& r, const Tensor& a) { return ruled(q, {a, r}, kQ); }
Tensor r_of(const Tensor& q, const Tensor& r, const Tensor& a) { return ruled(r, {a, q}, kR); }

}  // namespace

std::pair<Tensor, Tensor> qr_of(const Tensor& a, bool complete) {
  const int64_t m = rows_of(a), n = columns_of(a);
  if (m < n) {
    const auto [q, r] = qr_of(columns(a, 0, m).contiguous(), false);
    return {q, Tensor::cat({r, matmul(q.transpose(1, 2), columns(a, m, n - m))}, 2)};
  }
  const auto [q, r] = tall(a, complete);
  if (complete && m > n) return {ruled(q, {a}, kComplete), ruled(r, {a}, kComplete)};
  return {q_of(q, r, a), r_of(q, r, a)};
}

std::pair<Tensor, Tensor> qr(const Tensor& a, std::string_view mode) {
  if (mode != "reduced" && mode != "complete" && mode != "r")
    fail<InvalidArgument>("qr: mode is \"{}\", not \"reduced\", \"complete\" or \"r\"", mode);
  const Batch batch("qr", a);
  const bool complete = mode == "complete";
  if (batch.n() == 0 || batch.m() == 0 || batch.count() == 0) {
    const int64_t k = complete ? batch.m() : std::min(batch.m(), batch.n());
    const Tensor q = ones_on_diagonal(batch.matrices(), batch.m(), k);
    return {batch.placed(q), batch.placed(rows(batch.matrices(), 0, k))};
  }
  const auto [q, r] = qr_of(batch.matrices(), complete);
  if (mode == "r")
    return {Tensor::empty({0}, {.dtype = a.dtype(), .device = a.device()}), batch.placed(r)};
  return {batch.placed(q), batch.placed(r)};
}

}  // namespace tuff::linalg
