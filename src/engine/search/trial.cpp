#include "engine/search/trial.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "hcq/graph.h"

namespace tuff::engine {
namespace {

constexpr double kTimedNs = 4e6;  // launches are repeated for about so long
constexpr int kMostLaunches = 20;

std::vector<std::byte> numbers(DType t, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<std::byte> out(size_t(count) * size_bytes(t));
  for (int64_t i = 0; i < count; i++) {
    const Scalar s =
        is_float(t) ? Scalar::of_double(t, any(random)) : Scalar::of_int(t, int64_t(random() & 1));
    store_scalar(s, out.data() + size_t(i) * size_bytes(t));
  }
  return out;
}

// Bits that an addition keeps.
double epsilon(DType t) {
  return t == DType::F16    ? 0x1p-11
         : t == DType::BF16 ? 0x1p-8
         : is_float8(t)     ? std::ldexp(0.5, -row(t).mantissa_bits)
         : t == DType::F64  ? 0x1p-53
                            : 0x1p-24;
}

}  // namespace

Trial::Trial(hcq::Device& device, const kernel::LinearKernel& kernel) : device_(device) {
  possible_ = kernel.variables.empty();
  for (const ir::Dim& d : kernel.groups) possible_ &= d.is_const();
  if (!possible_) return;
  for (const auto& b : kernel.buffers) {
    Argument a{.dtype = b.dtype, .written = b.written};
    const uint64_t bytes = uint64_t(b.count) * size_bytes(b.dtype);
    a.span = device.allocator().allocate(std::max<uint64_t>(bytes, 4), hcq::MemoryKind::Device);
    a.span.size_bytes = bytes;
    a.before = numbers(b.dtype, b.count, uint32_t(arguments_.size()) + 1);
    terms_ = std::max(terms_, double(b.count));
    arguments_.push_back(std::move(a));
  }
  reset();
}

Trial::~Trial() {
  for (Argument& a : arguments_) device_.allocator().free(a.span);
}

void Trial::reset() {
  for (Argument& a : arguments_)
    if (a.span.size_bytes) device_.upload(a.span, a.before.data());
}

std::vector<std::byte> Trial::read(const Argument& a) {
  std::vector<std::byte> out(a.span.size_bytes);
  if (!out.empty()) device_.download(a.span, out.data());
  return out;
}

double Trial::run(const hcq::Program& program, const kernel::LinearKernel& kernel) {
  hcq::Launch k;
  k.program = &program;
  for (const auto& b : kernel.buffers) {
    const hcq::Span span = arguments_[size_t(b.slot)].span;
    k.operands.push_back(
        {.span = span, .size_bytes = span.size_bytes, .read = b.read, .write = b.written});
  }
  for (size_t i = 0; i < 3; i++) k.groups[i] = uint32_t(kernel.groups[i].value());
  double ns = 0;
  {
    hcq::CommandGraph graph(device_, {k}, 0, 0, 1,
                            [&](const hcq::CommandList& list, std::span<const uint64_t> times) {
                              ns = 0;
                              for (const hcq::TimedCommand& c : hcq::timed_commands(list, times))
                                ns += double(c.end_ns - c.begin_ns);
                            });
    device_.compute_queue().wait(graph.replay({}, {}));
  }  // its end reports the times
  return ns;
}

bool Trial::set_reference(const hcq::Program& program, const kernel::LinearKernel& kernel) {
  reset();
  run(program, kernel);
  bool any = false;
  for (Argument& a : arguments_) {
    if (!a.written) continue;
    a.reference = read(a);
    any |= !a.reference.empty();
  }
  return any;
}

double Trial::time(const hcq::Program& program, const kernel::LinearKernel& kernel,
                   double limit_ns) {
  reset();
  double best = run(program, kernel), total = best;
  if (best > limit_ns) return best;
  for (int i = 1; i < kMostLaunches && total < kTimedNs; i++) {
    const double ns = run(program, kernel);
    best = std::min(best, ns);
    total += ns;
  }
  reset();
  run(program, kernel);
  return best;
}

bool Trial::is_right() {
  for (const Argument& a : arguments_) {
    if (!a.written) continue;
    const std::vector<std::byte> got = read(a);
    if (got == a.reference) continue;
    if (!is_float(a.dtype)) return false;
    const size_t width = size_bytes(a.dtype);
    double largest = 0, apart = 0;
    for (size_t at = 0; at < got.size(); at += width) {
      const double mine = load_scalar(a.dtype, got.data() + at).as_double();
      const double other = load_scalar(a.dtype, a.reference.data() + at).as_double();
      if (mine == other || (std::isnan(mine) && std::isnan(other))) continue;
      if (!std::isfinite(mine) || !std::isfinite(other)) return false;
      largest = std::max(largest, std::abs(other));
      apart = std::max(apart, std::abs(mine - other));
    }
    // Sums of other orders: beside the largest result, not each by itself.
    if (apart > 8 * epsilon(a.dtype) * std::sqrt(terms_) * std::max(largest, 1.0)) return false;
  }
  return true;
}

}  // namespace tuff::engine
