#include "bench/glsl_peer.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/os.h"
#include "engine/buffer.h"
#include "hcq/graph.h"
#include "tensor/impl.h"

#ifdef TUFF_HAS_GLSL
#include "shaders/elementwise.spv.h"
#include "shaders/gemm.spv.h"
#include "shaders/layernorm.spv.h"
#include "shaders/softmax.spv.h"
#include "shaders/sum.spv.h"

namespace tuff::bench {
namespace {

constexpr uint32_t kLanes = 8;  // of a workgroup, which has to be one subgroup
constexpr int64_t kVector = 4;  // floats

// One dispatch: the result or what comes between is argument 0, the others are read.
struct GlslKernel {
  const char* name;
  std::span<const uint32_t> words;
  std::vector<int32_t> scalars;
  std::array<uint32_t, 3> groups;
};

// The kernels of a row, one reading what the one before has written.
struct GlslWork {
  std::vector<GlslKernel> kernels;
  int64_t results = 0;     // elements
  int64_t between = 0;     // of what the first of two writes
  const char* needs = "";  // what extents have to be
  bool fits = false;
};

int32_t narrow(int64_t n) { return int32_t(n); }
uint32_t groups(int64_t n) { return uint32_t(n); }

GlslWork gemm(const Extents& e) {
  GlslWork w{.needs = "M and N multiples of 64, K of 8"};
  w.fits = e.size() == 3 && e[0] % 64 == 0 && e[1] % 64 == 0 && e[2] % 8 == 0;
  if (!w.fits) return w;
  w.results = e[0] * e[1];
  w.kernels = {
      {"gemm", gemm_spv, {narrow(e[1]), narrow(e[2])}, {groups(e[1] / 64), groups(e[0] / 64), 1}}};
  return w;
}

GlslWork elementwise(const Extents& e) {
  constexpr int64_t kPerGroup = 2048;  // vectors: what a group costs to start is little then
  GlslWork w{.needs = "N a multiple of 8192", .fits = e[0] % (kVector * kPerGroup) == 0};
  w.results = e[0];
  w.kernels = {{"elementwise",
                elementwise_spv,
                {narrow(kPerGroup)},
                {groups(e[0] / kVector / kPerGroup), 1, 1}}};
  return w;
}

GlslWork sum(const Extents& e) {
  constexpr int64_t kParts = 256, kLeast = 64 * kVector;
  GlslWork w{.needs = "N a multiple of 65536", .fits = e[0] % (kParts * kLeast) == 0};
  w.results = 1;
  w.between = kParts;
  w.kernels = {{"sum", sum_spv, {narrow(e[0] / kVector / kParts)}, {groups(kParts), 1, 1}},
               {"sum", sum_spv, {narrow(kParts / kVector)}, {1, 1, 1}}};
  return w;
}

GlslWork rows(const Extents& e, const char* name, std::span<const uint32_t> words) {
  GlslWork w{.needs = "C a multiple of 32", .fits = e[1] % (kVector * kLanes) == 0};
  w.results = e[0] * e[1];
  w.kernels = {{name, words, {narrow(e[1] / kVector)}, {groups(e[0]), 1, 1}}};
  return w;
}

GlslWork work_of(const std::string& row, const Extents& e) {
  if (row == "matmul") return gemm(e);
  if (row == "elementwise") return elementwise(e);
  if (row == "reduce") return sum(e);
  if (row == "softmax") return rows(e, "softmax", softmax_spv);
  if (row == "layernorm") return rows(e, "layernorm", layernorm_spv);
  fail<InvalidArgument>(
      "--peer glsl: there is no hand-written kernel for {}; there are matmul, elementwise, reduce, "
      "softmax and layernorm",
      row);
}

render::Binary binary_of(const GlslKernel& k, size_t inputs) {
  render::Binary b;
  b.name = k.name;
  b.symbol = "main";
  b.format = render::BinaryFormat::SpirV;
  auto bytes = std::make_shared<std::vector<uint8_t>>(k.words.size_bytes());
  std::memcpy(bytes->data(), k.words.data(), bytes->size());
  b.bytes = std::move(bytes);
  b.args = {uint32_t(inputs) + 1, uint32_t(k.scalars.size())};
  b.local = {kLanes, 1, 1};
  return b;
}

class GlslPeer final : public BenchPeer {
 public:
  GlslPeer(const GlslWork& work, const KernelCase& c, const std::string& device)
      : device_(engine::Device::get(device)), expected_(c.expected) {
    for (const Tensor& t : c.inputs) read_.push_back(detail::buffer_of(t));
    result_ = engine::Buffer::make(device_, DType::F32, work.results);
    if (work.between) between_ = engine::Buffer::make(device_, DType::F32, work.between);
    std::vector<render::Binary> binaries;
    for (size_t i = 0; i < work.kernels.size(); i++)
      binaries.push_back(binary_of(work.kernels[i], i ? 1 : read_.size()));
    programs_ = device_->hcq().load(binaries);
    std::vector<hcq::GraphNode> nodes;
    for (size_t i = 0; i < work.kernels.size(); i++) nodes.push_back(node(work, i));
    graph_ = std::make_unique<hcq::CommandGraph>(device_->hcq(), std::move(nodes), 0,
                                                 hcq::SlotProgram{});
  }
  ~GlslPeer() override { device_->queue().wait_idle(); }

