// Discrete Fourier transforms as products with small matrices. A length is a product of radices
// (Cooley and Tukey, 1965), each of them one kernel: a sum over the radix of a matrix times what
// the stage before has stored, turned by twiddle factors. The axes are put in order by the last
// stage's index, not by a pass of its own. Lengths with a large prime are a convolution with a
// chirp (Bluestein, 1970), whose length is a power of two.
#include "tensor/dft.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numbers>
#include <string>
#include <vector>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/shards.h"

namespace tuff {
namespace detail {
namespace {

constexpr int64_t kWhole = 64;          // lengths up to here are one product
constexpr int64_t kRadix = 16;          // what several factors of a length are joined up to
constexpr int64_t kLargestPrime = 97;   // as a radix
constexpr size_t kMostTableBytes = size_t(64) << 20;  // that are kept for later calls

// ---- tables, computed in F64 and rounded once

struct Complex {
  double re, im;
};

// exp(-2 pi i k / n), or its conjugate: by an angle of at most an eighth of a turn, so that
// quarters are exact and what is symmetric is the same number.
Complex root(int64_t k, int64_t n, Direction direction) {
  // In turns of 1/(4 n): n is a quarter.
  int64_t turns = 4 * (k % n);
  const bool lower = turns > 2 * n;
  if (lower) turns = 4 * n - turns;
  const bool left = turns > n;
  if (left) turns = 2 * n - turns;
  const bool steep = 2 * turns > n;
  if (steep) turns = n - turns;
  const double angle = std::numbers::pi * double(turns) / (2 * double(n));
  double re = std::cos(angle), im = std::sin(angle);
  if (steep) std::swap(re, im);
  return {left ? -re : re, lower == (direction == Direction::Forward) ? im : -im};
}

// Constants of transforms, by name, dtype and device, as long as they are not too many: a call that
// is made again uploads nothing.
struct Tables {
  std::mutex mutex;
  std::map<std::string, Ref<engine::Buffer>> by_name;
  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [name, buffer] : by_name) sum += size_t(buffer->size_bytes());
    return sum;
  }
};
Tables& tables() {
  static Tables& t = *std::make_unique<Tables>().release();
  return t;
}

Tensor uploaded(const std::vector<double>& values, const Sizes& sizes, const TensorOptions& o) {
  if (o.dtype == DType::F64) return Tensor::from(values, sizes, o);
  return Tensor::from(std::vector<float>(values.begin(), values.end()), sizes, o);
}

using Fill = std::function<void(std::vector<double>& out)>;

// What a tensor computes with: of its dtype, on its device.
Tensor table(const Tensor& like, const std::string& what, const Sizes& sizes, const Fill& fill) {
  const TensorOptions o{like.dtype(), first_device(like.device())};
  if (o.device != like.device())
    return table(like.to(o.device), what, sizes, fill).to(like.device());
  const std::string key = fmt::format("{} {} {}", what, name(o.dtype), o.device);
  Tables& t = tables();
  {
    const std::lock_guard lock(t.mutex);
    if (const auto known = t.by_name.find(key); known != t.by_name.end())
      return wrap(ir::reshape(ir::buffer(known->second), shape_of(sizes)), o.device);
  }
  std::vector<double> values;
  fill(values);
  const Tensor made = uploaded(values, sizes, o);
  const size_t bytes = values.size() * size_t(size_bytes(o.dtype));
  if (bytes > kMostTableBytes / 4) return made;
  const std::lock_guard lock(t.mutex);
  if (t.bytes() + bytes > kMostTableBytes) t.by_name.clear();
  t.by_name.emplace(key, buffer_of(made));
  return made;
}

char letter(Direction d) { return d == Direction::Forward ? 'f' : 'i'; }

// ---- complex numbers as two planes or as pairs

// What holds for real parts, along axis d.
Tensor is_real(const Tensor& like, int64_t d, int64_t rank) {
  return counter(2, d, rank, like.device()) == 0;
}
Tensor is_real(const Tensor& pairs) { return is_real(pairs, pairs.dim() - 1, pairs.dim()); }

// i times it: each part where the other one was.
Tensor turned(const Tensor& x) {
  const Tensor other = x.flip({-1});
  return Tensor::where(is_real(x), -other, other);
}

// ---- one product

// n pairs to n pairs, both as 2n real numbers.
Tensor whole_complex(const Tensor& x, int64_t n, Direction direction) {
  const auto fill = [&](std::vector<double>& out) {
    for (int64_t j = 0; j < n; j++)
      for (int64_t d = 0; d < 2; d++)
        for (int64_t k = 0; k < n; k++) {
          const Complex w = root(j * k, n, direction);
          out.push_back(d ? -w.im : w.re);
          out.push_back(d ? w.re : w.im);
        }
  };
  const std::string what = fmt::format("whole {} {}", letter(direction), n);
  const Tensor matrix = table(x, what, {2 * n, 2 * n}, fill);
  return unflatten(matmul(x.flatten(-2, -1), matrix), x.dim() - 2, n, 2);
}

Tensor whole_of_real(const Tensor& x, int64_t n) {
  const int64_t points = n / 2 + 1;
  const auto fill = [&](std::vector<double>& out) {
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < points; k++) {
        const Complex w = root(j * k, n, Direction::Forward);
        out.push_back(w.re);
        out.push_back(w.im);
      }
  };
  const Tensor matrix = table(x, fmt::format("of real {}", n), {n, 2 * points}, fill);
  return unflatten(matmul(x, matrix), x.dim() - 1, points, 2);
}

