// What `tuff gpu` does: work runs on an emulated GPU, of AMD's with the machine code that a real
// compiler made, of NVIDIA's with the PTX that clang made, and the emulator tells of every launch
// what it did and how long a chip would take.
// Called by gpu_command. Must never parse options or print.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/kernel_bench.h"
#include "emu/api.h"

namespace tuff::gpu {

struct EmulationOptions {
  std::string compiler;  // as AMD_COMPILER; "": aco, and clang for NVIDIA's chips
  std::string chip;      // as emu_api::ProfileOptions
  bool instructions = false;  // a row for each
};

// The launches of one kernel in a run.
struct KernelRow {
  std::string name;  // as schedules name it
  std::vector<emu_api::KernelProfile> launches;
  bool right = true;  // what it stored is what the CPU device stores, within its error bound

  double time_us() const;
  const emu_api::KernelProfile& slowest() const;  // of its launches
};

struct RunReport {
  std::vector<KernelRow> kernels;  // in the order of their first launches
  std::string wrong;               // what was not right; empty if all was
};

// Is it one of NVIDIA's? InvalidArgument naming those that there are.
bool is_nvidia(const std::string& chip);
// Makes AMD:0, or NV:0 for a chip of NVIDIA's, the emulated GPU. Before any device is opened, and
// once a process.
void emulate(const EmulationOptions& options);
// The name of that device.
const std::string& device_name();

// One launch of a row of `tuff bench`, its result compared with what it has to be too.
RunReport run_row(const bench::KernelRow& row, const bench::Extents& extents,
                  bench::KernelOptions options);
// A replayed training step.
RunReport run_training_step(const std::string& model);
// One token of a language model behind so many others, by the captured graph of single tokens.
RunReport run_token(const std::string& model, int64_t past);
// What it takes to realize what the function returns, on that device.
RunReport run_function(const std::function<std::vector<Tensor>()>& function);

}  // namespace tuff::gpu
