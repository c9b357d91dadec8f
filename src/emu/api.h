// What libtuff_emulator.so offers: the machines of AMD_IFACE=MOCK, kernels executed on their own,
// and modules of PTX. The library is opened by devices/emulator.h alone, so that no program carries
// an emulator it does not use. Both sides are built together: C++ types cross, and `build` tells a
// library of another build. A namespace of its own, so that no symbol of the emulator is in a
// program (tests/tools/symbols_test.py).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/os_kernel.h"

namespace tuff::emu_api {

// What a machine found wrong with a program or a command stream.
struct MachineFinding {
  std::string kind;  // "page_fault"
  uint32_t gpu = 0, queue = 0;
  uint64_t address = 0;  // 0: none
  std::string text;      // a sentence with all of it
};
using ReportFinding = std::function<void(const MachineFinding&)>;  // on any thread

// What one dispatch did, counted, and how long it would take on a chip by the model of
// docs/design/gpu-model.md. Bytes, lines and flops are those of active lanes. In AMD's terms: of
// NVIDIA's GPUs waves are warps, workgroups blocks, vgprs registers of a thread, SIMDs the four
// partitions of an SM, LDS shared memory, l0 the L1 of an SM.
struct KernelProfile {
  std::string kernel, chip;
  uint64_t waves = 0, workgroups = 0;
  uint32_t vgprs = 0, lds_bytes = 0, scratch_bytes = 0, wave_size = 32, waves_per_simd = 0;
  bool registers_estimated = false;  // of PTX: by its text, as no ptxas was found
  // Of AMD's chips valu, valu_trans, valu_f64, dual, wmma, salu, smem, vmem_load, vmem_store,
  // atomic, lds, branch, wait, barrier, other; of NVIDIA's from vmem_load on, and fma, alu, fp16,
  // fp64, xu, tensor, constant, shuffle: all of them, in this order.
  struct Class {
    std::string name;
    uint64_t instructions = 0;
    double issue_cycles = 0;
  };
  std::vector<Class> classes;
  uint64_t mad_instructions = 0;  // among them: multiply-adds (fma, mad, dot, wmma)
  // Asked for from global memory, and the lines of 128 and of 64 bytes that each instruction
  // touches; least: if its bytes lay side by side.
  uint64_t bytes_loaded = 0, bytes_stored = 0;
  uint64_t lines_loaded = 0, least_lines_loaded = 0, lines_stored = 0, least_lines_stored = 0;
  uint64_t lines64 = 0, least_lines64 = 0;
  uint64_t sectors = 0, least_sectors = 0;  // of 32 bytes
  uint64_t lds_cycles = 0, lds_conflict_cycles = 0;  // the conflicts are among the cycles
  uint64_t l0_hits = 0, l0_misses = 0, l1_hits = 0, l1_misses = 0, l2_hits = 0, l2_misses = 0,
           mall_hits = 0, mall_misses = 0;
  uint64_t dram_bytes_read = 0, dram_bytes_written = 0;
  uint64_t least_dram_bytes = 0;  // distinct bytes touched: each read once, each written once
  double flops = 0;               // of floats; a multiply-add is two
  double time_us = 0;
  std::string limit;  // the largest part: dram, mall, l2, l0, issue, lds, latency, launch
  double issue_us = 0, lds_us = 0, l0_us = 0, l2_us = 0, mall_us = 0, dram_us = 0, latency_us = 0,
         launch_us = 0;
  double roofline_us = 0;  // max(least bytes from memory / bandwidth, flops / peak)
  struct Instruction {
    uint64_t address = 0;
    std::string text;
    uint64_t executed = 0, lanes = 0, bytes = 0, lines = 0, least_lines = 0, lds_cycles = 0,
             conflict_cycles = 0;
  };
  std::vector<Instruction> instructions;  // by address, where asked for
};
using ReportProfile = std::function<void(const KernelProfile&)>;  // on any thread

struct ProfileOptions {
  std::string chip;           // a name of emu/profile/chips.def; "": the vendor's first
  bool instructions = false;  // a row for each
  ReportProfile report;       // empty: nothing is counted
};

// An exception would meet another copy of the unwinder, where a program brings its own: calls
// return their failures.
struct Failure {
  std::string kind;  // of the Error, "" if there was none; "usage": the file of arguments is wrong
  std::string text;
};

// `tuff emu run`; the fields are its options.
struct RunRequest {
  std::string object, kernel, args, out;
  uint64_t seed = 0;  // 0: the file's
  bool json = false, counts = false;
  bool profile = false;
  std::string chip;  // of the profile, as in ProfileOptions
};

// A kernel launched with registers and memory that the caller fills.
struct LaunchRequest {
  std::vector<uint8_t> object;
  std::string kernel;
  // By the names that the object's metadata gives its user SGPRs (.user_sgprs). What has no name
  // there is left undefined; a name that is not given is an InvalidArgument.
  std::map<std::string, uint32_t> registers;
  struct Region {
    uint64_t address = 0;
    std::vector<uint8_t>* bytes = nullptr;
    bool writable = true;
  };
  std::vector<Region> memory;
  std::array<uint32_t, 3> groups{1, 1, 1};  // of the size that the metadata says
  uint64_t seed = 0, instruction_budget = 0;
  ProfileOptions profile;  // without report
};
struct LaunchResult {
  bool finished = false;
  std::string findings;  // a line or more each; empty if there were none
  KernelProfile profile;
};

// ---- PTX: NVIDIA's virtual instruction set, interpreted. Who offers it as a device keeps memory,
// streams and modules; a launch here runs to its end on the caller's thread.

struct PtxKernelInfo {
  struct Parameter {
    uint32_t offset = 0, bytes = 0, alignment = 1;
  };
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;              // what PtxLaunchRequest::parameters has at least
  uint32_t shared_bytes = 0;                 // static, of a block
  uint32_t local_bytes = 0;                  // of a thread
  uint32_t constant_bytes = 0;               // of the module
  std::array<uint32_t, 3> required_block{};  // .reqntid; zeros: any
  uint32_t most_threads = 0;                 // .maxntid, as a product; 0: not said
};

// A variable of the module in global or constant memory, at an address that the module chose.
// Launches see what the host writes there between them.
struct PtxVariable {
  std::string name;
  uint64_t address = 0, bytes = 0;
  uint8_t* host = nullptr;  // its bytes, as long as the module is there
  bool constant = false;
};

class PtxModule {
 public:
  virtual ~PtxModule() = default;
  virtual const std::vector<PtxKernelInfo>& kernels() const = 0;
  virtual const std::vector<PtxVariable>& variables() const = 0;
  virtual std::string target() const = 0;   // "sm_86"
  virtual std::string version() const = 0;  // "7.8"
};

struct PtxLaunchRequest {
  PtxModule* module = nullptr;  // of this library; one launch at a time
  std::string kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> parameters;  // values at the offsets of PtxKernelInfo
  // Global memory: all that there is beside the module's variables. Addresses are the caller's, and
  // may be those of his process; below 2^56, without overlaps.
  struct Region {
    uint64_t address = 0, bytes = 0;
    uint8_t* host = nullptr;
    bool writable = true;
  };
  std::vector<Region> memory;
  uint64_t seed = 0;                // of the order of blocks and warps
  uint64_t instruction_budget = 0;  // of all warps; 0: 1e9
  // What is looked for beside accesses out of bounds, barriers and hangs.
  bool races = true, uninitialized = true;
  bool counts = false;  // fills PtxLaunchResult::counts
};

struct PtxLaunchResult {
  bool finished = false;  // false after a fault, a trap or a hang
  // Sentences with kernel, line of the text, instruction and thread. Kinds: "out of bounds",
  // "misaligned access", "race", "barrier", "uninitialized value", "sync mask", "trap", "hang",
  // "undefined behavior". The first four of a memory access have its address.
  std::vector<MachineFinding> findings;
  uint64_t instructions = 0;               // of warps
  std::map<std::string, uint64_t> counts;  // of instructions by spelling
};

struct NvMachine {
  std::unique_ptr<os::Kernel> kernel;
  std::string pci_address;  // of its one GPU, which no driver holds; empty: they are their driver's
};

struct Api {
  const char* build;  // kApiBuild
  // The machine that TUFF_MOCK's text describes. InvalidArgument naming what is known, of its
  // options or of the profile's chips.
  std::unique_ptr<os::Kernel> (*make_amd)(const std::string& options, ReportFinding report,
                                          const ProfileOptions& profile, Failure& failure);
  // The machine of NV_IFACE=MOCK, likewise.
  NvMachine (*make_nv)(const std::string& options, ReportFinding report,
                       const ProfileOptions& profile, Failure& failure);
  // What kernels for a chip of the profiles are compiled for: "gfx1100", "sm_90". InvalidArgument
  // naming those that there are.
  std::string (*chip_target)(const std::string& chip, Failure& failure);
  // An object file for the GPUs of such a machine, for compute capability `sm`: it has the layout
  // of NVIDIA's, and where those have instructions it names the text that is to be interpreted.
  // CompileError as load_ptx(), or for a text that is for a later GPU.
  std::vector<uint8_t> (*assemble_ptx)(const std::string& text, uint32_t sm, Failure& failure);
  // Prints what came out; false if the kernel did not finish, or with findings.
  bool (*run_kernel)(const RunRequest& request, Failure& failure);
  LaunchResult (*launch)(const LaunchRequest& request, Failure& failure);
  // CompileError naming the line, and what of it is not understood.
  std::unique_ptr<PtxModule> (*load_ptx)(const std::string& text, Failure& failure);
  // InvalidArgument for a kernel that the module has not, a block that it does not take, too few
  // bytes of parameters, too much shared memory or regions that overlap.
  PtxLaunchResult (*launch_ptx)(const PtxLaunchRequest& request, Failure& failure);
};

inline constexpr char kApiBuild[] = "8 " __VERSION__;
inline constexpr char kApiSymbol[] = "tuff_emulator_api";  // extern "C" const Api* ()

}  // namespace tuff::emu_api
