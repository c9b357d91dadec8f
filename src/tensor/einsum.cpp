// Einstein's summation: operands brought to one order of axes, multiplied and summed pair by pair.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

constexpr char kDots = '.';  // stands for all axes of an ellipsis

struct Equation {
  std::vector<std::string> in;  // letters and at most one kDots each
  std::string out;
};

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  fail<InvalidArgument>("einsum: '{}': {}", equation, why);
}

// Letters of one operand; "..." becomes one kDots.
std::string subscript(std::string_view equation, std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (text.substr(i, 3) != "..." || out.find(kDots) != std::string::npos)
        refuse(equation, "an ellipsis is three dots, once per operand");
      i += 2;
    } else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      refuse(equation, fmt::format("'{}' is no letter", c));
    }
    out += c;
  }
  return out;
}

// Without an arrow: the ellipsis, then the letters that occur once, in order.
std::string implicit_output(const std::vector<std::string>& in) {
  std::array<int, 128> seen{};
  bool dots = false;
  for (const std::string& s : in) {
    for (const char c : s) {
      if (c == kDots) {
        dots = true;
      } else {
        seen[size_t(c)]++;
      }
    }
  }
  std::string out(dots ? 1 : 0, kDots);
  for (size_t c = 0; c < seen.size(); c++) {
    if (seen[c] == 1) out += char(c);
  }
  return out;
}

