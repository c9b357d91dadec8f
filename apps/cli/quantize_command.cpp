// `tuff quantize`: a language model with its weights in another type.
#include <exception>
#include <memory>
#include <optional>
#include <ranges>

#include <fmt/ranges.h>
#include <tuff/language.h>

#include "base/os.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

struct QuantizeCommandOptions {
  std::string from, to, type, device;
  bool force = false;
};

class QuantizeInterrupted : public std::exception {};

int quantize(const QuantizeCommandOptions& o) {
  os::catch_interrupts();
  std::optional<ProgressBar> bar;
  const uint64_t begin_ns = os::monotonic_ns();
  constexpr double kMib = 1 << 20;
  const auto progress = [&](uint64_t written, uint64_t total) {
    if (os::interrupted()) throw QuantizeInterrupted();
    if (!bar) bar.emplace("quantize", total);
    bar->update(written, [&] {
      return fmt::format("{:.0f}/{:.0f} MiB  {:.0f} MiB/s", double(written) / kMib,
                         double(total) / kMib,
                         double(written) / kMib * 1e9 / double(os::monotonic_ns() - begin_ns));
    });
  };
  language::Quantized done;
  try {
    done = language::quantize(o.from, o.to, o.type,
                              {.device = engine::canonical_device(o.device), .overwrite = o.force,
                               .progress = progress});
  } catch (const QuantizeInterrupted&) {
    bar.reset();
    fmt::print(stderr, "tuff: interrupted; {} is as it was\n", printable(o.to));
    return kExitInterrupted;
  }
  bar.reset();
  const auto types = done.tensors | std::views::transform([](const auto& entry) {
                       return fmt::format("{} {}", entry.second, entry.first);
                     });
  fmt::print("{}: {:.1f} MiB of weights, from {:.1f}; tensors: {}\n", printable(o.to),
             double(done.bytes) / kMib, double(done.bytes_before) / kMib, fmt::join(types, ", "));
  return kExitOk;
}

}  // namespace

void add_quantize_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "quantize",
      "Writes a language model with its weights in another type; norms and biases stay as they "
      "are");
  auto o = std::make_shared<QuantizeCommandOptions>();
  c->add_option("from", o->from, "A GGUF file; the first one of a model in several")
      ->required()
      ->type_name("IN");
  c->add_option("to", o->to, "The GGUF file to write; whole, or as it was before")
      ->required()
      ->type_name("OUT");
  c->add_option("--type", o->type,
                "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q4_k_s, q5_k, "
                "q5_k_s or q6_k; types of k mix others in, as llama.cpp's ..._K_M and ..._K_S")
      ->required()
      ->type_name("TYPE");
  c->add_flag("--force", o->force, "Writes over a file that is there already");
  add_device_option(*c, o->device);
  c->footer(
      "Examples:\n"
      "  tuff quantize model-f16.gguf model-q4_k.gguf --type q4_k\n"
      "  tuff quantize model-00001-of-00003.gguf model.gguf --type q8_0 --force");
  c->callback([o, &chosen] { chosen = [o] { return quantize(*o); }; });
}

}  // namespace tuff::cli
