// `tuff bench`: what the engine costs beside what a device could do without it.
#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/replay_bench.h"

namespace tuff::cli {
namespace {

constexpr uint32_t kDefaultInputs = 8;

struct ReplayOptions {
  ReplayWorkload workload;
  std::string work = "tiny";
  std::optional<uint32_t> inputs;
  bool json = false;
};

uint32_t elements_of(const std::string& work) { return work == "empty" ? 1 : 16; }

ReplayWorkload workload_of(const ReplayOptions& o) {
  ReplayWorkload w = o.workload;
  w.inputs = o.inputs.value_or(std::min(kDefaultInputs, w.kernels));
  w.elements = elements_of(o.work);
  if (w.inputs > w.kernels)
    throw UsageError(fmt::format(
        "--inputs {}: each is read by a kernel of its own, and --kernels is {}; give at most {}",
        w.inputs, w.kernels, w.kernels));
  return w;
}

void print_replay_json(const ReplayOptions& o, const ReplayWorkload& w, const ReplayFigures& f) {
  print_json({{"event", "done"},
              {"bench", "replay"},
              {"device", f.device},
              {"driver", f.driver},
              {"work", o.work},
              {"kernels", w.kernels},
              {"inputs", w.inputs},
              {"barriers", f.barriers},
              {"replays", w.replays},
              {"wall_us_median", f.wall_us},
              {"host_us_median", f.host_us},
              {"driver_submit_us_median", f.driver_submit_us},
              {"raw_wall_us_median", f.raw_wall_us},
              {"ratio_to_raw", f.ratio_to_raw()},
              {"in_flight_us_median", f.in_flight_us},
              {"checked", true}});
}

void print_replay(const ReplayOptions& o, const ReplayWorkload& w, const ReplayFigures& f) {
  fmt::print("{} ({}): {} dependent {} kernels, {} barriers, {} inputs bound anew\n", f.device,
             f.driver, w.kernels, o.work, f.barriers, w.inputs);
  fmt::print(
      "    replay  {:10.2f} us, {:.1f} ns per kernel; host {:.2f} us, driver's submit {:.2f} us\n",
      f.wall_us, 1e3 * f.wall_us / w.kernels, f.host_us, f.driver_submit_us);
  fmt::print("    raw     {:10.2f} us, {:.1f} ns per kernel; ratio {:.3f}\n", f.raw_wall_us,
             1e3 * f.raw_wall_us / w.kernels, f.ratio_to_raw());
  fmt::print("    two in flight {:4.2f} us per replay, {:.3f} of one at a time\n", f.in_flight_us,
             f.in_flight_us / f.wall_us);
  fmt::print("medians of {} replays each, in turns; results are right\n", w.replays);
}

int run_replay(const ReplayOptions& o) {
  const ReplayWorkload w = workload_of(o);
  const ReplayFigures figures = measure_replay(w);
  o.json ? print_replay_json(o, w, figures) : print_replay(o, w, figures);
  return kExitOk;
}

void add_replay(CLI::App& bench, Action& chosen) {
  CLI::App* c = bench.add_subcommand(
      "replay",
      "The replay of a graph of dependent kernels, beside the same dispatches without tuff");
  auto o = std::make_shared<ReplayOptions>();
  c->add_option("--device", o->workload.device,
                "As `tuff devices` names it; default: TUFF_DEVICE, else the best")
      ->type_name("NAME");
  c->add_option("--kernels", o->workload.kernels, "Kernels of the graph, each reading the last")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str()
      ->type_name("N");
  c->add_option("--work", o->work, "Of a kernel: tiny, 16 additions; empty, one")
      ->check(CLI::IsMember({"tiny", "empty"}))
      ->capture_default_str()
      ->type_name("WORK");
  c->add_option("--replays", o->workload.replays, "Timed replays")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str()
      ->type_name("N");
  c->add_option("--inputs", o->inputs,
                "Inputs that each replay binds to other buffers (default: 8, at most --kernels)")
      ->check(CLI::Range(0u, 1000u))
      ->type_name("N");
  c->add_flag("--json", o->json, "One JSON object instead of text");
  c->callback([o, &chosen] { chosen = [o] { return run_replay(*o); }; });
}

}  // namespace

void add_bench_command(CLI::App& app, Action& chosen) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measures the engine beside what a device can do without it");
  bench->require_subcommand(1);
  add_replay(*bench, chosen);
}

}  // namespace tuff::cli
