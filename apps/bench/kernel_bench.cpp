#include "bench/kernel_bench.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "base/check.h"
#include "base/os.h"
#include "bench/median.h"
#include "engine/device.h"
#include "engine/profile/profile.h"

namespace tuff::bench {
namespace {

constexpr int kLeastRuns = 5, kMostRuns = 1000;
constexpr int64_t kCheckedElements = 1024;

// From launch to completion; the first calls, which schedule, capture and learn costs, apart.
std::vector<double> times_ms(Jit& jit, const KernelCase& c, hcq::Queue& queue, double seconds) {
  constexpr int kWarmUp = 4;
  std::vector<double> ms;
  uint64_t end_ns = 0;
  for (int i = 0; i < kWarmUp + kMostRuns; i++) {
    const uint64_t begin_ns = os::monotonic_ns();
    jit(c.inputs);
    queue.wait_idle();
    const uint64_t now_ns = os::monotonic_ns();
    if (i < kWarmUp) {
      end_ns = now_ns + uint64_t(seconds * 1e9);
      continue;
    }
    ms.push_back(double(now_ns - begin_ns) / 1e6);
    if (now_ns >= end_ns && int(ms.size()) >= kLeastRuns) break;
  }
  return ms;
}

// Times of the device alone, from the first kernel's begin to the last end by its clock; empty
// where it has none, and where a replay is several submissions, whose times come one by one. A
// capture of its own, since timestamps stand between its kernels.
std::vector<double> device_times_us(const KernelCase& c, hcq::Queue& queue, double seconds) {
  std::vector<double> us;
  const engine::ObservedReplays observed(
      [&us](const hcq::CommandList&, std::span<const uint64_t> times) {
        if (!times.empty()) us.push_back(double(times.back() - times.front()) / 1e3);
      });
  Jit jit(c.function);
  times_ms(jit, c, queue, seconds);
  if (jit.stats().submits_per_replay != 1) us.clear();
  return us;
}

// All elements of a small result, of a large one as many at random, the first and the last.
std::vector<int64_t> checked_elements(int64_t count) {
  std::vector<int64_t> out;
  if (count <= kCheckedElements) {
    for (int64_t i = 0; i < count; i++) out.push_back(i);
    return out;
  }
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> any(0, count - 1);
  out = {0, count - 1};
  while (int64_t(out.size()) < kCheckedElements) out.push_back(any(random));
  return out;
}

std::vector<float> all_values(const std::vector<Tensor>& results) {
  std::vector<float> out;
  for (const Tensor& t : results) {
    const std::vector<float> more = t.cast(DType::F32).to_vector<float>();
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace

std::string first_wrong(const std::function<Expected(int64_t)>& expected,
                        const std::vector<float>& got) {
  for (const int64_t i : checked_elements(int64_t(got.size()))) {
    const Expected e = expected(i);
    const double value = double(got[size_t(i)]);
    if (std::abs(value - e.value) <= e.tolerance) continue;
    return fmt::format("element {} is {:.9g}; right is {:.9g} within {:.2g}", i, value, e.value,
                       e.tolerance);
  }
  return {};
}

std::string to_string(const Extents& e) { return fmt::format("{}", fmt::join(e, "x")); }

Extents extents_from(std::string_view text) {
  Extents e;
  const char *at = text.data(), *const end = at + text.size();
  for (;;) {
    int64_t n = 0;
    const auto [next, error] = std::from_chars(at, end, n);
    if (error != std::errc() || n < 1) return {};
    e.push_back(n);
    if (next == end) return e;
    if (*next != 'x') return {};
    at = next + 1;
  }
}

KernelFigures measure(const KernelRow& row, const Extents& extents, const KernelOptions& options,
                      MachineLimits& limits, const MakePeer& make_peer) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(options.device);
  const KernelCase c = row.make(extents, options);
  Jit jit(c.function);
  KernelFigures f;
  if (options.seconds > 0)
    f.limit = row.unit == Unit::Gflops ? limits.gflops() : limits.gbps();
  std::vector<double> ms;
  const std::unique_ptr<BenchPeer> peer = make_peer ? make_peer(c) : nullptr;
  const std::vector<double> peer_ms = in_turns(peer.get(), options.seconds, [&](double seconds) {
    const std::vector<double> more = times_ms(jit, c, device->queue(), seconds);
    ms.insert(ms.end(), more.begin(), more.end());
  });
  if (peer) f.peer_ms_median = median(peer_ms), f.peer_wrong = peer->wrong();
  f.wrong = first_wrong(c.expected, all_values(jit(c.inputs)));
  f.device = device->name();
  f.driver = device->hcq().info().driver;
  f.kernels = jit.stats().kernels;
  f.ms_median = median(ms);
  f.ms_min = std::ranges::min(ms);
  f.ms_max = std::ranges::max(ms);
  if (const std::vector<double> us = device_times_us(c, device->queue(), options.seconds / 4);
      !us.empty())
    f.device_us_median = median(us);
  f.rate = (row.unit == Unit::Gflops ? c.flops : c.bytes) / f.ms_median / 1e6;
  return f;
}

}  // namespace tuff::bench