// Every point but the first and, of an even length, the last stands for its conjugate too.
Tensor whole_to_real(const Tensor& x, int64_t n) {
  const int64_t points = n / 2 + 1;
  const auto fill = [&](std::vector<double>& out) {
    for (int64_t k = 0; k < points; k++)
      for (int64_t d = 0; d < 2; d++)
        for (int64_t j = 0; j < n; j++) {
          const bool alone = k == 0 || 2 * k == n;
          const Complex w = root(j * k, n, Direction::Inverse);
          out.push_back(d ? (alone ? 0 : -2 * w.im) : (alone ? w.re : 2 * w.re));
        }
  };
  const Tensor matrix = table(x, fmt::format("to real {}", n), {2 * points, n}, fill);
  return matmul(x.flatten(-2, -1), matrix);
}

// ---- stages

// Factors of n, the large ones first, as few as there may be; none if a prime is too large.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> primes, out;
  for (int64_t p = 2; n > 1; p++) {
    if (p > kLargestPrime) return {};
    for (; n % p == 0; n /= p) primes.push_back(p);
  }
  // Each prime, from the largest on, to the radix that has room for it and is the smallest: radices
  // become alike.
  size_t count = 1;
  for (bool fits = false; !fits; count++) {
    out.assign(count, 1);
    fits = true;
    for (size_t i = primes.size(); i-- > 0 && fits;) {
      int64_t& least = *std::ranges::min_element(out);
      fits = least * primes[i] <= kRadix || least == 1;
      least *= primes[i];
    }
  }
  std::ranges::sort(out, std::greater<>());
  return out;
}

// (2 r, 2 r): a part of a result (c, k) times a part of an element (d, j).
Tensor radix_matrix(const Tensor& like, int64_t r, Direction direction) {
  const auto fill = [&](std::vector<double>& out) {
    for (int64_t c = 0; c < 2; c++)
      for (int64_t k = 0; k < r; k++)
        for (int64_t d = 0; d < 2; d++)
          for (int64_t j = 0; j < r; j++) {
            const Complex w = root(j * k, r, direction);
            out.push_back(c == d ? w.re : c ? w.im : -w.im);
          }
  };
  return table(like, fmt::format("radix {} {}", letter(direction), r), {2, r, 2, r}, fill);
}

// (2, r, m): the parts of exp(-2 pi i k n / (r m)).
Tensor twiddles(const Tensor& like, int64_t r, int64_t m, Direction direction) {
  const auto fill = [&](std::vector<double>& out) {
    for (int64_t c = 0; c < 2; c++)
      for (int64_t k = 0; k < r; k++)
        for (int64_t n = 0; n < m; n++) {
          const Complex w = root(k * n, r * m, direction);
          out.push_back(c ? w.im : w.re);
        }
  };
  return table(like, fmt::format("twiddles {} {} {}", letter(direction), r, m), {2, r, m}, fill);
}

