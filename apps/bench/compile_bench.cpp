#include "bench/compile_bench.h"

#include <algorithm>

#include "base/check.h"
#include "base/os_cache.h"
#include "base/os.h"
#include "bench/train_bench.h"
#include "engine/program/program_cache.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "kernel/pipeline.h"

namespace tuff::bench {
namespace {

constexpr uint64_t kPatienceNs = 1'800'000'000'000;

double ms(uint64_t ns) { return double(ns) / 1e6; }

Json passes() {
  Json out = Json::object();
  for (const kernel::PassTime& p : kernel::pass_times()) out[p.name] = ms(p.total_ns);
  return out;
}

Json slowest(const engine::Device& device, uint32_t count) {
  std::vector<const engine::LoadedKernel*> kernels = device.programs().all();
  const auto cost = [](const engine::LoadedKernel* k) { return k->lower_ns + k->render_ns; };
  std::ranges::sort(kernels, [&](auto* a, auto* b) {
    return cost(a) != cost(b) ? cost(a) > cost(b) : a->name < b->name;
  });
  kernels.resize(std::min<size_t>(kernels.size(), count));
  Json out = Json::array();
  for (const engine::LoadedKernel* k : kernels)
    out.push_back(
        {{"kernel", k->name}, {"lower_ms", ms(k->lower_ns)}, {"render_ms", ms(k->render_ns)}});
  return out;
}

Json run_child(const CompileOptions& o, const std::string& folder, const char* cache) {
  os::Process child({os::own_program(), "bench", "compile", o.model, "--device", o.device,
                   "--slowest", fmt::format("{}", o.slowest), "--here"},
                  "", {{"TUFF_CACHE_DIR", folder}, {"MESA_SHADER_CACHE_DIR", folder}});
  const std::optional<std::string> line = child.read_line(kPatienceNs);
  if (child.wait().exit_code != 0 || !line) fail<Error>("{}", child.error_tail());
  Json row = Json::parse(*line);
  row["cache"] = cache;
  return row;
}

}  // namespace

Json measure_compile(const CompileOptions& o) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(o.device);
  TrainBench bench(o.model, device->name());
  bench.get_ready();
  const engine::GlobalCounters& c = engine::counters();
  return {{"bench", "compile"},
          {"device", device->name()},
          {"driver", device->hcq().info().driver},
          {"shape", o.model},
          {"cache", ""},
          {"kernels_per_step", bench.figures().kernels},
          {"kernels_compiled", uint64_t(c.kernels_compiled)},
          {"kernels_from_disk", uint64_t(c.kernels_from_disk)},
          {"ready_ms", bench.figures().ready_ms},
          {"schedule_ms", ms(c.schedule_ns)},
          {"lower_ms", ms(c.lower_ns)},
          {"render_ms", ms(c.render_ns)},
          {"compiler_ms", ms(c.compile_ns)},
          {"load_ms", ms(c.load_ns)},
          {"passes_ms", passes()},
          {"slowest", slowest(*device, o.slowest)}};
}

std::vector<Json> measure_compile_cold_and_warm(const CompileOptions& o) {
  const os::ScratchFolder folder;
  std::vector<Json> out;
  for (const char* cache : {"cold", "warm"}) out.push_back(run_child(o, folder.path(), cache));
  return out;
}

}  // namespace tuff::bench
