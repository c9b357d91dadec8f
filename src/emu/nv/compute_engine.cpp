// The compute engine of a channel: launches from QMDs, held against the program that they name, and
// executed by the interpreter of PTX. Sources: NVIDIA open-gpu-doc classes/compute/clc6c0.h,
// clc7c0qmd.h, clcbc0qmd.h, clcec0qmd.h; what kernels find in constant bank 0: docs/design/nv.md.
#include <algorithm>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "emu/nv/compute_engine.h"

namespace tuff::emu::nv {
namespace {

constexpr uint32_t kInitialStack = 0xfffdc0, kNowhere = 0xffff;
constexpr uint64_t kWarpStep = 0x200, kTpcStep = 0x8000;
constexpr uint32_t kSharedStep = 128;

uint64_t local_bytes_per_tpc(const ChipKind& chip, uint32_t bytes_per_thread) {
  const uint64_t per_warp = align_up(uint64_t(bytes_per_thread) * 32, kWarpStep);
  return align_up(per_warp * chip.warps_per_sm * chip.sms_per_tpc, kTpcStep);
}

template <class T>
T value_at(std::span<const uint8_t> bytes, uint32_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

ComputeEngine::ComputeEngine(Issuer& issuer, Announce end)
    : issuer_(issuer),
      world_(issuer.world),
      end_(std::move(end)),
      engine_slot_(issuer.world.take_slot()) {
  for (uint32_t& slot : slots_) slot = world_.take_slot();
  published_.fill(true);
}

ComputeEngine::~ComputeEngine() {
  for (const uint32_t slot : slots_) world_.give_slot(slot);
  world_.give_slot(engine_slot_);
}

bool ComputeEngine::idle() {
  if (!kernels_.empty() || stuck_) return false;
  for (uint32_t k = 0; k < kChains; ++k)
    if (published_[k]) issuer_.order.add(op_id(world_.now(), slots_[k]));
  return true;
}

bool ComputeEngine::method(uint32_t number, uint32_t data) {
  const auto upper = [&](uint64_t& value) { value = (value & 0xffffffff) | uint64_t(data) << 32; };
  const auto lower = [&](uint64_t& value) { value = (value & ~uint64_t{0xffffffff}) | data; };
  switch (number) {
    case compute::SHARED_WINDOW_A: upper(shared_window_); return true;
    case compute::SHARED_WINDOW_A + 4: lower(shared_window_); return true;
    case compute::LOCAL_WINDOW_A: upper(local_window_); return true;
    case compute::LOCAL_WINDOW_A + 4: lower(local_window_); return true;
    case compute::LOCAL_MEMORY_A: upper(local_memory_); return idle();
    case compute::LOCAL_MEMORY_A + 4: lower(local_memory_); return true;
    case compute::LOCAL_SIZE_A: upper(local_per_tpc_); return true;
    case compute::LOCAL_SIZE_A + 4: lower(local_per_tpc_); return true;
    case compute::LOCAL_SIZE_A + 8: return true;  // SMs that may be used
    case compute::INVALIDATE_SHADER_CACHES_NO_WFI:
      if (data != 1) bad(kClassError, "INVALIDATE_SHADER_CACHES_NO_WFI {:#x}", data);
      issuer_.code = {issuer_.order, world_.tick()};
      world_.code.clear();
      return true;
    case compute::PCAS_A: qmd_address_ = uint64_t(data) << 8; return true;
    case compute::PCAS2_B:
      if (data != compute::kPrefetchSchedule)
        bad(kClassError, "SEND_SIGNALING_PCAS2_B {:#x}", data);
      return launch(qmd_address_);
    default: bad(kClassError, "method {:#x} of the compute engine", number);
  }
}

// False: as many are in flight as there is room for.
bool ComputeEngine::launch(uint64_t qmd_address) {
  const auto* free = std::ranges::find(used_, false);
  if (free == used_.end() || stuck_) return false;
  const auto chain = uint32_t(free - used_.begin());
  start(qmd_address, chain, issuer_.order);
  used_[chain] = true;
  return true;
}

void ComputeEngine::start(uint64_t qmd_address, uint32_t chain, Order after) {
  const Accessor reader = issuer_.accessor(engine_slot_, "a QMD's fetch", after);
  std::vector<uint32_t> dwords(world_.chip.qmd_bytes / 4);
  std::memcpy(dwords.data(),
              issuer_.reach(reader, {qmd_address, world_.chip.qmd_bytes, Path::L2, true, false}),
              world_.chip.qmd_bytes);
  after.add(reader.op);
  const Qmd qmd = decode_qmd(world_.chip, dwords);
  const Stub stub = fetch_stub(qmd);
  check_launch(qmd, stub);
  if (qmd.invalidates_data) issuer_.data = {after, world_.tick()};
  if (qmd.invalidates_constants) issuer_.constants = {after, world_.tick()};
  const std::string name = fmt::format("kernel `{}`", std::string(stub.name, stub.name_bytes));
  kernels_.push_back({chain, qmd, stub, issuer_.accessor(slots_[chain], name, after)});
}

// What the instruction cache has of it; memory that has changed since is found.
Stub ComputeEngine::fetch_stub(const Qmd& qmd) {
  Stub stub;
  std::memcpy(&stub, issuer_.peek(qmd.program, sizeof stub, "a program's fetch"), sizeof stub);
  if (std::memcmp(stub.magic, kStubMagic, sizeof stub.magic) != 0 ||
      stub.name_bytes > sizeof stub.name)
    bad(kClassError, "no program is at {:#x}", qmd.program);
  const auto [known, fresh] = world_.code.emplace(qmd.program, stub);
  if (!fresh && std::memcmp(&known->second, &stub, sizeof stub) != 0) {
    world_.report(FindingKind::StaleCode, issuer_.channel, qmd.program,
                  fmt::format("kernel `{}` is launched while the instruction cache has `{}` of the "
                              "same address: INVALIDATE_SHADER_CACHES_NO_WFI is missing",
                              std::string(stub.name, stub.name_bytes),
                              std::string(known->second.name, known->second.name_bytes)));
    return known->second;
  }
  return stub;
}

void ComputeEngine::check_launch(const Qmd& q, const Stub& s) {
  const ChipKind& chip = world_.chip;
  const std::string name(s.name, s.name_bytes);
  const auto same = [&](const char* what, uint64_t launched, uint64_t wanted) {
    if (launched != wanted)
      bad(kClassError, "kernel `{}` is launched with {} {}, it has {}", name, what, launched,
          wanted);
  };
  same("SASS version", q.sass_version, chip.sass_version);
  same("compute capability", chip.sm, s.sm);
  same("registers", q.registers, s.registers);
  same("barriers", q.barriers, s.barriers);
  same("bytes of shared memory", q.shared_bytes, align_up(s.shared_bytes, kSharedStep));
  same("bytes of local memory", q.local_bytes, s.local_bytes);
  const auto& [least, target, most] = q.shared_configs;
  if (least * 1024 < q.shared_bytes || least > target || target > most || most > chip.shared_kib)
    bad(kClassError, "kernel `{}`: SMs of {}, {} and {} KiB for {} bytes of shared memory", name,
        least, target, most, q.shared_bytes);
  if (q.grid[0] == 0 || q.grid[1] == 0 || q.grid[2] == 0)
    bad(kClassError, "kernel `{}`: a launch of no blocks", name);
  if (shared_window_ == 0 || local_window_ == 0 || shared_window_ >> 32 << 32 != shared_window_)
    bad(kClassError, "kernel `{}`: windows at {:#x} and {:#x}", name, shared_window_,
        local_window_);
  if (s.local_bytes == 0) return;
  const uint64_t per_tpc = local_bytes_per_tpc(chip, s.local_bytes);
  if (per_tpc > local_per_tpc_ ||
      !world_.caches.mapped(local_memory_, local_per_tpc_ * chip.gpcs * chip.tpcs_per_gpc, true))
    bad(kClassError, "kernel `{}`: {} bytes of local memory per TPC, there are {} at {:#x}", name,
        per_tpc, local_per_tpc_, local_memory_);
}

// ---- execution

std::vector<uint8_t> ComputeEngine::read_bank(const Kernel& k) const {
  for (const Qmd::Bank& b : k.qmd.banks) {
    if (b.address % 256 || b.bytes == 0 || b.bytes > (64u << 10))
      bad(kClassError, "constant bank {} of {} bytes at {:#x}", b.number, b.bytes, b.address);
    if (b.number != 0) continue;
    const uint8_t* bytes = issuer_.reach(k.who, {b.address, b.bytes, Path::Scalar, true, false});
    return {bytes, bytes + b.bytes};
  }
  bad(kClassError, "a launch without constant bank 0");
}

void ComputeEngine::check_bank(const Kernel& k, std::span<const uint8_t> bank) const {
  const BankPlaces& at = world_.chip.bank;
  if (bank.size() < at.parameters + 8) bad(kClassError, "constant bank 0 of {} bytes", bank.size());
  const auto word = [&](const char* what, uint32_t offset, uint32_t wanted) {
    const auto found = value_at<uint32_t>(bank, offset);
    if (found != wanted)
      bad(kClassError, "{}: constant bank 0 says {} {:#x}, it is {:#x}", k.who.name, what, found,
          wanted);
  };
  for (uint32_t axis = 0; axis < 3; ++axis) {
    word("block size", at.block + 4 * axis, k.qmd.block[axis]);
    word("grid size", at.grid + 4 * axis, k.qmd.grid[axis]);
  }
  word("stack", at.stack, kInitialStack);
  const auto window = [&](const char* what, uint32_t offset, uint64_t wanted) {
    if (offset == kNowhere) return;
    word(what, offset, uint32_t(wanted));
    word(what, offset + 4, uint32_t(wanted >> 32));
  };
  window("shared window", at.shared_window, shared_window_);
  window("local window", at.local_window, local_window_);
}

ptx::Outcome ComputeEngine::execute(const Kernel& k, LaunchMemory& memory) {
  const std::vector<uint8_t> bank = read_bank(k);
  check_bank(k, bank);
  const auto* text = reinterpret_cast<const char*>(issuer_.peek(
      k.stub.text_address, uint32_t(k.stub.text_bytes), "a program's text"));
  emu_api::PtxLaunchRequest r;
  r.module = world_.module_of(k.stub, text);
  if (!r.module) bad(kClassError, "{}: what it names is not its text", k.who.name);
  r.kernel.assign(k.stub.name, k.stub.name_bytes);
  r.grid = k.qmd.grid;
  r.block = k.qmd.block;
  r.parameters.assign(bank.begin() + world_.chip.bank.parameters, bank.end());
  r.seed = world_.random.next();
  try {
    return world_.profiler ? world_.profiler->execute(r, memory) : ptx::execute(r, memory);
  } catch (const InvalidArgument& e) {  // a block that the kernel does not take
    bad(kClassError, "{}: {}", k.who.name, e.what());
  }
}

// What it names is launched once it has ended, and knows that.
void ComputeEngine::run(uint32_t index) {
  const Kernel k = std::move(kernels_[index]);
  kernels_.erase(kernels_.begin() + index);
  used_[k.chain] = false;
  published_[k.chain] = k.qmd.publishes;
  LaunchMemory memory(world_, k.who);
  const ptx::Outcome outcome = execute(k, memory);
  finish(k, outcome, memory);
  if (!outcome.finished || k.qmd.next == 0) return;
  Order after = k.who.ended;
  if (k.qmd.publishes) after.add(k.who.op);
  start(k.qmd.next, k.chain, after);
  used_[k.chain] = true;
}

// The error's record is written before anything is told, so that who hears of it finds the record.
void ComputeEngine::finish(const Kernel& k, const ptx::Outcome& outcome,
                           const LaunchMemory& memory) {
  if (!outcome.finished) {
    const bool hangs = !outcome.findings.empty() &&
                       outcome.findings.back().kind == ptx::FindingKind::Hang;
    const std::string why = outcome.findings.empty() ? k.who.name + " has stopped"
                                                     : to_text(outcome.findings.back());
    if (memory.fault()) end_({kMmuFault, memory.fault(), why});
    else if (!hangs) end_({kGraphicsException, {}, why});
    else stuck_ = true;
  }
  for (const ptx::Finding& f : outcome.findings)
    world_.report(FindingKind::Kernel, issuer_.channel, f.address, to_text(f));
}

}  // namespace tuff::emu::nv
