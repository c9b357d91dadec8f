// Host cost of a replay on the CPU device: 1000 dependent tiny kernels, ns per kernel.
#include <benchmark/benchmark.h>

#include <string>

#include "devices/cpu/cpu.h"
#include "hcq/graph.h"
#include "render/clang_compiler.h"

namespace {

using namespace tuff;
using namespace tuff::hcq;

constexpr int kKernels = 1000;
constexpr const char* kSource =
    "void tiny(const void* a, unsigned x, unsigned y, unsigned z) {"
    "  float* const* p = a; p[1][0] = p[0][0] + 1.0f; }";

void replay(benchmark::State& state, bool wait_each) {
  auto device = devices::cpu_open("");
  std::string source = kSource;
  render::Binary binary;
  binary.name = binary.symbol = "tiny";
  binary.format = render::BinaryFormat::Object;
  binary.bytes =
      std::make_shared<const std::vector<uint8_t>>(render::compile_c(std::span(&source, 1))[0]);
  binary.args = {2, 0};
  auto programs = device->load(std::span(&binary, 1));
  Span cell = device->allocator().allocate(4, MemoryKind::Device);
  GraphBuffer in{cell, -1, 0, 4, true, false}, out{cell, -1, 0, 4, false, true};
  CommandGraph graph(
      *device, std::vector<GraphNode>(kKernels, GraphKernel{programs[0].get(), {in, out}, {}}), 0,
      0, 2);
  uint64_t value = 0;
  for (auto _ : state) {
    value = graph.replay({}, {});
    if (wait_each) device->compute_queue().wait(value);
  }
  device->compute_queue().wait(value);
  state.counters["per_kernel"] = benchmark::Counter(
      kKernels, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void wait_each(benchmark::State& state) { replay(state, true); }
void in_flight(benchmark::State& state) { replay(state, false); }
BENCHMARK(wait_each)->UseRealTime();
BENCHMARK(in_flight)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
