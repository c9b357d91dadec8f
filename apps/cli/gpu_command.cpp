// `tuff gpu`: kernels judged as hardware would run them, without it. What Mesa's compiler makes for
// one of AMD's GPUs, or clang for one of NVIDIA's, is executed on the emulated one, counted, and
// timed by a model of a chip.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/json.h"
#include "bench/train_bench.h"
#include "cli/command.h"
#include "cli/gpu_shader.h"
#include "cli/onnx_inputs.h"
#include "cli/terminal.h"
#include "emu/profile_json.h"
#include "gpu/emulated_run.h"

namespace tuff::cli {
namespace {

using emu_api::KernelProfile;

struct GpuOptions {
  gpu::EmulationOptions emulation;
  std::string sizes, dtype = "f32", model;
  int64_t past = 1;  // tokens that a language model has read
  bench::KernelOptions bench;
  bool json = false;
};

// Counts of all launches of one kernel, or of all kernels.
struct Sum {
  uint64_t launches = 0, waves = 0, instructions = 0, mads = 0, lines = 0, least_lines = 0,
           sectors = 0, least_sectors = 0, bytes = 0, dram_bytes = 0, least_dram_bytes = 0, lds_cycles = 0, conflicts = 0;
  double flops = 0, time_us = 0, roofline_us = 0;

