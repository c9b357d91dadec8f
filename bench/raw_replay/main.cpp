// raw_replay: the replay of a graph of dependent kernels, beside the same dispatches written
// directly against the device's API. scripts/replay-figures runs it.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/check.h"
#include "base/json.h"
#include "cli/command.h"
#include "engine/device.h"
#include "raw_replay.h"
#include "replay_bench.h"

namespace tuff::devices {

MakeRawReplay* raw_replay_of(const hcq::Device& device) {
  const std::string kind = device.name().substr(0, device.name().find(':'));
  if (kind == "CPU") return cpu_raw_replay;
  if (kind == "AMD") return amd_raw_replay;
  if (kind == "CUDA") return cuda_raw_replay;
  if (kind == "NV") return nv_raw_replay;
#ifdef TUFF_HAS_VULKAN
  if (kind == "VULKAN") return vulkan_raw_replay;
#endif
  return nullptr;
}

}  // namespace tuff::devices

namespace tuff::bench {
namespace {

using cli::add_setting;
using cli::UsageError;

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
  w.custom = o.work == "custom";
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
              {"host_behind_us_median", f.host_behind_us},
              {"driver_submit_us_median", f.driver_submit_us},
              {"raw_wall_us_median", f.raw_wall_us},
              {"ratio_to_raw", f.ratio_to_raw()},
              {"in_flight_us_median", f.in_flight_us},
              {"patched_words", f.patched_words},
              {"copy_us_median", f.copy_us},
              {"checked", true}});
}

void print_replay(const ReplayOptions& o, const ReplayWorkload& w, const ReplayFigures& f) {
  fmt::print("{} ({}): {} dependent {} kernels, {} barriers, {} inputs bound anew\n", f.device,
             f.driver, w.kernels, o.work, f.barriers, w.inputs);
  fmt::print(
      "    replay  {:10.2f} us, {:.1f} ns per kernel; host {:.2f} us, driver's submit {:.2f} us\n",
      f.wall_us, 1e3 * f.wall_us / w.kernels, f.host_us, f.driver_submit_us);
  fmt::print("    right behind another: host {:.2f} us\n", f.host_behind_us);
  fmt::print("    {} words patched; a plain copy of as many {:.2f} us\n", f.patched_words,
             f.copy_us);
  fmt::print("    raw     {:10.2f} us, {:.1f} ns per kernel; ratio {:.3f}\n", f.raw_wall_us,
             1e3 * f.raw_wall_us / w.kernels, f.ratio_to_raw());
  fmt::print("    two in flight {:4.2f} us per replay, {:.3f} of one at a time\n", f.in_flight_us,
             f.in_flight_us / f.wall_us);
  fmt::print("medians of {} replays each, in turns; results are right\n", w.replays);
}

int run_replay(const ReplayOptions& o) {
  const ReplayWorkload w = workload_of(o);
  const std::shared_ptr<engine::Device> device = engine::Device::get(w.device);
  if (!devices::raw_replay_of(device->hcq()))
    throw UsageError(fmt::format(
        "--device {}: it computes nothing that could be checked; `tuff devices` lists others",
        device->name()));
  const ReplayFigures figures = measure_replay(w);
  o.json ? print_replay_json(o, w, figures) : print_replay(o, w, figures);
  return cli::kExitOk;
}

void add_options(CLI::App& app, ReplayOptions& o) {
  cli::add_device_option(app, o.workload.device);
  add_setting(app, "--kernels", o.workload.kernels, "Kernels of the graph, each reading the last",
              "N", CLI::Range(1u, 100'000u));
  add_setting(app, "--work", o.work, "Of a kernel: tiny, 16 additions; custom, the same in a user's GLSL or C; empty, one",
              "WORK", CLI::IsMember({"tiny", "custom", "empty"}));
  add_setting(app, "--replays", o.workload.replays, "Timed replays", "N",
              CLI::Range(1u, 1'000'000u));
  app.add_option("--inputs", o.inputs,
                 "Inputs that each replay binds to other buffers (default: 8, at most --kernels)")
      ->check(CLI::Range(0u, 1000u))
      ->type_name("N");
  app.add_flag("--json", o.json, "One JSON object instead of text");
}

int run(int argc, char** argv) {
  CLI::App app{
      "The replay of a graph of dependent kernels, beside the same dispatches without tuff",
      "raw_replay"};
  ReplayOptions o;
  add_options(app, o);
  try {
    app.parse(argc, argv);
    return run_replay(o);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? cli::kExitOk : cli::kExitUsage;
  } catch (const UsageError& e) {
    cli::print_error(e.what());
    return cli::kExitUsage;
  } catch (const std::exception& e) {
    cli::print_error(e.what());
    return cli::kExitFailed;
  }
}

}  // namespace
}  // namespace tuff::bench

int main(int argc, char** argv) {
  const int code = tuff::bench::run(argc, argv);
  tuff::engine::close_devices();
  return code;
}
