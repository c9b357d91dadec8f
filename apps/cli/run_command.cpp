// `tuff run MODEL.onnx`: a model on its inputs; its outputs in files, and what they are.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/ranges.h>

#include <tuff/io.h>
#include <tuff/onnx.h>
#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "bench/median.h"
#include "cli/command.h"
#include "cli/onnx_inputs.h"
#include "cli/terminal.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

struct RunOptions {
  std::string model, output, device;
  std::vector<std::string> inputs;
  uint32_t repeat = 1;
  bool json = false, as_written = false;
};

// A plain name of a file that no other output has.
std::string file_name(const std::string& name, std::unordered_set<std::string>& taken) {
  constexpr size_t kLongest = 100;
  std::string plain = name.substr(0, kLongest);
  for (char& c : plain) {
    const bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '_' || c == '-' || c == '.';
    if (!kept) c = '_';
  }
  if (plain.empty() || plain[0] == '.') plain = "_" + plain;
  std::string out = plain;
  for (int n = 2; !taken.insert(out).second; n++) out = fmt::format("{}_{}", plain, n);
  return out + ".npy";
}

struct Statistics {
  double min = std::numeric_limits<double>::infinity(), max = -min, mean = 0;
};

// None of no elements; all NaN where an element is.
std::optional<Statistics> statistics_of(const Tensor& t) {
  const auto count = size_t(int64_t(t.numel())), width = size_bytes(t.dtype());
  if (count == 0) return std::nullopt;
  std::vector<uint8_t> bytes(count * width);
  t.copy_to(bytes.data(), bytes.size());
  Statistics s;
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    const double x = load_scalar(t.dtype(), bytes.data() + i * width).as_double();
    if (std::isnan(x)) return Statistics{x, x, x};
    s.min = std::min(s.min, x);
    s.max = std::max(s.max, x);
    sum += x;
  }
  s.mean = sum / double(count);
  return s;
}

// NumPy has no floats of these.
Tensor for_npy(const Tensor& t) {
  const bool narrow = t.dtype() == DType::BF16 || is_float8(t.dtype());
  return narrow ? t.cast(DType::F32) : t;
}

void print_output(const RunOptions& o, const std::string& name, const Tensor& t,
                  const std::string& path) {
  const std::optional<Statistics> s = statistics_of(t);
  const std::vector<int64_t> shape = t.sizes();
  if (o.json) {
    print_json({{"event", "output"},
                {"name", name},
                {"dtype", std::string(tuff::name(t.dtype()))},
                {"shape", shape},
                {"min", s ? Json(s->min) : Json()},
                {"mean", s ? Json(s->mean) : Json()},
                {"max", s ? Json(s->max) : Json()},
                {"file", path.empty() ? Json() : Json(path)}});
    return;
  }
  fmt::print("{}: {} ({}){}{}\n", printable(name), tuff::name(t.dtype()), fmt::join(shape, ", "),
             s ? fmt::format("  min {:.6g}  mean {:.6g}  max {:.6g}", s->min, s->mean, s->max)
               : std::string("  empty"),
             path.empty() ? "" : "  " + printable(path));
}

void write_outputs(const RunOptions& o, const onnx::Description& d, const onnx::Values& values) {
  if (!o.output.empty()) std::filesystem::create_directories(o.output);
  std::unordered_set<std::string> taken;
  for (const onnx::ValueInfo& v : d.outputs) {
    const Tensor& t = values.at(v.name);
    std::string path;
    if (!o.output.empty()) {
      path = (std::filesystem::path(o.output) / file_name(v.name, taken)).string();
      TensorDict one;
      one.set(v.name, for_npy(t));
      save(path, one);
    }
    print_output(o, v.name, t, path);
  }
}

onnx::Values timed(const RunOptions& o, onnx::Session& session, const onnx::Values& inputs,
                   std::vector<double>& ms) {
  const uint64_t begin_ns = os::monotonic_ns();
  onnx::Values out = session(inputs);
  engine::wait_for_reads();
  engine::Device::get(o.device)->queue().wait_idle();
  ms.push_back(double(os::monotonic_ns() - begin_ns) / 1e6);
  return out;
}

void print_times(const RunOptions& o, const onnx::Session& session, double first_ms,
                 const std::vector<double>& later_ms) {
  const JitStats stats = session.stats();
  const std::string why_not = session.why_not_captured();
  if (o.json) {
    print_json({{"event", "done"},
                {"device", o.device},
                {"ms_first", first_ms},
                {"ms_median", later_ms.empty() ? Json() : Json(bench::median(later_ms))},
                {"runs", 1 + later_ms.size()},
                {"replays", stats.replays},
                {"kernels", stats.kernels},
                {"why_not_captured", why_not}});
    return;
  }
  fmt::print("{:.3f} ms{}", first_ms, later_ms.empty() ? "" : " the first time, with compiling");
  if (!later_ms.empty())
    fmt::print("; {:.3f} ms then, the median of {}", bench::median(later_ms), later_ms.size());
  if (!why_not.empty())
    fmt::print(", each time anew: {}", printable(why_not));
  else if (stats.replays > 0)
    fmt::print(", {} kernels replayed", stats.kernels);
  fmt::print("\n");
}

int run(RunOptions o) {
  os::catch_interrupts();
  o.device = engine::canonical_device(o.device);
  const onnx::Model model =
      onnx::load(o.model, {.device = o.device, .optimize = !o.as_written});
  const onnx::Values inputs = read_onnx_inputs(o.inputs, model);
  onnx::Session session(model);
  std::vector<double> ms;
  onnx::Values outputs = timed(o, session, inputs, ms);
  const double first_ms = std::exchange(ms, {})[0];
  for (uint32_t i = 1; i < o.repeat && !os::interrupted(); i++)
    outputs = timed(o, session, inputs, ms);
  if (os::interrupted()) return kExitInterrupted;
  write_outputs(o, model.description(), outputs);
  print_times(o, session, first_ms, ms);
  return kExitOk;
}

}  // namespace

void add_run_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "run",
      "Runs an ONNX model on inputs from files or made up; prints shape, dtype, least, mean and largest "
      "element of every output, and the time; `tuff inspect` lists what it takes; models with "
      "sequences are for Python and C++");
  auto o = std::make_shared<RunOptions>();
  c->add_option("model", o->model, "The model")->required()->type_name("MODEL.onnx");
  add_onnx_inputs_option(*c, o->inputs);
  c->add_option("--output", o->output,
                "Each output is written there as NAME.npy, what no file's name may hold as _; "
                "bfloat16 and float8 as float32")
      ->type_name("DIR");
  add_setting(*c, "--repeat", o->repeat,
              "So many runs, from the third on replays of the second; prints the median time of "
              "those after the first",
              "N",
              CLI::Range(1u, 1'000'000u));
  add_device_option(*c, o->device);
  c->add_flag("--no-optimize", o->as_written,
              "The graph as it is written: nothing is folded into weights");
  c->add_flag("--json", o->json, "One JSON object per line");
  c->footer(
      "Examples:\n"
      "  tuff run model.onnx --input x=x.npy --output out\n"
      "  tuff run model.onnx --input x=1x3x48x320 --device VULKAN --repeat 20");
  c->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace tuff::cli