// What a stage works on: (groups, 2, r, m), of which the axis of r becomes that of r results. The
// stage before had radix `previous`, the fastest one of the groups, and has left its twiddle
// factors to this one.
struct Stage {
  int64_t groups, r, m, previous;
  Direction direction;

  // The product's whole space, in which arithmetic is the sum's own: (groups / previous, previous,
  // c, k, d, j, m). A value of its own, repeated for all c and k, would be stored first.
  Sizes space() const { return {groups / previous, previous, 2, r, 2, r, m}; }

  Tensor turned(const Tensor& x) const {
    const Tensor own = x.reshape({groups / previous, previous, 1, 1, 2, r, m});
    const Tensor other = own.flip({4});
    const Tensor all = own.expand(space());
    if (previous == 1) return all;
    const Tensor w = twiddles(x, previous, r * m, direction);
    const auto factor = [&](int64_t c) {
      return w.select(0, c).reshape({1, previous, 1, 1, 1, r, m}).expand(space());
    };
    const Tensor re = factor(0), im = factor(1);
    return all * re + other.expand(space()) * Tensor::where(is_real(x, 4, 7), -im, im);
  }

  // (groups, 2, r, m) -> (groups * r, 2, m)
  Tensor run(const Tensor& x) const {
    const Tensor matrix = radix_matrix(x, r, direction).reshape({1, 1, 2, r, 2, r, 1});
    const Tensor sums = (matrix.expand(space()) * turned(x)).sum({4, 5});  // (.., .., c, k, m)
    // Stored as they are but for the last: the parts of all results are the rows of a product.
    const Tensor stored = m > 1 ? sums.contiguous() : sums;
    return stored.transpose(2, 3).reshape({groups * r, 2, m});
  }
};

Tensor in_stages(const Tensor& given, const std::vector<int64_t>& radices, Direction direction) {
  const int64_t n = given.size(-2), batch = int64_t(given.numel()) / (2 * n);
  Tensor x = given.reshape({batch, n, 2}).transpose(1, 2);
  int64_t groups = batch, left = n, previous = 1;
  for (const int64_t r : radices) {
    left /= r;
    x = Stage{groups, r, left, previous, direction}.run(x);
    groups *= r;
    previous = r;
  }
  // The first radix's results are the slowest axis, and the lowest digit of a point's number.
  Sizes digits{batch};
  Axes order{0};
  digits.insert(digits.end(), radices.begin(), radices.end());
  digits.push_back(2);
  for (auto i = int64_t(radices.size()); i >= 1; i--) order.push_back(i);
  order.push_back(int64_t(radices.size()) + 1);
  return x.reshape(digits).permute(order).reshape(given.sizes());
}

// ---- lengths with a large prime

// In place, of a power of two, on the host: the spectrum of a table.
void transform(std::vector<Complex>& x) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; i++) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t k = 0; k < half; k++) {
      const Complex w = root(int64_t(k), int64_t(2 * half), Direction::Forward);
      for (size_t i = k; i < n; i += 2 * half) {
        Complex &a = x[i], &b = x[i + half];
        const Complex t{b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};
        b = {a.re - t.re, a.im - t.im};
        a = {a.re + t.re, a.im + t.im};
      }
    }
  }
}

// exp(-pi i k^2 / n)
Complex chirp(int64_t k, int64_t n, Direction direction) {
  const auto square = int64_t(static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) %
                              static_cast<uint64_t>(2 * n));
  return root(square, 2 * n, direction);
}

// j k = (j^2 + k^2 - (k - j)^2) / 2
Tensor by_chirp(const Tensor& x, int64_t n, Direction direction) {
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const auto chirps = [&](std::vector<double>& out) {
    for (int64_t k = 0; k < n; k++) {
      const Complex w = chirp(k, n, direction);
      out.push_back(w.re);
      out.push_back(w.im);
    }
  };
  const auto filter = [&](std::vector<double>& out) {
    std::vector<Complex> b(static_cast<size_t>(m));
    for (int64_t k = 0; k < n; k++) {
      const Complex w = chirp(k, n, direction);
      b[size_t(k)] = b[size_t((m - k) % m)] = {w.re, -w.im};
    }
    transform(b);
    for (const Complex& c : b) {
      out.push_back(c.re / double(m));
      out.push_back(c.im / double(m));
    }
  };
  const std::string of = fmt::format("{} {}", letter(direction), n);
  const Tensor w = table(x, "chirp " + of, {n, 2}, chirps),
               spectrum = table(x, "filter " + of, {m, 2}, filter);
  const Tensor padded = pad_axis(complex_product(x, w), x.dim() - 2, 0, m - n);
  const Tensor there = complex_dft(padded, Direction::Forward);
  const Tensor back = complex_dft(complex_product(there, spectrum), Direction::Inverse);
  return complex_product(back.narrow(-2, 0, n).contiguous(), w);
}

