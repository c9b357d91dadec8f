// `tuff bench`: what the engine's kernels and training steps reach of what the machine can do, and
// what compiling them costs.
#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "cli/command.h"
#include "bench/compile_bench.h"
#include "bench/glsl_peer.h"
#include "base/json.h"
#include "bench/kernel_bench.h"
#include "bench/median.h"
#include "cli/terminal.h"
#include "bench/train_bench.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

using namespace tuff::bench;

// ---- kernels

struct PeerOptions {
  std::string name, folder = "bench/peers";

  bool glsl() const { return name == "glsl"; }
  std::unique_ptr<BenchPeer> library(std::vector<std::string> work) const {
    if (name.empty() || glsl()) return {};
    return std::make_unique<LibraryPeer>(name, folder, std::move(work));
  }
};

void add_peer_options(CLI::App& c, PeerOptions& o, bool kernels) {
  std::vector<std::string> names{"numpy", "torch1", "torch2"};
  std::string text = "Also time this, in turns: numpy, torch1, torch2 (with so many threads)";
  if (kernels) {
    names.emplace_back("glsl");
    text += ", glsl (the hand-written kernels of shaders/ on the same device)";
  }
  c.add_option("--peer", o.name, text)->check(CLI::IsMember(names))->type_name("NAME");
  add_setting(c, "--peers", o.folder, "Folder of peer.py", "DIR");
}

void add_peer(Json& row, const PeerOptions& o, double ms, double peer_ms) {
  if (o.name.empty()) return;
  row["peer"] = o.name;
  row["peer_ms_median"] = peer_ms;
  row["ratio"] = peer_ms / ms;
}

std::string peer_text(const PeerOptions& o, double ms, double peer_ms) {
  if (o.name.empty()) return {};
  return fmt::format("  {} {:.3f} ms, {:.2f} times as fast", o.name, peer_ms, peer_ms / ms);
}

struct KernelBench {
  const KernelRow* row;
  KernelOptions options;
  PeerOptions peer;
  std::string sizes, dtype = "f32";
  bool json = false;
};

std::vector<Extents> parse_sizes(const KernelBench& b) {
  std::vector<Extents> out;
  for (const Extents& e : b.row->sizes) {
    const Extents all = b.row->complete(e);
    // Blocks of up to 256 weights lie along the last extent.
    const bool fits = b.options.weights.empty() || all.back() % 256 == 0;
    if (b.sizes.empty() && fits) out.push_back(all);
  }
  if (b.sizes.empty()) return out;
  for (const std::string& text : CLI::detail::split(b.sizes, ',')) {
    out.push_back(b.row->complete(extents_from(text)));
    if (out.back().empty())
      throw UsageError(fmt::format("--sizes {}: \"{}\" is not {}", b.sizes, text, b.row->axes));
  }
  return out;
}

void print_kernel_json(const KernelBench& b, const Extents& e, const KernelFigures& f) {
  Json row{{"bench", b.row->name},
           {"device", f.device},
           {"driver", f.driver},
           {"dtype", b.dtype},
           {"shape", to_string(e)},
           {"transposed", b.options.transposed},
           {"weights", b.options.weights},
           {"kernels", f.kernels},
           {"ms_median", f.ms_median},
           {"ms_min", f.ms_min},
           {"ms_max", f.ms_max},
           {"device_us_median", f.device_us_median},
           {b.row->unit == Unit::Gflops ? "gflops" : "gbps", f.rate},
           {"correct", f.wrong.empty()}};
  if (f.limit > 0) row["limit"] = f.limit, row["fraction_of_limit"] = f.fraction_of_limit();
  add_peer(row, b.peer, f.ms_median, f.peer_ms_median);
  print_json(row);
}

void print_kernel(const KernelBench& b, const Extents& e, const KernelFigures& f) {
  const Style style = Style::of_stdout();
  const std::string part =
      f.limit > 0 ? fmt::format(" {:6.3f} of {:.0f}", f.fraction_of_limit(), f.limit) : "";
  fmt::print(
      "{:>22} {:>5} {:3} kernel{} {:10.3f} ms [{:.3f} {:.3f}] {:9.2f} {}{}  {}\n",
      to_string(e), b.dtype, f.kernels, f.kernels == 1 ? " " : "s", f.ms_median, f.ms_min, f.ms_max,
      f.rate, b.row->unit == Unit::Gflops ? "GFLOP/s" : "GB/s", part,
      (f.wrong.empty() ? "right" : style.warn + "WRONG" + style.plain) +
          (f.device_us_median > 0 ? fmt::format("  device {:.1f} us", f.device_us_median) : "") +
          peer_text(b.peer, f.ms_median, f.peer_ms_median));
  std::fflush(stdout);
}

