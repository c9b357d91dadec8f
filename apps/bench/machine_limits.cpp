#include "bench/machine_limits.h"

#include <algorithm>
#include <string>
#include <vector>

#include <tuff/jit.h>

#include "base/check.h"
#include "base/os.h"
#include "engine/buffer.h"
#include "hcq/graph.h"
#include "base/compilers.h"

namespace tuff::bench {
namespace {

constexpr int kRuns = 5;
constexpr uint64_t kCopyBytes = 128u << 20;

template <class Run>
std::vector<double> seconds_of(const Run& run) {
  std::vector<double> s;
  run();
  for (int i = 0; i < kRuns; i++) {
    const uint64_t begin_ns = os::monotonic_ns();
    run();
    s.push_back(double(os::monotonic_ns() - begin_ns) / 1e9);
  }
  std::ranges::sort(s);
  return s;
}

}  // namespace

struct MachineLimits::Probe {
  virtual ~Probe() = default;
  virtual double gflops() = 0;
  virtual double gbps() = 0;
};

namespace {

// C for the CPU device itself: what clang makes of vector types, without tuff's compiler between.
// Twelve chains of multiply-adds fill two pipes of four cycles. Without min_vector_width, clang
// would halve 512-bit vectors on many CPUs.
constexpr uint32_t kChains = 12, kSteps = 20'000, kFmaGroups = 64, kCopyGroups = 64;
constexpr const char* kSource = R"(
typedef unsigned int u32;
typedef unsigned long long u64;
#define V (BYTES / 4)
typedef float vec __attribute__((vector_size(BYTES)));
typedef u32 words __attribute__((vector_size(BYTES), aligned(4)));
struct Args { void* in; void* out; };
__attribute__((min_vector_width(BYTES * 8)))
void fma_peak(const struct Args* a, u32 x, u32 y, u32 z) {
#pragma clang fp contract(fast)
  vec sum[CHAINS], scale, add;
  for (int i = 0; i < V; i++) scale[i] = ((float*)a->in)[i], add[i] = ((float*)a->in)[V + i];
  for (int c = 0; c < CHAINS; c++) sum[c] = add * (float)(c + 1);
  for (int n = 0; n < STEPS; n++) {
#pragma clang loop unroll(full)
    for (int c = 0; c < CHAINS; c++) sum[c] = sum[c] * scale + add;
  }
  vec all = sum[0];
  for (int c = 1; c < CHAINS; c++) all += sum[c];
  for (int i = 0; i < V; i++) ((float*)a->out)[x * V + i] = all[i];
}
// Not the memcpy that a compiler would make of a plain copy, which may store past the caches.
// Halved vectors copy faster (23 GB/s where whole ones reach 19), so that these are the limit.
void stream(const struct Args* a, u32 x, u32 y, u32 z) {
  const u64 n = COPY_BYTES / BYTES / COPY_GROUPS;
  const words* in = (const words*)a->in + x * n;
  words* out = (words*)a->out + x * n;
  for (u64 i = 0; i < n; i++) out[i] = in[i] ^ 1u;
}
)";

class CpuProbe final : public MachineLimits::Probe {
 public:
  CpuProbe() : device_(engine::Device::get("CPU")) {
    vector_bytes_ = std::max<uint32_t>(device_->target().vector_bytes, 16);
    const std::string source = definitions() + kSource;
    const auto object = std::make_shared<const std::vector<uint8_t>>(
        std::move(compile_c(std::span(&source, 1))[0]));
    std::vector<render::Binary> binaries(2);
    for (size_t i = 0; i < 2; i++) {
      binaries[i].name = binaries[i].symbol = i == 0 ? "fma_peak" : "stream";
      binaries[i].format = render::BinaryFormat::Object;
      binaries[i].bytes = object;
      binaries[i].args = {2, 0};
    }
    programs_ = device_->hcq().load(binaries);
  }