// ---- real numbers, by pairs of half the length

// x[k] and the conjugate of x[h - k] for k = 0..h, of h or h + 1 points.
std::pair<Tensor, Tensor> mirrored(const Tensor& x, int64_t h) {
  const int64_t d = x.dim() - 2;
  const bool closed = int64_t(x.size(d)) == h + 1;
  const Tensor all = closed ? x : Tensor::cat({x, x.narrow(d, 0, 1)}, d);
  return {all, conjugate(all.flip({d}))};
}

// (h + 1, 2): exp(-2 pi i k / n), k = 0..n/2.
Tensor half_roots(const Tensor& like, int64_t n, Direction direction) {
  const auto fill = [&](std::vector<double>& out) {
    for (int64_t k = 0; k <= n / 2; k++) {
      const Complex w = root(k, n, direction);
      out.push_back(w.re);
      out.push_back(w.im);
    }
  };
  return table(like, fmt::format("half {} {}", letter(direction), n), {n / 2 + 1, 2}, fill);
}

}  // namespace

Tensor conjugate(const Tensor& x) { return Tensor::where(is_real(x), x, -x); }

Tensor complex_product(const Tensor& a, const Tensor& b) {
  return a * b.narrow(-1, 0, 1) + turned(a) * b.narrow(-1, 1, 1);
}

Tensor complex_dft(const Tensor& x, Direction direction) {
  const int64_t n = x.size(-2);
  if (n == 1 || int64_t(x.numel()) == 0) return x;
  if (n <= kWhole) return whole_complex(x, n, direction);
  const std::vector<int64_t> radices = radices_of(n);
  return radices.empty() ? by_chirp(x, n, direction) : in_stages(x, radices, direction);
}

Tensor dft_of_real(const Tensor& x) {
  const int64_t n = x.size(-1), h = n / 2;
  if (n <= kWhole) return whole_of_real(x, n);
  if (n % 2) {
    const Tensor pairs = pad_axis(x.unsqueeze(-1), x.dim(), 0, 1);
    return complex_dft(pairs, Direction::Forward).narrow(-2, 0, h + 1);
  }
  // Even elements as real parts, odd ones as imaginary parts.
  const Tensor both = complex_dft(unflatten(x, x.dim() - 1, h, 2), Direction::Forward).contiguous();
  const auto [z, other] = mirrored(both, h);
  const Tensor odd = complex_product(z - other, half_roots(x, n, Direction::Forward));
  return (z + other - turned(odd)) * 0.5;
}

Tensor dft_to_real(const Tensor& x, int64_t n) {
  const int64_t d = x.dim() - 2, h = n / 2;
  if (n <= kWhole) return whole_to_real(x, n);
  const Tensor k = counter(h + 1, d, x.dim(), x.device()),
               alone = (k == 0) | (k * 2 == n);
  const Tensor half = Tensor::where(alone & is_real(x).logical_not(), 0.0, x);
  if (n % 2) {
    const Tensor rest = conjugate(half.narrow(d, 1, h).flip({d}));
    return complex_dft(Tensor::cat({half, rest}, d), Direction::Inverse).select(-1, 0);
  }
  const auto [z, other] = mirrored(half, h);
  const Tensor odd = complex_product(z - other, half_roots(x, n, Direction::Inverse));
  const Tensor both = (z + other + turned(odd)).narrow(d, 0, h).contiguous();
  return complex_dft(both, Direction::Inverse).flatten(-2, -1);
}

void drop_tables(const std::string& device) {
  Tables& t = tables();
  const std::lock_guard lock(t.mutex);
  std::erase_if(t.by_name, [&](const auto& row) { return row.second->device == device; });
}

}  // namespace detail
}  // namespace tuff