Equation parse(std::string_view equation, size_t operands) {
  const size_t arrow = equation.find("->");
  Equation e;
  std::string_view left = equation.substr(0, arrow);
  while (true) {
    const size_t comma = left.find(',');
    e.in.push_back(subscript(equation, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left = left.substr(comma + 1);
  }
  if (e.in.size() != operands)
    refuse(equation, fmt::format("{} operands named, {} given", e.in.size(), operands));
  e.out = arrow == std::string_view::npos ? implicit_output(e.in)
                                          : subscript(equation, equation.substr(arrow + 2));
  for (size_t i = 0; i < e.out.size(); i++) {
    if (e.out.find(e.out[i], i + 1) != std::string::npos)
      refuse(equation, fmt::format("'{}' occurs twice in the output", e.out[i]));
    const bool known = std::any_of(e.in.begin(), e.in.end(), [&](const std::string& s) {
      return s.find(e.out[i]) != std::string::npos;
    });
    if (!known && e.out[i] != kDots)
      refuse(equation, fmt::format("'{}' of the output is in no operand", e.out[i]));
  }
  return e;
}

// The diagonal of two axes, in place of the first: of n x n elements laid out in a row those n + 1
// apart, which stand in the first column of rows of n + 1.
Tensor diagonal(const Tensor& x, int64_t a, int64_t b) {
  const Size n = x.size(a);
  detail::require_numbers("einsum's diagonal", {n});
  Axes order;
  Sizes kept;
  for (int64_t i = 0; i < x.dim(); i++) {
    if (i == a || i == b) continue;
    order.push_back(i);
    kept.push_back(x.size(i));
  }
  order.insert(order.end(), {a, b});
  Sizes flat = kept, rows = kept;
  flat.push_back(n * n);
  rows.insert(rows.end(), {n, n + 1});
  const Tensor diagonals =
      x.permute(order).reshape(flat).pad({0, n}).reshape(rows).select(-1, 0);  // (kept..., n)
  Axes back;
  for (int64_t i = 0, at = 0; i < x.dim() - 1; i++) back.push_back(i == a ? x.dim() - 2 : at++);
  return diagonals.permute(back);
}

// One operand with an axis per letter of `letters`, behind the axes of the ellipsis.
struct Operand {
  Tensor x;
  std::string letters;
};

class Contraction {
 public:
  Contraction(std::string_view equation, const std::vector<Tensor>& operands)
      : text_(equation), equation_(parse(equation, operands.size())) {
    for (size_t i = 0; i < operands.size(); i++)
      dots_ = std::max(dots_, ellipsis_axes(equation_.in[i], operands[i]));
    for (size_t i = 0; i < operands.size(); i++) in_.push_back(take(i, operands[i]));
    if (equation_.out.find(kDots) == std::string::npos && dots_ > 0)
      refuse(text_, "the output leaves out the ellipsis");
  }

  Tensor run() const {
    Operand left = summed(in_[0], 1);
    for (size_t i = 1; i < in_.size(); i++) left = contracted(left, in_[i], i + 1);
    return to_output(left);
  }

 private:
  int64_t ellipsis_axes(const std::string& letters, const Tensor& x) const {
    const bool dots = letters.find(kDots) != std::string::npos;
    const int64_t named = int64_t(letters.size()) - dots;
    if (dots ? x.dim() < named : x.dim() != named)
      fail<ShapeError>("einsum: '{}': an operand {} for {} letters", text_, detail::text(x.sizes()),
                       named);
    return x.dim() - named;
  }

  void note_extent(char c, const Size& n) {
    Size& known = extents_[size_t(c)];
    const bool one = detail::same(n, 1);
    if (known.max() > 1 && !detail::same(n, known) && !one)
      fail<ShapeError>("einsum: '{}': '{}' is both {} and {}", text_, c, known, n);
    if (known.max() <= 0 || !one) known = n;
  }

  Operand take(size_t number, const Tensor& given) {
    std::string letters = equation_.in[number];
    Tensor x = given;
    const size_t dots = letters.find(kDots);
    const int64_t own = ellipsis_axes(letters, x);
    if (dots != std::string::npos) letters.replace(dots, 1, std::string(size_t(own), kDots));
    for (size_t a = 0; a < letters.size(); a++) {
      size_t b;
      while (letters[a] != kDots && (b = letters.find(letters[a], a + 1)) != std::string::npos) {
        if (!detail::same(x.size(int64_t(a)), x.size(int64_t(b))))
          fail<ShapeError>("einsum: '{}': '{}' is both {} and {}", text_, letters[a],
                           x.size(int64_t(a)), x.size(int64_t(b)));
        x = diagonal(x, int64_t(a), int64_t(b));
        letters.erase(b, 1);
      }
    }
    for (size_t a = 0; a < letters.size(); a++) {
      if (letters[a] != kDots) note_extent(letters[a], x.size(int64_t(a)));
    }
    return ellipsis_first(x, letters);
  }

  // The ellipsis' axes in front, as many as the largest has.
  Operand ellipsis_first(const Tensor& x, const std::string& letters) const {
    Axes order;
    Sizes sizes;
    for (int pass = 0; pass < 2; pass++) {
      for (size_t a = 0; a < letters.size(); a++) {
        if ((letters[a] == kDots) == (pass == 0)) order.push_back(int64_t(a));
      }
    }
    std::string named;
    for (const char c : letters) {
      if (c != kDots) named += c;
    }
    const Tensor y = x.permute(order);
    sizes.assign(size_t(dots_) - (letters.size() - named.size()), 1);
    for (const Size& n : y.sizes()) sizes.push_back(n);
    return {y.reshape(sizes), named};
  }

  bool wanted_later(char c, size_t next) const {
    if (equation_.out.find(c) != std::string::npos) return true;
    return std::any_of(in_.begin() + std::ptrdiff_t(next), in_.end(),
                       [&](const Operand& o) { return o.letters.find(c) != std::string::npos; });
  }

  // Axes that neither the output nor an operand from `next` on names are summed away.
  Operand summed(const Operand& o, size_t next) const {
    Axes away;
    std::string kept;
    for (size_t i = 0; i < o.letters.size(); i++) {
      if (wanted_later(o.letters[i], next)) {
        kept += o.letters[i];
      } else {
        away.push_back(dots_ + int64_t(i));
      }
    }
    if (away.empty()) return o;
    return {detail::own_sum("einsum", o.x, away), kept};
  }

  Tensor spread(const Operand& o, const std::string& letters) const {
    Axes order;
    for (int64_t i = 0; i < dots_; i++) order.push_back(i);
    std::string present;
    for (const char c : letters) {
      const size_t at = o.letters.find(c);
      if (at != std::string::npos) order.push_back(dots_ + int64_t(at));
    }
    const Tensor x = o.x.permute(order);
    Sizes sizes;
    int64_t next = 0;
    for (; next < dots_; next++) sizes.push_back(x.size(next));
    for (const char c : letters)
      sizes.push_back(o.letters.find(c) != std::string::npos ? x.size(next++) : Size(1));
    return x.reshape(sizes);
  }

  Operand contracted(const Operand& a, const Operand& b, size_t next) const {
    // Kept letters first, summed ones last: the layout that products of matrices have.
    std::string kept, away;
    for (const std::string* s : {&a.letters, &b.letters}) {
      for (const char c : *s) {
        std::string& list = wanted_later(c, next) ? kept : away;
        if (list.find(c) == std::string::npos) list += c;
      }
    }
    return summed({spread(a, kept + away) * spread(b, kept + away), kept + away}, next);
  }

  // Letters in the output's order; those whose every operand had extent 1 stay so.
  Tensor to_output(const Operand& o) const {
    Axes order;
    for (const char c : equation_.out) {
      if (c == kDots) {
        for (int64_t i = 0; i < dots_; i++) order.push_back(i);
      } else {
        order.push_back(dots_ + int64_t(o.letters.find(c)));
      }
    }
    return o.x.permute(order);
  }

  std::string text_;
  Equation equation_;
  std::vector<Operand> in_;
  std::array<Size, 128> extents_ = [] {
    std::array<Size, 128> none;
    none.fill(-1);
    return none;
  }();
  int64_t dots_ = 0;
};

}  // namespace

Tensor Tensor::einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  if (operands.empty()) fail<InvalidArgument>("einsum: '{}': no operands given", equation);
  DType t = DType::Void;
  std::vector<Tensor> factors;
  for (const Tensor& x : operands) {
    detail::require_same_device("einsum", operands[0], x);
    factors.push_back(operands.size() > 1 ? detail::factor(x) : x);
    t = promote(t, factors.back().dtype());
  }
  std::vector<Tensor> wide;  // products are added up unrounded
  for (const Tensor& x : factors) wide.push_back(x.cast(accumulator(t)));
  const Tensor out = Contraction(equation, wide).run();
  return is_float(t) ? out.cast(t) : out;
}

}  // namespace tuff
