// One captured graph at every sequence length: the forward pass of the default GPT, captured with a
// sequence length that varies in 1..64 and replayed at several. Prints, per device, medians: from
// the call to completion, and the calling thread's time in the call, with and without the driver's
// submit call on Vulkan. Usage: dynamic_replay [DEVICE [BATCH]].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include <tuff/jit.h>
#include "devices/vulkan/api/api.h"
#include "devices/vulkan/vulkan.h"
#include "engine/device.h"
#include "models/gpt_model.h"

namespace {

using namespace tuff;
using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 5, kReplays = 40;
constexpr int64_t kVocabulary = 96;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + std::ptrdiff_t(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// The driver's part of a replay: its submit call, timed where it is made.
double driver_us = 0;
devices::VkApi real;
void time_submits(devices::VkApi& api) {
  real = api;
  api.vkQueueSubmit = [](auto... args) {
    const auto begin = Clock::now();
    const auto result = real.vkQueueSubmit(args...);
    driver_us += us_since(begin);
    return result;
  };
  if (!real.vkQueueSubmit2) return;
  api.vkQueueSubmit2 = [](auto... args) {
    const auto begin = Clock::now();
    const auto result = real.vkQueueSubmit2(args...);
    driver_us += us_since(begin);
    return result;
  };
}

struct Times {
  std::vector<double> wall, host;
};

class Forward {
 public:
  Forward(const std::string& device, int64_t batch, std::optional<int64_t> fixed_length)
      : device_(device),
        batch_(batch),
        model_({.vocabulary = uint32_t(kVocabulary)}, device),
        jit_([this](const std::vector<Tensor>& in) { return std::vector<Tensor>{model_(in[0])}; },
             options(fixed_length)) {
    for (int i = 0; i < 2; i++) jit_({tokens(fixed_length.value_or(64))});
  }
  // Of replays at one length, each waited for.
  Times measure(int64_t length) {
    const Tensor in = tokens(length);
    hcq::Queue& queue = engine::Device::get(device_)->queue();
    Times times;
    for (int i = 0; i < kWarmUp + kReplays; i++) {
      queue.wait_idle();
      driver_us = 0;
      const auto begin = Clock::now();
      jit_({in});
      const double host = us_since(begin) - driver_us;
      queue.wait_idle();
      if (i < kWarmUp) continue;
      times.wall.push_back(us_since(begin));
      times.host.push_back(host);
    }
    return times;
  }
  uint32_t kernels() const { return jit_.stats().kernels; }

 private:
  static JitOptions options(std::optional<int64_t> fixed_length) {
    if (fixed_length) return {};
    return {.dynamic = {{.argument = 0, .axis = 1, .name = "T", .min = 1, .max = 64}}};
  }
  Tensor tokens(int64_t length) const {
    std::vector<int32_t> v(size_t(batch_ * length));
    for (size_t i = 0; i < v.size(); i++) v[i] = int32_t(i * 37 % size_t(kVocabulary));
    return Tensor::from(v, {batch_, length}, {.device = device_});
  }
  std::string device_;
  int64_t batch_;
  models::Gpt model_;
  Jit jit_;
};

int measure_all(const std::string& device, int64_t batch) {
  const auto opened = engine::Device::get(device);
  if (opened->name().starts_with("VULKAN")) time_submits(devices::vulkan_api(opened->hcq()));
  Forward dynamic(device, batch, {});
  std::printf("%s, batch %ld, %u kernels, T in 1..64\n", opened->name().c_str(), long(batch),
              dynamic.kernels());
  double first = 0;
  for (const int64_t length : {1, 8, 32, 64}) {
    const Times t = dynamic.measure(length);
    if (length == 1) first = median(t.wall);
    std::printf("  T %2ld: %9.1f us, host beyond the submit call %6.1f us; T 1 takes %.2f of it\n",
                long(length), median(t.wall), median(t.host), first / median(t.wall));
  }
  const Times fixed = Forward(device, batch, 64).measure(64);
  std::printf("  captured for T 64 alone: %9.1f us, host %6.1f us\n", median(fixed.wall),
              median(fixed.host));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "CPU";
  const int64_t batch = argc > 2 ? std::atoll(argv[2]) : 1;
  if (argc > 3 || device.starts_with("-") || batch < 1) {
    const bool asked = device == "-h" || device == "--help";
    std::fprintf(asked ? stdout : stderr, "Usage: dynamic_replay [DEVICE [BATCH]]\n");
    return asked ? 0 : 2;
  }
  try {
    return measure_all(device, batch);
  } catch (const tuff::Error& e) {
    std::fprintf(stderr, "dynamic_replay: %s\n", e.what());
    return 1;
  }
}
