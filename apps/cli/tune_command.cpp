// `tuff tune`: searches the schedules of a workload's kernels ahead of time and writes them to a
// file that TUFF_TUNED or --tuned takes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/check.h"
#include "base/os.h"
#include "cli/command.h"
#include "base/json.h"
#include "bench/kernel_bench.h"
#include "cli/terminal.h"
#include "bench/train_bench.h"
#include "engine/program/program_cache.h"
#include "engine/device.h"
#include "engine/search/beam.h"
#include "engine/search/tuned.h"

namespace tuff::cli {
namespace {

using namespace tuff::bench;

struct TuneOptions {
  std::string workload, sizes, dtype = "f32", device, out = "tuned.json";
  engine::BeamOptions beam{.width = 2};
  bool again = false, json = false;
};

const KernelRow* row_named(const std::string& name) {
  for (const KernelRow& row : kernel_rows())
    if (name == row.name) return &row;
  return nullptr;
}

// Runs the workload once; the kernels that it has brought, the slowest first.
std::vector<const engine::LoadedKernel*> kernels_of(const TuneOptions& o,
                                                    const engine::Device& device) {
  std::vector<const engine::LoadedKernel*> before, out;
  const auto note = [&] { before = device.programs().all(); };
  if (const KernelRow* row = row_named(o.workload)) {
    const Extents extents =
        row->complete(o.sizes.empty() ? row->sizes.back() : extents_from(o.sizes));
    if (extents.empty())
      throw UsageError(fmt::format("--sizes {}: it is not {}", o.sizes, row->axes));
    const KernelCase c =
        row->make(extents, {.device = device.name(), .dtype = parse_dtype(o.dtype)});
    note();
    for (Tensor& t : c.function(c.inputs)) t.realize();
  } else {
    TrainBench bench(o.workload, device.name());
    note();
    bench.get_ready();
  }
  for (const engine::LoadedKernel* k : device.programs().all())
    if (std::ranges::find(before, k) == before.end() && !k->by_user()) out.push_back(k);
  std::ranges::sort(out, [](const auto* a, const auto* b) {
    return a->expected_ns != b->expected_ns ? a->expected_ns > b->expected_ns : a->name < b->name;
  });
  return out;
}

class Tuning {
 public:
  Tuning(const TuneOptions& o, engine::Device& device)
      : o_(o),
        device_(device),
        renderer_(render::renderer_of(device.target())),
        compiler_(renderer_.compiler_identity(device.target())),
        tuned_(device.target(), compiler_) {
    if (o.again || !std::filesystem::exists(o.out)) return;
    tuned_ = engine::TunedSchedules::read(o.out);
    std::string why;
    if (!tuned_.fits(device.target(), compiler_, why))
      fail<InvalidArgument>(
          "{} is there and cannot be added to: {}; name another file or give "
          "--again",
          o.out, why);
  }

  int run() {
    kernels_ = kernels_of(o_, device_);
    begin_ns_ = os::monotonic_ns();
    for (size_t i = 0; i < kernels_.size() && !os::interrupted(); i++) one(i);
    tuned_.write(o_.out);
    finish();
    return os::interrupted() ? kExitInterrupted : kExitOk;
  }