  std::vector<double> times_ms(double seconds) override {
    constexpr int kWarmUp = 2;
    constexpr size_t kLeastRuns = 3;
    for (int i = 0; i < kWarmUp; i++) run();
    std::vector<double> ms;
    const uint64_t end_ns = os::monotonic_ns() + uint64_t(seconds * 1e9);
    while (ms.size() < kLeastRuns || os::monotonic_ns() < end_ns) {
      const uint64_t begin_ns = os::monotonic_ns();
      run();
      ms.push_back(double(os::monotonic_ns() - begin_ns) / 1e6);
    }
    return ms;
  }

  std::string wrong() override {
    std::vector<float> got(size_t(result_->count));
    result_->copyout(got.data());
    return first_wrong(expected_, got);
  }

 private:
  hcq::GraphNode node(const GlslWork& work, size_t i) const {
    const GlslKernel& k = work.kernels[i];
    const bool last = i + 1 == work.kernels.size();
    hcq::Launch g{programs_[i].get(), {}, {}, k.groups};
    const auto add = [&](const Ref<engine::Buffer>& b, bool write) {
      g.operands.push_back(
          {.span = b->span(), .size_bytes = b->size_bytes(), .read = !write, .write = write});
    };
    add(last ? result_ : between_, true);
    if (i == 0)
      for (const auto& b : read_) add(b, false);
    else
      add(between_, false);
    for (const int32_t s : k.scalars) g.scalars.push_back({.value = s});
    return g;
  }
  void run() { device_->queue().wait(graph_->replay({}, {})); }

  std::shared_ptr<engine::Device> device_;
  std::function<Expected(int64_t)> expected_;
  std::vector<Ref<engine::Buffer>> read_;
  Ref<engine::Buffer> result_, between_;
  std::vector<std::unique_ptr<hcq::Program>> programs_;
  std::unique_ptr<hcq::CommandGraph> graph_;
};

void check_device(const engine::Device& device) {
  const Target& t = device.target();
  const bool runs = t.renderer == "spirv" && t.features.device_address &&
                    t.features.subgroup_shuffle && t.features.i64 && t.subgroup_size >= kLanes;
  if (!runs)
    fail<InvalidArgument>(
        "--peer glsl: {} does not run them; they take a Vulkan device with buffer device "
        "addresses, 64-bit integers and shuffles in subgroups of at least {}",
        device.name(), kLanes);
}

}  // namespace

std::unique_ptr<BenchPeer> glsl_peer(const KernelRow& row, const Extents& extents,
                                     const KernelOptions& options, const KernelCase& work) {
  check_device(*engine::Device::get(options.device));
  if (options.dtype != DType::F32 || !options.transposed.empty())
    fail<InvalidArgument>("--peer glsl: the hand-written kernels compute f32, nothing transposed");
  const GlslWork w = work_of(row.name, extents);
  if (!w.fits)
    fail<InvalidArgument>("--peer glsl: the hand-written {} takes {}, not {}", row.name, w.needs,
                          to_string(extents));
  return std::make_unique<GlslPeer>(w, work, options.device);
}

}  // namespace tuff::bench

#else

namespace tuff::bench {

std::unique_ptr<BenchPeer> glsl_peer(const KernelRow&, const Extents&, const KernelOptions&,
                                     const KernelCase&) {
  fail<InvalidArgument>(
      "--peer glsl: tuff was built without glslangValidator, which compiles them");
}

}  // namespace tuff::bench

#endif