int run_kernels(KernelBench b) {
  const std::vector<Extents> cases = parse_sizes(b);
  b.options.dtype = parse_dtype(b.dtype);
  if (!b.options.weights.empty() && !b.peer.name.empty())
    throw UsageError("--weights: peers have none that are packed");
  const std::shared_ptr<engine::Device> device = engine::Device::get(b.options.device);
  b.options.device = device->name();
  (void)b.peer.library({});  // is there, before anything is printed
  MachineLimits limits(*device);
  if (!b.json)
    fmt::print("{} on {} ({}): medians [fastest slowest]{}\n", b.row->name, device->name(),
               device->hcq().info().driver,
               b.options.seconds > 0 ? ", part of the machine's limit" : "");
  int exit_code = kExitOk;
  for (const Extents& e : cases) {
    const KernelFigures f = measure(*b.row, e, b.options, limits, [&](const KernelCase& c) {
      return b.peer.glsl()
                 ? glsl_peer(*b.row, e, b.options, c)
                 : b.peer.library({b.row->name, to_string(e), b.dtype, b.options.transposed});
    });
    b.json ? print_kernel_json(b, e, f) : print_kernel(b, e, f);
    for (const auto& [whose, wrong] : {std::pair("", f.wrong), {" by the peer", f.peer_wrong}}) {
      if (wrong.empty()) continue;
      print_error(
          fmt::format("{} {} on {}{}: {}", b.row->name, to_string(e), f.device, whose, wrong));
      exit_code = kExitFailed;
    }
  }
  return exit_code;
}

void add_kernels(CLI::App& bench, const KernelRow& row, Action& chosen) {
  CLI::App* c = bench.add_subcommand(row.name, row.summary);
  auto b = std::make_shared<KernelBench>();
  b->row = &row;
  add_device_option(*c, b->options.device);
  std::string sizes;
  for (const Extents& e : row.sizes) sizes += (sizes.empty() ? "" : ",") + to_string(e);
  c->add_option("--sizes", b->sizes,
                fmt::format("{}; several with commas (default: {})", row.axes, sizes))
      ->type_name("LIST");
  add_setting(*c, "--dtype", b->dtype, "Of inputs and results; sums are in f32", "DTYPE",
              CLI::IsMember({"f32", "f16", "bf16"}));
  if (row.transposes)
    c->add_option("--transposed", b->options.transposed, "Operands that are stored transposed")
        ->check(CLI::IsMember({"a", "b", "ab"}))
        ->type_name("WHICH");
  if (row.has_weights)
    c->add_option("--weights", b->options.weights,
                  "The weights packed in blocks of a GGUF type: Q4_0, Q8_0, Q4_K, ...")
        ->type_name("TYPE");
  add_setting(*c, "--seconds", b->options.seconds,
              "About how long each case is timed; 0: once, without the machine's limit", "S",
              between(0.0, 600.0));
  c->add_flag("--json", b->json, "One JSON object per case instead of text");
  add_peer_options(*c, b->peer, true);
  c->callback([b, &chosen] { chosen = [b] { return run_kernels(*b); }; });
}

// ---- training steps

struct StepBench {
  std::string model, device;
  PeerOptions peer;
  double seconds = 3;
  bool json = false;
};

void print_step(const StepBench& b, const engine::Device& device, const TrainFigures& f,
                double peer_ms) {
  const double ms = median(f.ms), host_us = median(f.host_us);
  if (!b.json) {
    fmt::print(
        "{} on {}: {} kernels, {:.3f} ms a step, host {:.1f} us, loss {:.4f} to {:.4f}  {}{}\n",
        b.model, device.name(), f.kernels, ms, host_us, f.first_loss, f.last_loss,
        f.correct() ? "right" : "WRONG", peer_text(b.peer, ms, peer_ms));
    std::fflush(stdout);
    return;
  }
  Json row{{"bench", "train"},
           {"device", device.name()},
           {"driver", device.hcq().info().driver},
           {"dtype", "f32"},
           {"shape", b.model},
           {"kernels_per_step", f.kernels},
           {"host_us_median", host_us},
           {"ms_median", ms},
           {"ms_min", std::ranges::min(f.ms)},
           {"ms_max", std::ranges::max(f.ms)},
           {"correct", f.correct()}};
  add_peer(row, b.peer, ms, peer_ms);
  print_json(row);
}

int run_step(const StepBench& b) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(b.device);
  const std::unique_ptr<BenchPeer> peer = b.peer.library({b.model + "-step"});
  TrainBench bench(b.model, device->name());
  const std::vector<double> peer_ms =
      in_turns(peer.get(), b.seconds, [&](double seconds) { bench.run(seconds); });
  print_step(b, *device, bench.figures(), peer ? median(peer_ms) : 0);
  return bench.figures().correct() ? kExitOk : kExitFailed;
}

