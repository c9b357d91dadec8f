#include "io/dequantize_grids.h"

#include <span>

#include "io/block_fields.h"
#include "io/grids_table.h"

namespace tuff::io {
namespace {

// What the numbers of a grid's elements stand for.
int32_t iq2_value(int32_t number) { return 8 + number * 17 + number / 2; }  // 8, 25, 43
int32_t iq3_xxs_value(int32_t number) { return number < 7 ? 4 + 8 * number : 62; }
int32_t iq3_s_value(int32_t number) { return 1 + 2 * number; }
int32_t iq1_value(int32_t number) { return number; }  // less 1

struct Grid {
  std::span<const uint16_t> points;
  int64_t elements;  // of a point
  int32_t (*value)(int32_t number);
};

// Words of four values each.
Tensor table_of(const Grid& grid, const std::string& device) {
  const int bits = grid.elements == 8 ? 2 : 3;
  std::vector<int32_t> words;
  for (const uint16_t point : grid.points) {
    for (int64_t first = 0; first < grid.elements; first += 4) {
      uint32_t word = 0;
      for (int64_t i = 0; i < 4; i++) {
        const int number = point >> (bits * (first + i)) & ((1 << bits) - 1);
        word |= uint32_t(grid.value(number)) << (8 * i);
      }
      words.push_back(int32_t(word));
    }
  }
  return Tensor::from(words, {int64_t(words.size())}, {.device = device});
}
// Numbers of points (n, ...) -> values of their elements (n, ..., elements).
Tensor values_of(const Grid& grid, const Tensor& point) {
  const int64_t words = grid.elements / 4, axes = point.dim() + 1;
  const Tensor at = point.unsqueeze(-1) * words + steps(point, words, 1, axes - 1, axes);
  const Tensor word = table_of(grid, point.device()).index_select(0, at.flatten());
  const Tensor four = word.reshape(at.sizes()).unsqueeze(-1) >>
                      steps(point, 4, 8, axes, axes + 1);
  return (four & 255).flatten(-2);
}

// Two and four bytes that lie beside each other on the last axis, as one number.
Tensor pairs(const Tensor& t) {
  const Tensor two = t.reshape({t.size(0), -1, 2});
  return two.select(2, 0) | (two.select(2, 1) << 8);
}
Tensor words(const Tensor& t) {
  const Tensor four = t.reshape({t.size(0), -1, 4});
  return four.select(2, 0) | (four.select(2, 1) << 8) | (four.select(2, 2) << 16) |
         (four.select(2, 3) << 24);
}

// Four numbers of `bits` bits of each word, the lowest first: (n, m) -> (n, m, 4).
Tensor four_of(const Tensor& word, int64_t bits) {
  return (word.unsqueeze(-1) >> steps(word, 4, bits, 2, 3)) & ((1 << bits) - 1);
}
// Seven signs; the eighth makes their number even. Repeated for each element that reads them.
Tensor with_eighth(const Tensor& seven) {
  Tensor odd = seven ^ (seven >> 4);
  odd = odd ^ (odd >> 2);
  return seven | (((odd ^ (odd >> 1)) & 1) << 7);
}

// (n, 8, 4, 8) factors and values of elements, and the signs of each 8 (n, 8, 4).
Tensor signed_values(const Tensor& factors, const Tensor& values, const Tensor& signs) {
  const Tensor negative = (signs.unsqueeze(-1) >> steps(signs, 8, 1, 3, 4)) & 1;
  return (factors * as_float(values * (1 - (negative << 1)))).reshape({-1, 256});
}
// d * (scale + 1/2) * by for each element, (n, 8, 4, 8), of scales (n, 8) or (n, 16). Repeated
// before they are multiplied, as group_factors() has it.
Tensor factors(const Tensor& d, const Tensor& scale, double by) {
  const int64_t count = int64_t(scale.size(1)) / 8;
  const Sizes each{scale.size(0), 8, count, 32 / count};
  const Tensor whole = scale.reshape({-1, 8, count, 1}).expand(each);
  return (d.reshape({-1, 1, 1, 1}).expand(each) * (as_float(whole) + 0.5) * by)
      .reshape({-1, 8, 4, 8});
}

}  // namespace

Tensor iq2_xxs(const Tensor& b) {
  const Tensor qs = bytes(b, 2, 64).reshape({-1, 8, 8});
  const Tensor word = words(qs.narrow(2, 4, 4).flatten(1));
  return signed_values(factors(half(b, 0), (word >> 28) & 15, 0.25),
                       values_of({kGridIQ2XXS, 8, iq2_value}, qs.narrow(2, 0, 4)),
                       with_eighth(four_of(word, 7)));
}
Tensor iq2_xs(const Tensor& b) {
  const Tensor both = pairs(bytes(b, 2, 64)).reshape({-1, 8, 4});
  const Tensor scale = fields_of_each(bytes(b, 66, 8), 2, 4);
  return signed_values(factors(half(b, 0), scale, 0.25),
                       values_of({kGridIQ2XS, 8, iq2_value}, both & 511),
                       with_eighth(both >> 9));
}
Tensor iq2_s(const Tensor& b) {
  const Tensor low = bytes(b, 2, 32).reshape({-1, 8, 4}), high = four_of(bytes(b, 66, 8), 2);
  const Tensor scale = fields_of_each(bytes(b, 74, 8), 2, 4);
  return signed_values(factors(half(b, 0), scale, 0.25),
                       values_of({kGridIQ2S, 8, iq2_value}, low | (high << 8)),
                       bytes(b, 34, 32).reshape({-1, 8, 4}));
}

// Points of IQ3 have four elements.
Tensor iq3_xxs(const Tensor& b) {
  const Tensor word = words(bytes(b, 66, 32));
  const Tensor values = values_of({kGridIQ3XXS, 4, iq3_xxs_value}, bytes(b, 2, 64));
  return signed_values(factors(half(b, 0), (word >> 28) & 15, 0.5), values.reshape({-1, 8, 4, 8}),
                       with_eighth(four_of(word, 7)));
}
Tensor iq3_s(const Tensor& b) {
  const Tensor ninth = fields_of_each(bytes(b, 66, 8), 8, 1);
  const Tensor values = values_of({kGridIQ3S, 4, iq3_s_value}, bytes(b, 2, 64) | (ninth << 8));
  const Tensor scale = fields_of_each(bytes(b, 106, 4), 2, 4);
  return signed_values(factors(half(b, 0), scale, 2), values.reshape({-1, 8, 4, 8}),
                       bytes(b, 74, 32).reshape({-1, 8, 4}));
}

namespace {

// d * (2 scale + 1) * (-1, 0 or 1, and an eighth more or less): points (n, 8, 4), scales as of
// factors(), and whether it is less (n, 8, 4).
Tensor iq1_values(const Tensor& d, const Tensor& scale, const Tensor& point, const Tensor& less) {
  const Tensor number = values_of({kGridIQ1S, 8, iq1_value}, point);
  const Tensor eighths = ((number - 1) << 3) + 1 - (less.unsqueeze(-1) << 1);
  return (factors(d, scale, 2) * (as_float(eighths) * 0.125)).reshape({-1, 256});
}

}  // namespace

Tensor iq1_s(const Tensor& b) {
  const Tensor low = bytes(b, 2, 32).reshape({-1, 8, 4}), word = pairs(bytes(b, 34, 16));
  const Tensor less = (word >> 15).unsqueeze(-1).expand(low.sizes());
  return iq1_values(half(b, 0), (word >> 12) & 7, low | (four_of(word, 3) << 8), less);
}
// The block's scale in the highest halves of bytes 49, 51, 53 and 55; those of groups below it.
Tensor iq1_m(const Tensor& b) {
  const Tensor low = bytes(b, 0, 32).reshape({-1, 8, 4}), word = pairs(bytes(b, 48, 8));
  const Tensor high = fields_of_each(bytes(b, 32, 16), 2, 4).reshape({-1, 8, 4});
  const auto quarter = [&](int64_t i) { return (word.narrow(1, i, 1) >> 12) << (4 * i); };
  const Tensor bits = quarter(0) | quarter(1) | quarter(2) | quarter(3);
  const Tensor d = as_float(bits.cast(DType::U16).bitcast(DType::F16));
  const Tensor scale = four_of(word, 3).reshape({-1, 16});
  return iq1_values(d, scale, low | ((high & 7) << 8), high >> 3);
}

}  // namespace tuff::io
