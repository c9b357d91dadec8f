#include "replay_bench.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/os.h"
#include "bench/median.h"
#include "engine/realize/capture.h"
#include "hcq/graph.h"
#include "ir/custom_kernel.h"
#include "raw_replay.h"

namespace tuff::bench {
namespace {

using engine::Buffer;

constexpr int kWarmUp = 10;
constexpr uint32_t kInFlightRun = 4;  // replays launched without waiting for them
constexpr uint32_t kSets = 3;         // of inputs, bound in turns

double median_us(const std::vector<uint64_t>& ns) { return double(median(ns)) / 1e3; }

// Kernel i stores x + z: x is what the kernel before it stored, z an input or a fixed buffer of
// ones. So every kernel needs the one before, and the last one's result counts all of them.
class Chain {
 public:
  explicit Chain(const ReplayWorkload& w)
      : workload_(w), device_(engine::Device::get(w.device)) {
    devices::MakeRawReplay* const make_raw = devices::raw_replay_of(hcq());
    TUFF_CHECK(make_raw, "{} computes nothing that could be checked", device_->name());
    start_ = filled([](uint32_t e) { return int32_t(e); });
    ones_ = filled([](uint32_t) { return 1; });
    for (Ref<Buffer>& b : stored_) b = filled([](uint32_t) { return 0; });
    for (uint32_t set = 0; set < kSets; set++) add_inputs(set);
    add_ = capture_add();
    graph_.emplace(hcq(), nodes(), w.inputs, 0);
    raw_ = make_raw(hcq(), graph_->commands());
    words_.resize(std::max<size_t>(graph_->stats().patches, 1));
    // Where the device alone reaches argument blocks, words are patched in a twin for the host.
    for (const auto kind : {hcq::MemoryKind::Args, hcq::MemoryKind::Upload}) {
      if (copied_) hcq().allocator().free(copied_);
      copied_ = hcq().allocator().allocate(words_.size() * sizeof words_[0], kind);
      if (copied_.host()) break;
    }
  }
  ~Chain() { hcq().allocator().free(copied_); }
  Chain(const Chain&) = delete;

  hcq::Device& hcq() const { return device_->hcq(); }
  const hcq::GraphStats& stats() const { return graph_->stats(); }
  devices::RawReplay& raw() { return *raw_; }
  // The words that a replay patches, to memory of the kind in which they lie.
  void copy_words() { std::memcpy(copied_.host(), words_.data(), graph_->stats().patches * 8); }
  uint64_t replay(uint32_t set) { return graph_->replay(addresses_[set], {}); }

  // Each replay is waited for, here and when timed, so that all use the graph's first instance. The
  // raw dispatches share its argument blocks and compute what the last replay did.
  void check() {
    for (uint32_t set = 0; set < kSets; set++) {
      forget_result();
      hcq().compute_queue().wait(replay(set));
      check_result("a replay", set);
      forget_result();
      raw_->run();
      check_result("a raw replay", set);
    }
  }

 private:
  template <class Value>
  Ref<Buffer> filled(Value value) {
    std::vector<int32_t> values(workload_.elements);
    for (uint32_t e = 0; e < workload_.elements; e++) values[e] = value(e);
    auto b = Buffer::make(device_, DType::I32, int64_t(values.size()));
    b->copyin(values.data());
    return b;
  }

  static int32_t input_value(uint32_t set, uint32_t input) {
    return int32_t(1000 * set + input + 2);
  }

  void add_inputs(uint32_t set) {
    for (uint32_t i = 0; i < workload_.inputs; i++) {
      inputs_.push_back(filled([&](uint32_t) { return input_value(set, i); }));
      addresses_[set].push_back(inputs_.back()->span().address());
    }
  }

  // The kernel x + z as realize() makes it.
  engine::BoundKernel capture_add() {
    engine::Capture capture;
    const std::vector<ir::UOp> summands{ir::buffer(start_), ir::buffer(ones_)};
    const ir::UOp sum =
        workload_.custom ? custom_add(summands) : ir::alu(ir::Op::Add, summands);
    engine::realize({&sum, 1});
    std::vector<engine::BoundCall> calls = capture.take();
    TUFF_CHECK(calls.size() == 1, "{} calls for one addition", calls.size());
    return std::get<engine::BoundKernel>(calls[0]);
  }

