// `tuff emu`: machine code of AMD's gfx1100 and NVIDIA's PTX, executed on the host under the
// emulator's checks.
#include <memory>

#include "cli/command.h"
#include "devices/emulator.h"

namespace tuff::cli {
namespace {

int run_kernel(const emu_api::RunRequest& request) {
  emu_api::Failure failure;
  const bool clean = devices::emulator().run_kernel(request, failure);
  if (failure.kind == "usage") throw UsageError(failure.text);
  devices::throw_failure(failure);
  return clean ? kExitOk : kExitFailed;
}

constexpr const char* kExample =
    R"(Examples:
  tuff emu run kernel.co --kernel scale --args scale.json
  tuff emu run kernel.ptx --kernel scale --args scale.json
FILE of --args, for a kernel (float* out, float* in, float scale):
  {"groups": [4], "group_size": [64],          (of PTX: blocks, and threads of a block)
   "args": [{"buffer": {"dtype": "f32", "count": 256}},
            {"buffer": {"dtype": "f32", "values": [1, 2, 3], "count": 256, "fill": 0.5}},
            {"f32": 2.0}]}
Contents may also come from a "file" of raw bytes; "size" counts bytes. "offset" beside an argument
says where it lies in the block, for objects without metadata. Also: "dynamic_lds" (bytes), "seed"
(of the order of waves), "budget" (instructions). PTX is simulated by its specification: it was
never held against an NVIDIA GPU.)";

}  // namespace

void add_emu_command(CLI::App& app, Action& chosen) {
  CLI::App* emu = app.add_subcommand("emu", "Emulated GPUs: executes kernels without the hardware");
  emu->require_subcommand(1);
  emu->footer(
      "Examples:\n"
      "  tuff emu run kernel.co --kernel scale --args scale.json\n"
      "  tuff emu run kernel.ptx --kernel scale --args scale.json");
  CLI::App* c = emu->add_subcommand(
      "run",
      "Executes a kernel of a gfx1100 code object (of clang, hipcc, ...) or of PTX (of clang, nvcc, "
      "...) and reports accesses out of bounds, races, missing waits and barriers, values that "
      "nobody wrote and hangs; exit code 1 if there are any");
  auto o = std::make_shared<emu_api::RunRequest>();
  c->add_option("object", o->object, "An ELF file of AMDGPU code, linked or not; or a text of PTX")
      ->required()
      ->type_name("CODE_OBJECT|PTX");
  c->add_option("--kernel", o->kernel, "Its name in the file")->required()->type_name("NAME");
  c->add_option("--args", o->args, "Sizes and arguments as JSON, see below")
      ->required()
      ->type_name("FILE");
  c->add_option("--out", o->out, "Writes results and findings there, as JSON")->type_name("FILE");
  c->add_option("--seed", o->seed, "Of the order in which waves run; instead of the file's")
      ->type_name("N");
  c->add_flag("--counts", o->counts, "Prints how often each instruction was executed");
  auto* profile = c->add_flag(
      "--profile", o->profile,
      "Prints what each instruction touched, and how long the kernel would take by the model of "
      "docs/design/gpu-model.md");
  c->add_option("--chip", o->chip, "Of the profile: 7900xtx (the default), 7900xt, 7600, 780m, ...; of PTX h100 (the default), "
                "h200, rtx4090, rtx3080")
      ->needs(profile)
      ->type_name("NAME");
  c->add_flag("--json", o->json, "One JSON object on standard output");
  c->footer(kExample);
  c->callback([o, &chosen] { chosen = [o] { return run_kernel(*o); }; });
}

}  // namespace tuff::cli
