#include "emu/run/run_kernel.h"

#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "emu/profile/profiler.h"
#include "emu/rdna/code_object.h"
#include "emu/run/launch_file.h"
#include "emu/run/profile_text.h"
#include "emu/run/results.h"
#include "emu/run/run_ptx.h"

namespace tuff::emu {
namespace {

using namespace rdna;

constexpr uint64_t kCodeAddress = 0x1'0000'0000, kBlockAddress = 0x2'0000'0000,
                   kPacketAddress = 0x3'0000'0000;

// The kernel's row of the object's notes, or null.
Json metadata_of(const CodeObject& object, const std::string& kernel) {
  const auto bytes = object.metadata();
  if (bytes.empty()) return nullptr;
  Json notes;
  try {
    notes = Json::from_msgpack(bytes.begin(), bytes.end());
  } catch (const Json::exception& e) {
    fail<CompileError>("code object: its metadata cannot be read: {}", e.what());
  }
  if (!notes.is_object() || !notes.contains("amdhsa.kernels")) return nullptr;
  for (const Json& row : notes["amdhsa.kernels"]) {
    if (row.value(".symbol", "") == kernel + ".kd") return row;
  }
  return nullptr;
}

// hsa_kernel_dispatch_packet_t, for kernels that ask for their sizes there. HSA, "System
// Architecture" 1.2, 2.9.6.
std::array<uint8_t, 64> dispatch_packet(const EmuLaunch& launch, const Launch& registers) {
  std::array<uint8_t, 64> packet{};
  const auto put = [&](size_t at, auto value) {
    std::memcpy(packet.data() + at, &value, sizeof value);
  };
  put(0, uint16_t(2));  // a kernel dispatch
  put(2, uint16_t(3));  // of three dimensions
  for (size_t k = 0; k < 3; ++k) {
    put(4 + 2 * k, uint16_t(launch.group_size[k]));
    put(12 + 4 * k, launch.groups[k] * launch.group_size[k]);
  }
  put(24, registers.scratch_bytes);
  put(28, registers.lds_bytes);
  put(40, kBlockAddress);
  return packet;
}

// What came out, and the profile where one was asked for.
struct Result {
  Outcome outcome;
  std::optional<emu_api::KernelProfile> profile;
};

Result execute(CodeObject& object, const Kernel& kernel, EmuLaunch& launch,
               profile::Profiler* profiler) {
  Launch registers = launch_of(kernel, kBlockAddress, kPacketAddress);
  registers.groups = launch.groups;
  registers.group_size = launch.group_size;
  registers.lds_bytes += launch.dynamic_lds_bytes;
  registers.seed = launch.seed;
  registers.instruction_budget = launch.instruction_budget;
  auto packet = dispatch_packet(launch, registers);
  RangeMemory memory;
  memory.map(kCodeAddress, object.image());
  memory.map(kPacketAddress, packet, false);
  if (!launch.block.empty()) memory.map(kBlockAddress, launch.block, false);
  for (EmuBuffer& b : launch.buffers) memory.map(b.address, b.bytes);
  if (!profiler) return {run(registers, memory), std::nullopt};
  const auto recording = profiler->record(registers);
  Outcome outcome = run(registers, memory, &recording->counters());
  return {std::move(outcome), recording->profile(true)};
}

Json to_json(const Outcome& outcome, const EmuLaunch& launch) {
  Json findings = Json::array();
  for (const Finding& f : outcome.findings) {
    findings.push_back({{"kind", name(f.kind)},
                        {"kernel", f.kernel},
                        {"instruction", f.instruction},
                        {"code_address", f.code_address},
                        {"workgroup", f.workgroup},
                        {"wave", f.wave},
                        {"lane", f.lane},
                        {"data_address", f.data_address},
                        {"times", f.times},
                        {"detail", f.detail}});
  }
  return {{"finished", outcome.finished},
          {"instructions", outcome.instructions},
          {"counts", outcome.counts},
          {"findings", findings},
          {"buffers", buffers_json(launch)}};
}

void print_text(const Outcome& outcome, const EmuLaunch& launch, bool counts) {
  fmt::print("{}", to_text(outcome.findings));
  fmt::print("{}: {} instructions of {} kinds, {} findings\n",
             outcome.finished ? "finished" : "stopped", outcome.instructions, outcome.counts.size(),
             outcome.findings.size());
  if (counts) print_counts(outcome.counts);
  print_changed(launch);
}

// User SGPRs by the names that the metadata has for them.
void set_registers(Launch& launch, const Json& names, const emu_api::LaunchRequest& r) {
  launch.user_data_written = 0;
  if (!names.is_array() || names.size() > launch.user_data.size())
    fail<CompileError>("code object: kernel '{}' does not say what its user registers hold",
                       r.kernel);
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string name = names[k].is_string() ? names[k].get<std::string>() : "";
    if (name.empty()) continue;
    const auto value = r.registers.find(name);
    if (value == r.registers.end())
      fail<InvalidArgument>("kernel '{}' wants register '{}', which is not given", r.kernel, name);
    launch.user_data[k] = value->second;
    launch.user_data_written |= uint16_t(1u << k);
  }
}

std::array<uint32_t, 3> local_size(const Json& row, const std::string& kernel) {
  const Json size = row.value(".reqd_workgroup_size", Json());
  std::array<uint32_t, 3> out{};
  for (size_t k = 0; k < 3; ++k)
    out[k] = size.is_array() && k < size.size() && size[k].is_number_unsigned()
                 ? size[k].get<uint32_t>()
                 : 0;
  constexpr uint64_t kMost = 1024;  // invocations of a workgroup, on all of AMD's GPUs
  if (const uint64_t n = uint64_t(out[0]) * out[1] * out[2]; n == 0 || n > kMost)
    fail<CompileError>("code object: kernel '{}' has workgroups of {} invocations", kernel, n);
  return out;
}

}  // namespace