  // The same as a user writes it.
  ir::UOp custom_add(std::span<const ir::UOp> summands) const {
    auto k = make_ref<ir::CustomKernel>();
    k->name = "custom_add";
    k->glsl = R"(#version 450
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) writeonly buffer Out { int o[]; };
layout(std430, set = 0, binding = 1) readonly buffer X { int x[]; };
layout(std430, set = 0, binding = 2) readonly buffer Z { int z[]; };
void main() { o[gl_WorkGroupID.x] = x[gl_WorkGroupID.x] + z[gl_WorkGroupID.x]; })";
    k->c = "void custom_add(int* o, const int* x, const int* z, unsigned g) { o[g] = x[g] + z[g]; }";
    const ir::CustomKernelArg arg(Ref<const ir::CustomKernel>(k.get()),
                                  {workload_.elements, 1, 1},
                                  {{{int64_t(workload_.elements)}, DType::I32}}, 0);
    return ir::custom_kernel(arg, summands);
  }

  hcq::LaunchOperand fixed(Buffer& b) const {
    return {.span = b.span(), .size_bytes = b.size_bytes()};
  }

  // Inputs are read by kernels spread evenly over the chain.
  hcq::LaunchOperand summand(uint32_t kernel) const {
    const uint64_t n = workload_.kernels, inputs = workload_.inputs;
    const uint64_t input = (kernel * inputs + n - 1) / n;
    if (input < inputs && input * n / inputs == kernel)
      return {.input = int32_t(input), .size_bytes = ones_->size_bytes()};
    return fixed(*ones_);
  }

  hcq::Launch kernel(uint32_t i) const {
    hcq::Launch k{.program = add_.kernel->program.get(), .groups = add_.groups};
    for (size_t slot = 0; slot < add_.buffers.size(); slot++) {
      const Buffer* role = add_.buffers[slot].get();
      hcq::LaunchOperand b = role == ones_.get()    ? summand(i)
                           : role != start_.get() ? fixed(*stored_[i % 2])
                           : i == 0               ? fixed(*start_)
                                                  : fixed(*stored_[(i - 1) % 2]);
      b.read = add_.kernel->buffers[slot].read;
      b.write = add_.kernel->buffers[slot].written;
      k.operands.push_back(b);
    }
    return k;
  }

  std::vector<hcq::GraphNode> nodes() const {
    std::vector<hcq::GraphNode> nodes;
    for (uint32_t i = 0; i < workload_.kernels; i++) nodes.push_back(kernel(i));
    return nodes;
  }

  Buffer& result() { return *stored_[(workload_.kernels - 1) % 2]; }

  void forget_result() {
    const std::vector<int32_t> zeros(workload_.elements);
    result().copyin(zeros.data());
  }

  void check_result(const char* what, uint32_t set) {
    std::vector<int32_t> got(workload_.elements);
    result().copyout(got.data());
    int64_t added = int64_t(workload_.kernels) - workload_.inputs;
    for (uint32_t i = 0; i < workload_.inputs; i++) added += input_value(set, i);
    for (uint32_t e = 0; e < workload_.elements; e++) {
      if (got[e] != added + e)
        fail<Error>("{}: {} of {} kernels stored {} in element {}; right is {}", device_->name(),
                    what, workload_.kernels, got[e], e, added + e);
    }
  }

  const ReplayWorkload& workload_;
  std::shared_ptr<engine::Device> device_;
  Ref<Buffer> start_, ones_, stored_[2];
  std::vector<Ref<Buffer>> inputs_;
  std::vector<uint64_t> addresses_[kSets];
  engine::BoundKernel add_;
  std::optional<hcq::CommandGraph> graph_;
  std::unique_ptr<devices::RawReplay> raw_;
  std::vector<uint64_t> words_;
  hcq::Span copied_;
};