  double gflops() override {
    hcq::CommandGraph graph = graph_of(*programs_[0], kFmaGroups);
    const double flops =
        2.0 * kChains * kSteps * kFmaGroups * double(vector_bytes_) / sizeof(float);
    return flops / seconds_of([&] { run(graph); }).front() / 1e9;
  }
  double gbps() override {
    hcq::CommandGraph graph = graph_of(*programs_[1], kCopyGroups);
    return 2.0 * kCopyBytes / seconds_of([&] { run(graph); })[kRuns / 2] / 1e9;
  }

 private:
  std::string definitions() const {
    return fmt::format(
        "#define BYTES {}\n#define CHAINS {}\n#define STEPS {}\n#define COPY_BYTES {}ull\n"
        "#define COPY_GROUPS {}\n",
        vector_bytes_, kChains, kSteps, kCopyBytes, kCopyGroups);
  }
  Ref<engine::Buffer> memory() {
    const int64_t n = int64_t(kCopyBytes / sizeof(float));
    auto b = engine::Buffer::make(device_, DType::F32, n);
    const std::vector<float> halves(size_t(n), 0.5f);
    b->copyin(halves.data());
    return b;
  }
  hcq::CommandGraph graph_of(const hcq::Program& program, uint32_t groups) {
    if (!in_) in_ = memory(), out_ = memory();
    hcq::Launch k{&program, {}, {}, {groups, 1, 1}};
    k.operands.push_back({.span = in_->span(), .size_bytes = kCopyBytes, .read = true});
    k.operands.push_back({.span = out_->span(), .size_bytes = kCopyBytes, .write = true});
    return hcq::CommandGraph(device_->hcq(), {k}, 0, 0);
  }
  void run(hcq::CommandGraph& graph) { device_->queue().wait(graph.replay({}, {})); }

  std::shared_ptr<engine::Device> device_;
  uint32_t vector_bytes_;
  std::vector<std::unique_ptr<hcq::Program>> programs_;
  Ref<engine::Buffer> in_, out_;
};

// Another device: kernels as simple as can be, made by tuff. Every element is a chain of
// multiply-adds, which as many invocations as a GPU has at once hide the latency of.
class DeviceProbe final : public MachineLimits::Probe {
 public:
  explicit DeviceProbe(const engine::Device& device) : device_(device) {}

  double gflops() override {
    constexpr int64_t kElements = int64_t(1) << 20;
    constexpr int kSteps = 512;
    const TensorOptions options{.device = device_.name()};
    const std::vector<Tensor> given{Tensor::full({kElements}, 0.5, options).realize(),
                                    Tensor::full({kElements}, 0.25, options).realize()};
    Jit chain([](const std::vector<Tensor>& in) {
      Tensor x = in[0];
      for (int i = 0; i < kSteps; i++) x = x * in[0] + in[1];
      return std::vector<Tensor>{x};
    });
    const double best = seconds_of([&] { run(chain, given); }).front();
    return 2.0 * double(kElements) * kSteps / best / 1e9;
  }
  double gbps() override {
    const auto n = int64_t(kCopyBytes / sizeof(int32_t));
    const TensorOptions options{.dtype = DType::I32, .device = device_.name()};
    const std::vector<Tensor> given{Tensor::full({n}, 3, options).realize()};
    Jit copy([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] ^ 1}; });
    return 2.0 * kCopyBytes / seconds_of([&] { run(copy, given); })[kRuns / 2] / 1e9;
  }

 private:
  void run(Jit& jit, const std::vector<Tensor>& given) {
    jit(given);
    device_.queue().wait_idle();
  }
  const engine::Device& device_;
};

}  // namespace

MachineLimits::MachineLimits(const engine::Device& device) {
  if (device.hcq().info().hardware)
    probe_ = std::make_unique<DeviceProbe>(device);
  else
    probe_ = std::make_unique<CpuProbe>();
}
MachineLimits::~MachineLimits() = default;
double MachineLimits::gflops() { return best_gflops_ = std::max(best_gflops_, probe_->gflops()); }
double MachineLimits::gbps() { return best_gbps_ = std::max(best_gbps_, probe_->gbps()); }

}  // namespace tuff::bench
