// The readable printed form of a tensor, in NumPy's layout: long axes are shortened in the middle.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

constexpr int64_t kEdge = 3;        // elements shown at each end of a shortened axis
constexpr int64_t kShowAll = 1000;  // tensors up to this size are shown whole

std::string cell(const Scalar& v) {
  if (v.dtype == DType::Bool) return v.as_bool() ? "True" : "False";
  if (!is_float(v.dtype))
    return is_unsigned(v.dtype) ? fmt::format("{}", v.bits) : fmt::format("{}", v.as_int());
  const double x = v.as_double();
  if (std::isfinite(x) && x == std::trunc(x) && std::abs(x) < 1e6) return fmt::format("{:.0f}.", x);
  return fmt::format("{:.5g}", x);
}

// Prints the elements that are shown: large tensors have few of them.
struct Printer {
  const Sizes& sizes;
  DType dtype;
  const std::byte* memory;  // row-major
  bool shorten;
  size_t width = 0;

  std::string text(int64_t offset) const {
    return cell(load_scalar(dtype, memory + size_t(offset) * size_bytes(dtype)));
  }
  // Positions of an axis; -1 stands for those that are left out.
  std::vector<int64_t> shown(size_t d) const {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < sizes[d]; i++) {
      if (shorten && sizes[d] > 2 * kEdge && i == kEdge) {
        out.push_back(-1);
        i = sizes[d] - kEdge;
      }
      out.push_back(i);
    }
    return out;
  }
  int64_t stride(size_t d) const {
    int64_t stride = 1;
    for (size_t i = d + 1; i < sizes.size(); i++) stride *= sizes[i];
    return stride;
  }
  void measure(size_t d, int64_t offset) {
    if (d == sizes.size()) {
      width = std::max(width, text(offset).size());
      return;
    }
    for (const int64_t i : shown(d)) {
      if (i >= 0) measure(d + 1, offset + i * stride(d));
    }
  }
  std::string axis(size_t d, int64_t offset) const {
    if (d == sizes.size()) return fmt::format("{:>{}}", text(offset), width);
    const bool last = d + 1 == sizes.size();
    const std::string separator = last ? ", " : ",\n" + std::string(d + 8, ' ');
    std::vector<std::string> parts;
    for (const int64_t i : shown(d))
      parts.push_back(i < 0 ? "..." : axis(d + 1, offset + i * stride(d)));
    return fmt::format("[{}]", fmt::join(parts, separator));
  }
};

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "Tensor(undefined)";
  const Sizes own = sizes();
  const size_t each = size_bytes(dtype());
  std::vector<std::byte> bytes(size_t(numel()) * each);
  // What is printed is not computed with: inside a Jit's function it is that of the capture.
  detail::memory_of(*this)->copyout(bytes.data());
  Printer printer{own, dtype(), bytes.data(), numel() > kShowAll};
  if (numel() > 0) printer.measure(0, 0);
  return fmt::format("tensor({}, shape={}, dtype={}, device={})", printer.axis(0, 0),
                     detail::text(own), name(dtype()), device());
}

}  // namespace tuff