// Replays and raw dispatches take turns, and of each turn the second run is timed: what a run finds
// in the caches and in the driver then is what one of its own kind has left there. The first run
// after one of the other kind took 5 % more or less, by where the driver keeps its lists.
struct Samples {
  std::vector<uint64_t> wall_ns, host_ns, behind_ns, driver_ns, raw_ns, in_flight_ns, copy_ns;

  void time_replay(Chain& chain, uint32_t set) {
    hcq::Queue& queue = chain.hcq().compute_queue();
    queue.wait(chain.replay((set + 1) % kSets));
    const uint64_t driver_before_ns = chain.raw().driver_submit_ns();
    const uint64_t begin_ns = os::monotonic_ns();
    const uint64_t value = chain.replay(set);
    const uint64_t launched_ns = os::monotonic_ns();
    driver_ns.push_back(chain.raw().driver_submit_ns() - driver_before_ns);
    queue.wait(value);
    wall_ns.push_back(os::monotonic_ns() - begin_ns);
    host_ns.push_back(launched_ns - begin_ns - driver_ns.back());
  }

  // What a replay costs that finds its code in the caches, where the kernels between have not run on
  // the processor that launches them, as an emulated GPU's do.
  void time_behind(Chain& chain, uint32_t set) {
    chain.replay((set + 1) % kSets);
    const uint64_t driver_before_ns = chain.raw().driver_submit_ns();
    const uint64_t begin_ns = os::monotonic_ns();
    const uint64_t value = chain.replay(set);
    const uint64_t host = os::monotonic_ns() - begin_ns;
    behind_ns.push_back(host - (chain.raw().driver_submit_ns() - driver_before_ns));
    chain.hcq().compute_queue().wait(value);
  }

  // Two are in flight all the while: the next is launched when the one before the last has passed.
  void time_in_flight(Chain& chain) {
    hcq::Queue& queue = chain.hcq().compute_queue();
    const uint64_t begin_ns = os::monotonic_ns();
    uint64_t last = 0;
    for (uint32_t i = 0; i < kInFlightRun; i++) last = chain.replay(i % kSets);
    queue.wait(last);
    in_flight_ns.push_back((os::monotonic_ns() - begin_ns) / kInFlightRun);
  }

  // As cold as the words are when a replay patches them: the device has run in between.
  void time_copy(Chain& chain) {
    const uint64_t begin_ns = os::monotonic_ns();
    chain.copy_words();
    copy_ns.push_back(os::monotonic_ns() - begin_ns);
  }

  void time_raw(Chain& chain) {
    chain.raw().run();
    const uint64_t begin_ns = os::monotonic_ns();
    chain.raw().run();
    raw_ns.push_back(os::monotonic_ns() - begin_ns);
  }
};

}  // namespace

ReplayFigures measure_replay(const ReplayWorkload& workload) {
  Chain chain(workload);
  Samples samples;
  for (uint32_t i = 0; i < kWarmUp + workload.replays; i++) {
    if (i == kWarmUp) samples = {};
    samples.time_replay(chain, i % kSets);
    samples.time_copy(chain);
    samples.time_raw(chain);
  }
  chain.check();
  // Last: replays in flight use further instances, whose arguments the raw dispatches do not have.
  for (uint32_t i = 0; i < workload.replays; i += kInFlightRun) {
    samples.time_in_flight(chain);
    for (uint32_t set = 0; set < kSets; set++) samples.time_behind(chain, set);
  }
  return {.device = chain.hcq().name(),
          .driver = chain.hcq().info().driver,
          .barriers = chain.stats().barriers,
          .patched_words = chain.stats().patches,
          .wall_us = median_us(samples.wall_ns),
          .host_us = median_us(samples.host_ns),
          .driver_submit_us = median_us(samples.driver_ns),
          .host_behind_us = median_us(samples.behind_ns),
          .raw_wall_us = median_us(samples.raw_ns),
          .in_flight_us = median_us(samples.in_flight_ns),
          .copy_us = median_us(samples.copy_ns)};
}

}  // namespace tuff::bench