 private:
  void one(size_t i) {
    const engine::LoadedKernel& k = *kernels_[i];
    if (tuned_.find(k.ast)) {
      known_++;
      return;
    }
    const std::optional<engine::BeamResult> found = search(k.ast);
    if (!found && os::interrupted()) return;
    searched_++;
    // A search that was ended has still measured what it returns.
    if (found && std::isfinite(found->heuristic_ns)) {
      tuned_.set(k.ast, found->opts);
      before_ns_ += found->heuristic_ns;
      after_ns_ += found->ns;
      tuned_.write(o_.out);
    }
    show(i, k, found);
  }
  std::optional<engine::BeamResult> search(const ir::UOp& ast) {
    try {
      return engine::beam_search(ast, device_.hcq(), o_.beam,
                                 [&](std::span<const render::Source> sources) {
                                   return renderer_.compile(sources, device_.target());
                                 });
    } catch (const Error&) {
      if (!os::interrupted()) throw;  // Ctrl-C ends compilers too
      return {};
    }
  }
  double left_s(size_t i) const {
    const double each = double(os::monotonic_ns() - begin_ns_) / 1e9 / double(searched_);
    return each * double(kernels_.size() - i - 1);
  }
  void show(size_t i, const engine::LoadedKernel& k,
            const std::optional<engine::BeamResult>& found) const {
    if (o_.json) {
      Json row{{"event", "kernel"}, {"index", i + 1}, {"of", kernels_.size()}, {"kernel", k.name}};
      if (found) {
        row["us"] = found->ns / 1e3;
        row["heuristic_us"] = found->heuristic_ns / 1e3;
        row["candidates"] = found->candidates;
        row["seconds"] = found->seconds;
        row["opts"] = to_string(found->opts);
      }
      row["left_s"] = left_s(i);
      return print_json(row);
    }
    const std::string what =
        found ? fmt::format("{:.2f} us, {:.2f} before, {} measured", found->ns / 1e3,
                            found->heuristic_ns / 1e3, found->candidates)
              : std::string("is left as it is: its sizes are symbolic, or it stores nothing");
    fmt::print("kernel {} of {}: {} {}; about {:.0f} s left\n", i + 1, kernels_.size(), k.name,
               what, left_s(i));
    std::fflush(stdout);
  }
  void finish() const {
    if (o_.json) {
      print_json({{"event", "done"},
                  {"interrupted", os::interrupted()},
                  {"file", o_.out},
                  {"kernels", kernels_.size()},
                  {"searched", searched_},
                  {"known", known_},
                  {"us", after_ns_ / 1e3},
                  {"heuristic_us", before_ns_ / 1e3}});
    } else {
      fmt::print("{}{} searched, {} known: {:.2f} us instead of {:.2f}; written to {}\n",
                 os::interrupted() ? "interrupted: " : "", searched_, known_, after_ns_ / 1e3,
                 before_ns_ / 1e3, o_.out);
    }
  }

  const TuneOptions& o_;
  engine::Device& device_;
  const render::Renderer& renderer_;
  const std::string compiler_;
  engine::TunedSchedules tuned_;
  std::vector<const engine::LoadedKernel*> kernels_;
  uint64_t begin_ns_ = 0;
  size_t searched_ = 0, known_ = 0;
  double before_ns_ = 0, after_ns_ = 0;
};

int run_tune(const TuneOptions& o) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(o.device);
  os::catch_interrupts();
  return Tuning(o, *device).run();
}

}  // namespace

void add_tune_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "tune",
      "Searches the schedules of a workload's kernels by measuring them, and writes them to a file "
      "that TUFF_TUNED or --tuned takes. Ctrl-C keeps what was found; a later run adds to it");
  auto o = std::make_shared<TuneOptions>();
  std::vector<std::string> workloads = TrainBench::models();
  for (const KernelRow& row : kernel_rows()) workloads.emplace_back(row.name);
  c->add_option("workload", o->workload,
                "A model of `tuff bench train`, or a function of `tuff bench`")
      ->required()
      ->check(CLI::IsMember(workloads))
      ->type_name("MODEL|WORKLOAD");
  c->add_option("--sizes", o->sizes, "Of a function, as `tuff bench` takes them; one case")
      ->type_name("SIZES");
  add_setting(*c, "--dtype", o->dtype, "Of a function's inputs and results", "DTYPE",
              CLI::IsMember({"f32", "f16", "bf16"}));
  add_device_option(*c, o->device);
  add_setting(*c, "--out", o->out, "The file; what it holds already is kept and not searched again",
              "FILE");
  c->add_flag("--again", o->again, "Begins the file anew");
  add_setting(*c, "--width", o->beam.width, "Schedules that are followed at once", "N",
              CLI::Range(1u, 64u));
  add_setting(*c, "--seconds", o->beam.seconds, "About how long a kernel is searched", "S",
              between(0.1, 3600.0));
  c->add_flag("--json", o->json, "One JSON object per line");
  c->footer(
      "Examples:\n"
      "  tuff tune gpt --out gpt.json\n"
      "  TUFF_TUNED=gpt.json tuff train gpt");
  c->callback([o, &chosen] { chosen = [o] { return run_tune(*o); }; });
}

}  // namespace tuff::cli
