// The readable printed form of a tensor, in NumPy's layout: long axes are shortened in the middle.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

constexpr int64_t kEdge = 3;        // elements shown at each end of a shortened axis
constexpr int64_t kShowAll = 1000;  // tensors up to this size are shown whole

struct Printer {
  const Sizes& sizes;
  const std::vector<std::string>& cells;  // row-major
  size_t width;
  bool shorten;

  std::string axis(size_t d, int64_t offset) const {
    if (d == sizes.size()) return fmt::format("{:>{}}", cells[size_t(offset)], width);
    int64_t stride = 1;
    for (size_t i = d + 1; i < sizes.size(); i++) stride *= sizes[i];
    const bool last = d + 1 == sizes.size();
    const std::string separator = last ? ", " : ",\n" + std::string(d + 8, ' ');
    std::string out = "[";
    for (int64_t i = 0; i < sizes[d]; i++) {
      if (i) out += separator;
      if (shorten && sizes[d] > 2 * kEdge && i == kEdge) {
        out += "...";
        i = sizes[d] - kEdge - 1;
        continue;
      }
      out += axis(d + 1, offset + i * stride);
    }
    return out + "]";
  }
};

std::string cell(const Scalar& v) {
  if (v.dtype == DType::Bool) return v.as_bool() ? "True" : "False";
  if (!is_float(v.dtype))
    return is_unsigned(v.dtype) ? fmt::format("{}", v.bits) : fmt::format("{}", v.as_int());
  const double x = v.as_double();
  if (std::isfinite(x) && x == std::trunc(x) && std::abs(x) < 1e6) return fmt::format("{:.0f}.", x);
  return fmt::format("{:.5g}", x);
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "Tensor(undefined)";
  const Sizes own = sizes();
  const size_t each = size_bytes(dtype());
  std::vector<std::byte> bytes(size_t(numel()) * each);
  copy_to(bytes.data(), bytes.size());
  std::vector<std::string> cells;
  size_t width = 0;
  for (int64_t i = 0; i < numel(); i++) {
    cells.push_back(cell(load_scalar(dtype(), bytes.data() + size_t(i) * each)));
    width = std::max(width, cells.back().size());
  }
  const Printer printer{own, cells, width, numel() > kShowAll};
  return fmt::format("tensor({}, shape={}, dtype={}, device={})", printer.axis(0, 0),
                     detail::text(own), name(dtype()), device());
}

}  // namespace tuff
