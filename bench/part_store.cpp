// A row of a cache written at a position that varies, as a decoder writes keys: captured once and
// replayed, into caches of 1 MB to 1 GB (up to what the second argument says, in MB). Prints, per
// size, medians in microseconds: a replay from the call to completion, and the same without a
// capture. Usage: part_store [DEVICE [LARGEST_MB]].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tuff/jit.h>
#include "tensor/impl.h"

namespace {

using namespace tuff;
using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 5, kWrites = 100;
constexpr int64_t kWidth = 256;  // of F32: a row has 1 KB

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

template <class F>
double median_us(const F& write) {
  std::vector<double> times;
  for (int i = 0; i < kWarmUp + kWrites; i++) {
    const auto begin = Clock::now();
    write(i);
    if (i >= kWarmUp) times.push_back(us_since(begin));
  }
  std::nth_element(times.begin(), times.begin() + kWrites / 2, times.end());
  return times[kWrites / 2];
}

void put_row(Tensor& cache, const Size& at, const Tensor& row) {
  cache.index_put_({indexing::Slice{at, at + 1}}, row);
}

void measure(const std::string& device, int64_t megabytes) {
  const int64_t rows = megabytes * 1024;
  const TensorOptions on{.device = device};
  Tensor cache = Tensor::zeros({rows, kWidth}, on), row = Tensor::ones({1, kWidth}, on);
  // Its length says where to write, and nothing reads its elements.
  const Tensor lengths = Tensor::zeros({1024}, {DType::U8, device});
  detail::wait_for({cache, row, lengths});
  std::vector<Tensor> seen;
  for (int64_t n = 1; n <= 8; n++) seen.push_back(lengths.narrow(0, 0, 100 * n).contiguous());
  detail::wait_for(seen);
  Jit step(
      [&](const std::vector<Tensor>& in) {
        put_row(cache, in[0].size(0) - 1, in[1]);
        return std::vector<Tensor>{};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = 1024}}});
  const double replayed = median_us([&](int i) {
    step({seen[size_t(i) % seen.size()], row});
    detail::wait_for({cache});
  });
  if (cache.sum().item() != double(8 * kWidth)) {
    std::fprintf(stderr, "the rows are not what was written\n");
    std::exit(1);
  }
  const double eager = median_us([&](int i) {
    put_row(cache, 100 * (i % 8) + 99, row);
    detail::wait_for({cache});
  });
  std::printf("%-9s %5lld MB  replay %8.1f us  eager %8.1f us\n", device.c_str(),
              static_cast<long long>(megabytes), replayed, eager);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "CPU";
  const int64_t largest = argc > 2 ? std::atoll(argv[2]) : 1024;
  for (int64_t megabytes = 1; megabytes <= largest; megabytes *= 4) measure(device, megabytes);
}