emu_api::LaunchResult launch_kernel(const emu_api::LaunchRequest& r) {
  CodeObject object(r.object, kCodeAddress);
  const Json row = metadata_of(object, r.kernel);
  if (!row.is_object())
    fail<CompileError>("code object: it has no metadata of kernel '{}'", r.kernel);
  Launch launch = launch_of(object.kernel(r.kernel), 0);
  set_registers(launch, row.value(".user_sgprs", Json()), r);
  launch.groups = r.groups;
  launch.group_size = local_size(row, r.kernel);
  launch.seed = r.seed;
  launch.instruction_budget = r.instruction_budget;
  RangeMemory memory;
  memory.map(kCodeAddress, object.image());
  for (const auto& region : r.memory) memory.map(region.address, *region.bytes, region.writable);
  profile::Profiler profiler(r.profile);
  const auto recording = profiler.record(launch);
  const Outcome outcome = run(launch, memory, &recording->counters());
  return {outcome.finished, to_text(outcome.findings),
          recording->profile(r.profile.instructions)};
}

bool run_kernel(const emu_api::RunRequest& o) {
  std::vector<uint8_t> file = os::read_file(o.object);
  if (is_ptx(file)) return run_ptx(o, {file.begin(), file.end()});
  if (!is_elf(file))
    fail<InvalidArgument>("{} is neither an ELF file nor a text of PTX, which has a .version",
                          o.object);
  CodeObject object(std::move(file), kCodeAddress);
  const Kernel kernel = object.kernel(o.kernel);
  EmuLaunch launch =
      read_emu_launch(o.args, metadata_of(object, o.kernel), kernel.descriptor.kernarg_bytes);
  if (o.seed) launch.seed = o.seed;
  std::optional<profile::Profiler> profiler;
  if (o.profile) profiler.emplace(emu_api::ProfileOptions{o.chip, true, {}});
  const auto [outcome, profile] = execute(object, kernel, launch, profiler ? &*profiler : nullptr);
  Json json = o.json || !o.out.empty() ? to_json(outcome, launch) : Json();
  if (profile && !json.is_null()) json["profile"] = profile_json(*profile);
  if (!o.out.empty()) os::write_text(o.out, json.dump(1, ' ', false) + "\n");
  if (o.json) {
    print_json(json);
  } else {
    print_text(outcome, launch, o.counts);
    if (profile) fmt::print("{}", profile_text(*profile));
  }
  return outcome.finished && outcome.findings.empty();
}

}  // namespace tuff::emu