int run_steps(const StepBench& b) {
  if (!b.model.empty()) return run_step(b);
  int exit_code = kExitOk;
  for (const std::string& model : TrainBench::models()) {
    StepBench one = b;
    one.model = model;
    exit_code = std::max(exit_code, run_step(one));
  }
  return exit_code;
}

void add_steps(CLI::App& bench, Action& chosen) {
  CLI::App* c = bench.add_subcommand("train", "A training step of a small model, replayed");
  auto b = std::make_shared<StepBench>();
  c->add_option("model", b->model,
                "mlp: 784-512-512-10, batch 128, Adam; conv: 5x5 32, 3x3 64, pooled, linear, batch "
                "128 of 28x28, Adam; gpt: 4 layers, 4 heads, 128 wide, context 64, batch 16, AdamW "
                "(default: all)")
      ->check(CLI::IsMember(TrainBench::models()))
      ->type_name("MODEL");
  add_device_option(*c, b->device);
  add_setting(*c, "--seconds", b->seconds, "About how long each model is timed", "S",
              between(0.0, 600.0));
  add_peer_options(*c, b->peer, false);
  c->add_flag("--json", b->json, "One JSON object per model instead of text");
  c->callback([b, &chosen] { chosen = [b] { return run_steps(*b); }; });
}

// ---- compiling

struct CompileBench {
  CompileOptions options;
  bool here = false, json = false;
};

void print_compile(const Json& row) {
  const auto number = [&](const char* name) { return row[name].get<double>(); };
  fmt::print("{} on {}, {}: {} kernels a step, {} compiled, {} of them found on disk\n",
             row["shape"].get<std::string>(), row["device"].get<std::string>(),
             row["cache"].get<std::string>(), row["kernels_per_step"].get<uint64_t>(),
             row["kernels_compiled"].get<uint64_t>(), row["kernels_from_disk"].get<uint64_t>());
  fmt::print(
      "    ready after {:.1f} ms: schedule {:.1f}, lower {:.1f}, render {:.1f}, compiler "
      "{:.1f}, load {:.1f}\n",
      number("ready_ms"), number("schedule_ms"), number("lower_ms"), number("render_ms"),
      number("compiler_ms"), number("load_ms"));
  std::string passes;
  for (const auto& [name, ms] : row["passes_ms"].items())
    passes += fmt::format("{}{} {:.2f}", passes.empty() ? "" : ", ", name, ms.get<double>());
  fmt::print("    passes: {}\n", passes);
  for (const Json& k : row["slowest"])
    fmt::print("    {:>8.2f} ms lowered {:>6.2f} rendered  {}\n", k["lower_ms"].get<double>(),
               k["render_ms"].get<double>(), k["kernel"].get<std::string>());
  std::fflush(stdout);
}

int run_compile(const CompileBench& b) {
  if (b.here) {
    print_json(measure_compile(b.options));
    return kExitOk;
  }
  for (const std::string& model : TrainBench::models()) {
    if (!b.options.model.empty() && b.options.model != model) continue;
    CompileOptions one = b.options;
    one.model = model;
    one.device = engine::canonical_device(one.device);
    for (const Json& row : measure_compile_cold_and_warm(one))
      b.json ? print_json(row) : print_compile(row);
  }
  return kExitOk;
}

void add_compile(CLI::App& bench, Action& chosen) {
  CLI::App* c = bench.add_subcommand(
      "compile", "What it takes until a training step is captured, with empty and filled caches");
  auto b = std::make_shared<CompileBench>();
  c->add_option("model", b->options.model, "One of `tuff bench train`'s (default: all)")
      ->check(CLI::IsMember(TrainBench::models()))
      ->type_name("MODEL");
  add_device_option(*c, b->options.device);
  add_setting(*c, "--slowest", b->options.slowest, "So many kernels are listed", "N");
  c->add_flag("--json", b->json, "One JSON object per model and cache instead of text");
  c->add_flag("--here", b->here)->group("");  // in this process, as it finds the caches
  c->callback([b, &chosen] { chosen = [b] { return run_compile(*b); }; });
}

}  // namespace

void add_bench_command(CLI::App& app, Action& chosen) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measures the engine beside what a device can do without it");
  bench->require_subcommand(1);
  bench->footer(
      "Examples:\n"
      "  tuff bench matmul --sizes 1024 --peer numpy\n"
      "  tuff bench train gpt --device CPU");
  for (const KernelRow& row : kernel_rows()) add_kernels(*bench, row, chosen);
  add_steps(*bench, chosen);
  add_compile(*bench, chosen);
}

}  // namespace tuff::cli