  void add(const KernelProfile& p) {
    ++launches;
    waves += p.waves;
    for (const KernelProfile::Class& c : p.classes) instructions += c.instructions;
    mads += p.mad_instructions;
    lines += p.lines_loaded + p.lines_stored;
    least_lines += p.least_lines_loaded + p.least_lines_stored;
    sectors += p.sectors;
    least_sectors += p.least_sectors;
    bytes += p.bytes_loaded + p.bytes_stored;
    dram_bytes += p.dram_bytes_read + p.dram_bytes_written;
    least_dram_bytes += p.least_dram_bytes;
    lds_cycles += p.lds_cycles;
    conflicts += p.lds_conflict_cycles;
    flops += p.flops;
    time_us += p.time_us;
    roofline_us += p.roofline_us;
  }
  double line_ratio() const { return least_lines ? double(lines) / double(least_lines) : 1; }
  double roofline() const { return time_us > 0 ? roofline_us / time_us : 0; }
};

Json to_json(const Sum& s) {
  return {{"launches", s.launches},
          {"waves", s.waves},
          {"instructions", s.instructions},
          {"multiply_adds", s.mads},
          {"flops", s.flops},
          {"bytes", s.bytes},
          {"lines", s.lines},
          {"least_lines", s.least_lines},
          {"sectors", s.sectors},
          {"least_sectors", s.least_sectors},
          {"dram_bytes", s.dram_bytes},
          {"least_dram_bytes", s.least_dram_bytes},
          {"lds_cycles", s.lds_cycles},
          {"lds_conflict_cycles", s.conflicts},
          {"time_us", s.time_us},
          {"roofline", s.roofline()}};
}

Sum sum_of(const gpu::KernelRow& row) {
  Sum sum;
  for (const KernelProfile& p : row.launches) sum.add(p);
  return sum;
}

void print_json_rows(const std::string& work, const gpu::RunReport& report) {
  Sum all;
  bool right = report.wrong.empty();
  for (const gpu::KernelRow& row : report.kernels) {
    const KernelProfile& p = row.slowest();
    Json out{{"work", work}, {"kernel", row.name}};
    out.update(to_json(sum_of(row)));
    out["chip"] = p.chip;
    out["vgprs"] = p.vgprs;
    out["registers_estimated"] = p.registers_estimated;
    out["spills"] = p.scratch_bytes / 4;
    out["lds_bytes"] = p.lds_bytes;
    out["waves_per_simd"] = p.waves_per_simd;
    out["limit"] = p.limit;
    Json classes = Json::object();
    for (const KernelProfile::Class& c : p.classes) classes[c.name] = c.instructions;
    out["classes"] = classes;
    out["parts_us"] = emu_api::parts_json(p);
    out["right"] = row.right;
    if (!p.instructions.empty()) out["instruction_rows"] = emu_api::instructions_json(p);
    print_json(out);
    for (const KernelProfile& launch : row.launches) all.add(launch);
    right = right && row.right;
  }
  Json out{{"work", work}, {"kernel", "total"}, {"kernels", report.kernels.size()}};
  out.update(to_json(all));
  out["right"] = right;
  print_json(out);
}

std::string registers_text(const KernelProfile& p) {
  return fmt::format("{}{}", p.registers_estimated ? "~" : "", p.vgprs);
}

void print_row(const std::string& name, const Sum& s, const KernelProfile* p, bool right) {
  const Style style = Style::of_stdout();
  fmt::print("{:<28} {:>5} {:>8} {:>6} {:>5} {:>6.1f}% {:>10.3f} {:>6.2f} {:>9.3f} {:>5.1f}% "
             "{:>10.2f} {:>8} {:>6.2f}  {}\n",
             name.substr(0, 28), s.launches, s.waves, p ? registers_text(*p) : "",
             p ? std::to_string(p->waves_per_simd) : "",
             s.instructions ? 100.0 * double(s.mads) / double(s.instructions) : 0.0,
             double(s.bytes) / 1e6, s.line_ratio(), double(s.dram_bytes) / 1e6,
             s.lds_cycles ? 100.0 * double(s.conflicts) / double(s.lds_cycles) : 0.0, s.time_us,
             p ? p->limit : "", s.roofline(),
             right ? "right" : style.warn + "WRONG" + style.plain);
}

void print_instructions(const KernelProfile& p) {
  fmt::print("    {:>10} {:>12} {:>12} {:>10} {:>10} {:>10} {:>9}  instruction\n", "executed",
             "lanes", "bytes", "lines", "least", "LDS cyc.", "conflicts");
  for (const KernelProfile::Instruction& i : p.instructions)
    fmt::print("    {:>10} {:>12} {:>12} {:>10} {:>10} {:>10} {:>9}  {}\n", i.executed, i.lanes,
               i.bytes, i.lines, i.least_lines, i.lds_cycles, i.conflict_cycles, i.text);
}

void print_table(const std::string& work, const gpu::RunReport& report) {
  const std::string chip = report.kernels.empty() ? "" : report.kernels[0].launches[0].chip;
  fmt::print("{}, as {} would run it\n", work, chip);
  fmt::print("{:<28} {:>5} {:>8} {:>6} {:>5} {:>7} {:>10} {:>6} {:>9} {:>6} {:>10} {:>8} {:>6}\n",
             "kernel", "runs", "waves", "VGPRs", "/SIMD", "MADs", "MB", "lines", "DRAM MB",
             "confl.", "us", "limit", "of roof");
  Sum all;
  for (const gpu::KernelRow& row : report.kernels) {
    print_row(row.name, sum_of(row), &row.slowest(), row.right);
    if (!row.slowest().instructions.empty()) print_instructions(row.slowest());
    for (const KernelProfile& p : row.launches) all.add(p);
  }
  if (report.kernels.size() != 1) print_row("total", all, nullptr, report.wrong.empty());
  std::fflush(stdout);
}

int print_report(const GpuOptions& o, const std::string& work, const gpu::RunReport& report) {
  o.json ? print_json_rows(work, report) : print_table(work, report);
  if (report.wrong.empty()) return kExitOk;
  print_error(fmt::format("{}: {}", work, report.wrong));
  return kExitFailed;
}

std::string name_of(const bench::KernelRow& row, const bench::Extents& e, const GpuOptions& o) {
  const std::string& weights = o.bench.weights;
  return fmt::format("{} {} {}{}", row.name, bench::to_string(e), o.dtype,
                     weights.empty() ? "" : " by " + weights);
}

int run_row(GpuOptions o, const bench::KernelRow& row) {
  std::vector<bench::Extents> cases;
  for (const std::string& text : CLI::detail::split(o.sizes, ',')) {
    if (text.empty()) continue;
    cases.push_back(row.complete(bench::extents_from(text)));
    if (cases.back().empty())
      throw UsageError(fmt::format("--sizes {}: \"{}\" is not {}", o.sizes, text, row.axes));
  }
  if (cases.empty()) cases.push_back(row.complete(row.sizes[0]));
  o.bench.dtype = parse_dtype(o.dtype);
  gpu::emulate(o.emulation);
  int exit_code = kExitOk;
  for (const bench::Extents& e : cases)
    exit_code = std::max(exit_code,
                         print_report(o, name_of(row, e, o), gpu::run_row(row, e, o.bench)));
  return exit_code;
}

int run_training(const GpuOptions& o) {
  gpu::emulate(o.emulation);
  return print_report(o, "a training step of " + o.model, gpu::run_training_step(o.model));
}

// What has no right result to be compared with is right where the emulator's checks found nothing.
int run_spirv(const GpuOptions& o, const ShaderOptions& shader) {
  if (gpu::is_nvidia(o.emulation.chip))
    throw UsageError(fmt::format("--spirv is compiled for AMD's chips; {} is NVIDIA's",
                                 o.emulation.chip));
  const gpu::ShaderReport run = run_shader(shader, o.emulation);
  const std::string name = std::filesystem::path(shader.file).filename().string();
  return print_report(o, name, {{{name, {run.profile}, run.wrong.empty()}}, run.wrong});
}

bool is_language_model(const std::string& path) {
  return std::filesystem::is_directory(path) ||
         std::filesystem::path(path).extension() == ".gguf";
}

// A model on its inputs, as `tuff run`, or one token of a language model: kernel by kernel against
// the CPU.
int run_model(const GpuOptions& o, const std::vector<std::string>& given) {
  gpu::emulate(o.emulation);
  const std::string name = std::filesystem::path(o.model).filename().string();
  if (is_language_model(o.model))
    return print_report(o, fmt::format("a token of {}", name), gpu::run_token(o.model, o.past));
  const onnx::Model model = onnx::load(o.model, {.device = gpu::device_name()});
  const onnx::Values inputs = read_onnx_inputs(given, model);
  for (const auto& [name, x] : inputs) Tensor(x).realize();
  const gpu::RunReport report = gpu::run_function([&] {
    std::vector<Tensor> out;
    for (auto& [name, y] : model(inputs)) out.push_back(y);
    return out;
  });
  return print_report(o, name, report);
}

void add_profile_options(CLI::App& c, GpuOptions& o) {
  c.add_option("--chip", o.emulation.chip,
               "Whose units, clocks and caches time it: 7900xtx (the default), 780m, ... of AMD's; "
               "h100, h200, rtx4090, rtx3080 of NVIDIA's")
      ->type_name("NAME");
  c.add_flag("--instructions", o.emulation.instructions,
             "Also prints what each instruction did");
  c.add_flag("--json", o.json, "One JSON object per kernel, and one of their sum");
}

void add_emulation_options(CLI::App& c, GpuOptions& o) {
  add_setting(c, "--compiler", o.emulation.compiler,
              "aco: Mesa's, from SPIR-V; clang: LLVM's, from C, the one for NVIDIA's chips", "NAME",
              CLI::IsMember({"aco", "clang"}));
  add_profile_options(c, o);
}

// What is given as a file: a model, or a shader.
void add_files(CLI::App& gpu, Action& chosen) {
  auto o = std::make_shared<GpuOptions>();
  auto shader = std::make_shared<ShaderOptions>();
  auto inputs = std::make_shared<std::vector<std::string>>();
  gpu.add_option("model", o->model,
                 "An ONNX model, which is run once on its inputs, or a language model, which reads "
                 "one token")
      ->check([](const std::string& path) {
        return std::filesystem::exists(path)
                   ? std::string()
                   : fmt::format("{} is neither a workload nor a file", path);
      })
      ->type_name("MODEL");
  gpu.add_option("--past", o->past, "Tokens that a language model has read before")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  add_onnx_inputs_option(gpu, *inputs);
  add_shader_options(gpu, *shader);
  add_profile_options(gpu, *o);
  gpu.callback([o, shader, inputs, &gpu, &chosen] {
    const bool has_workload = !gpu.get_subcommands().empty();
    const int given = has_workload + !shader->file.empty() + !o->model.empty();
    if (given == 1 && has_workload) return;
    chosen = [o, shader, inputs, given] {
      if (given != 1)
        throw UsageError(given ? "a workload, a model and --spirv take each other's place"
                               : "a workload, a model or --spirv is wanted");
      return shader->file.empty() ? run_model(*o, *inputs) : run_spirv(*o, *shader);
    };
  });
}

void add_row(CLI::App& gpu, const bench::KernelRow& row, Action& chosen) {
  CLI::App* c = gpu.add_subcommand(row.name, row.summary);
  auto o = std::make_shared<GpuOptions>();
  c->add_option("--sizes", o->sizes, fmt::format("{}; several with commas", row.axes))
      ->type_name("LIST");
  add_setting(*c, "--dtype", o->dtype, "Of inputs and results; sums are in f32", "DTYPE",
              CLI::IsMember({"f32", "f16", "bf16"}));
  if (row.has_weights)
    c->add_option("--weights", o->bench.weights,
                  "The weights packed in blocks of a GGUF type: Q4_0, Q8_0, Q4_K, ...")
        ->type_name("TYPE");
  add_emulation_options(*c, *o);
  c->callback([o, &row, &chosen] { chosen = [o, &row] { return run_row(*o, row); }; });
}

void add_training(CLI::App& gpu, Action& chosen) {
  CLI::App* c = gpu.add_subcommand("train", "A replayed training step of a small model");
  auto o = std::make_shared<GpuOptions>();
  c->add_option("model", o->model, "One of `tuff bench train`'s")
      ->required()
      ->check(CLI::IsMember(bench::TrainBench::models()))
      ->type_name("MODEL");
  add_emulation_options(*c, *o);
  c->callback([o, &chosen] { chosen = [o] { return run_training(*o); }; });
}

}  // namespace

void add_gpu_command(CLI::App& app, Action& chosen) {
  CLI::App* gpu = app.add_subcommand(
      "gpu", "Judges kernels as a GPU of AMD's or NVIDIA's would run them, without the hardware");
  gpu->require_subcommand(0, 1);
  gpu->footer(
      "Each kernel is compiled by Mesa's Vulkan driver, or by clang to PTX for a chip of NVIDIA's,\n"
      "executed on the emulated GPU, compared with the CPU and counted. lines: cache lines of 128 bytes that loads and stores touch, over\n"
      "the fewest that their bytes could lie in. us: estimated by a model of the chip (see\n"
      "docs/design/gpu-model.md); of roof: what memory or arithmetic alone would take, over that.\n"
      "Of NVIDIA's chips waves are warps, VGPRs registers of a thread (by ptxas, where TUFF_PTXAS or\n"
      "PATH has it, else estimated: \"~\"), SIMDs the four partitions of an SM. What NVIDIA's\n"
      "assembler makes of PTX is not executed: instructions are PTX's.\n"
      "Of a shader of yours nothing is known to be right: what the emulated GPU finds wrong with\n"
      "it (accesses out of bounds, races, values that nobody wrote) is told, with exit code 1.\n"
      "Examples:\n"
      "  tuff gpu gemv --sizes 4096x4096 --dtype f16\n"
      "  tuff gpu train gpt --chip 780m --json\n"
      "  tuff gpu matmul --sizes 1024 --dtype f16 --chip h100\n"
      "  tuff gpu model.onnx --input x=1x3x32x32\n"
      "  tuff gpu model.gguf --past 64\n"
      "  tuff gpu --spirv add.spv --groups 64,1,1 --push 4096 --constant 0=64 \\\n"
      "    --buffer 0:0=16384:random-f32 --buffer 0:1=16384 --out 0:1=sums.bin");
  for (const bench::KernelRow& row : bench::kernel_rows()) add_row(*gpu, row, chosen);
  add_training(*gpu, chosen);
  add_files(*gpu, chosen);
}

}  // namespace tuff::cli
