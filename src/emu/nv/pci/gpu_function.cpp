#include "emu/nv/pci/gpu_function.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emu/kernel/clock.h"

namespace tuff::emu::nv {
namespace {

constexpr uint64_t kGsp = 0x110000, kSec2 = 0x840000, kRom = 0x300000, kRomBytes = 1u << 20;
constexpr uint64_t kSec2Fuses = 0x824140, kGspFuses = 0x8241c0;
constexpr uint32_t kOwnStartReads = 3;
constexpr uint64_t kFrtsBytes = 1u << 20;
constexpr uint64_t kApertureBlock = 0x1704, kHopperApertureBlock = 0xb80f60;
constexpr uint64_t kInvalidateTables = 0xb830b0, kUsermode = 0xbb0000;
constexpr uint32_t kTriggered = 1u << 31, kApertureByTable = 1u << 31;

uint32_t word_in(const std::vector<uint8_t>& bytes, size_t at) {
  uint32_t value = 0;
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A register of page addresses has them from bit 4 on.
uint32_t page_register(uint64_t address) { return uint32_t(address >> 12 << 4); }

}  // namespace

GpuFunction::GpuFunction(GpuOptions options, std::unique_ptr<pci::HostMemory> memory,
                         Objects& objects, FalconModel::Told mistake)
    : options_(std::move(options)),
      memory_(std::move(memory)),
      objects_(objects),
      mistake_(std::move(mistake)),
      rom_(Pages::make(kRomBytes, std::make_shared<PageFile>())),
      video_(Pages::make(options_.video_bytes, std::make_shared<PageFile>())),
      world_{*memory_, objects_, physical_memory(), options_.video_bytes, 0, options_.sequences,
             mistake_} {
  std::memcpy(rom_.data(), options_.rom.data(), std::min(options_.rom.size(), size_t{kRomBytes}));
  power_on();
}

// The firmware and its channels go while the bus stands still.
GpuFunction::~GpuFunction() {
  const auto lock = memory_->hold();
  firmware_.reset();
}

PhysicalMemory GpuFunction::physical_memory() {
  PhysicalMemory m;
  m.mmu_version = objects_.chip().sm < 90 ? 2 : 3;
  m.read = [this](bool video, uint64_t address, uint64_t& entry) {
    return read_table(video, address, entry);
  };
  m.at = [this](bool video, uint64_t address, uint64_t size_bytes) -> std::byte* {
    if (!video) return memory_->at(address, size_bytes);
    if (size_bytes <= options_.video_bytes && address <= options_.video_bytes - size_bytes)
      return video_.data() + address;
    mistake_(fmt::format("{} bytes of video memory at {:#x}", size_bytes, address));
    return nullptr;
  };
  m.mistake = mistake_;
  return m;
}

// The GPU's own start runs a program on the GSP's falcon, which halts then.
void GpuFunction::power_on() {
  firmware_.reset();
  gsp_ = std::make_unique<FalconModel>(*memory_, mistake_);
  sec2_ = std::make_unique<FalconModel>(*memory_, mistake_);
  gsp_->program = [this](FalconModel& f) { return run_fwsec(f); };
  sec2_->program = [this](FalconModel& f) { return run_booter(f); };
  gsp_->halted = true;
  if (options_.fmc) {
    fsp_ = std::make_unique<FspModel>(mistake_);
    fsp_->take = [this](uint32_t kind, const std::vector<uint32_t>& payload) {
      return take_message(kind, payload);
    };
  }
  protected_begin_ = protected_end_ = 0;
  frts_scratch_ = sb_scratch_ = 0;
  own_start_reads_ = kOwnStartReads;
  handed_off_ = booted_ = false;
  invalidating_ = aperture_block_ = 0;
}

void GpuFunction::reset() {
  ++resets;
  power_on();
}

void GpuFunction::unmapped(uint64_t address, uint64_t size_bytes) {
  if (firmware_) firmware_->channels().unmapped(address, size_bytes);
}

// ---- registers

FalconModel* GpuFunction::falcon_at(uint64_t& offset) {
  for (const auto& [base, falcon] : {std::pair{kGsp, gsp_.get()}, std::pair{kSec2, sec2_.get()}})
    if (offset - base < FalconModel::kBytes) {
      offset -= base;
      return falcon;
    }
  return nullptr;
}

std::optional<uint32_t> GpuFunction::kept_register(uint64_t offset) const {
  const auto fuses = [&](uint64_t first, const SignedProgram& p) -> std::optional<uint32_t> {
    if (offset - first >= 64) return std::nullopt;
    return offset == first + 4 * (p.ucode_id - 1) ? p.fuses : 0;
  };
  if (const auto fuse = fuses(kGspFuses, options_.fwsec)) return fuse;
  if (const auto fuse = fuses(kSec2Fuses, options_.load)) return fuse;
  switch (offset) {
    case 0x0: return options_.boot_0;
    case 0xa00: return options_.boot_42;
    case 0x1400 + 4 * 0x0e: return frts_scratch_;
    case 0x1400 + 4 * 0x15: return sb_scratch_;
    case 0x1180f8: return handed_off_ ? 1u << 26 : 0;
    case 0x1183a4: return uint32_t(options_.video_bytes >> 20);
    case 0x1fa7c8: return 1;   // what is locked may be read
    case 0x1fa824: return protected_end_ ? page_register(protected_begin_) : 0;
    case 0x1fa828: return protected_end_ ? page_register(protected_end_ - 0x1000) : 0;
    case 0x1fa82c: return ~0xfu;  // nothing is locked: begin behind end
    case 0x1fa830: return 0;
    case kUsermode + 0x80: return uint32_t(clock_ns(CLOCK_REALTIME));  // its clock
    case kUsermode + 0x84: return uint32_t(clock_ns(CLOCK_REALTIME) >> 32);
    case 0x625f04: return 0;   // no screen
    case 0x82074c: return 1;   // for production
    case 0x820c04: return 0;
    default: return std::nullopt;
  }
}

uint32_t GpuFunction::read(size_t bar, uint64_t offset) {
  if (bar != 0) return mistake_(fmt::format("BAR {} is read by a call", bar)), ~0u;
  if (offset == 0x118128 || offset == 0x118234) {
    if (own_start_reads_ > 0) --own_start_reads_;
    if (offset == 0x118128) return own_start_reads_ < 2 ? 1 : 0;
    return own_start_reads_ == 0 ? 0xff : 0x10;
  }
  if (offset == kInvalidateTables) {
    if (invalidating_ > 0) --invalidating_;
    return invalidating_ > 0 ? kTriggered : 0;
  }
  if (const auto fsp = read_of_fsp(offset)) return *fsp;
  if (const auto kept = kept_register(offset)) return *kept;
  uint64_t inside = offset;
  if (FalconModel* falcon = falcon_at(inside)) return falcon->read(uint32_t(inside));
  mistake_(fmt::format("register {:#x} is read, which is not known", offset));
  return 0xbadf5040;
}

void GpuFunction::write(size_t bar, uint64_t offset, uint32_t value) {
  if (bar != 0) return mistake_(fmt::format("BAR {} is written by a call", bar));
  if (offset == kGsp + 0xc00) {
    if (firmware_) firmware_->ring();
    // What it says once nothing runs there any more.
    if (firmware_ && firmware_->has_ended()) gsp_->write(0x40, 0x80000000);
    gsp_->riscv_halted = firmware_ && firmware_->has_ended();
    return;
  }
  if (fsp_ && offset >= FspModel::kFirst && offset < FspModel::kEnd)
    return fsp_->write(offset, value);
  if (offset == (fsp_ ? kHopperApertureBlock : kApertureBlock)) {
    if (value != 0) mistake_(fmt::format("the aperture is to go by {:#x}", value));
    aperture_block_ = value;
    return;
  }
  if (offset == kInvalidateTables) return invalidate(value);
  uint64_t inside = offset;
  FalconModel* const falcon = falcon_at(inside);
  if (!falcon)
    return mistake_(fmt::format("register {:#x} is written, which is not known", offset));
  if (falcon == gsp_.get() && inside == 0x3c0 && value == 1 && firmware_ &&
      !firmware_->has_ended() && !firmware_->is_suspended())
    mistake_("the GSP is reset while its firmware runs");
  falcon->write(uint32_t(inside), value);
}

// All of all tables, once writes before it have arrived.
void GpuFunction::invalidate(uint32_t value) {
  if (value != (kTriggered | 0x43)) mistake_(fmt::format("tables are invalidated by {:#x}", value));
  if (aperture_block_ & kApertureByTable)
    mistake_("the aperture still goes through the firmware's table");
  invalidating_ = 3;
  ++invalidates;
  if (firmware_) firmware_->channels().read_tables();
}

bool GpuFunction::read_table(bool video, uint64_t address, uint64_t& entry) const {
  if (video && address > options_.video_bytes - 8) return false;
  const std::byte* const at = video ? video_.data() + address : memory_->at(address, 8);
  if (at) std::memcpy(&entry, at, sizeof entry);
  return at != nullptr;
}

intptr_t GpuFunction::map(size_t bar, uint64_t offset, size_t size_bytes, int protection) {
  if (bar == 1 && offset == 0 && size_bytes <= options_.video_bytes)
    return video_.map_at(nullptr, size_bytes, protection, MAP_SHARED);
  if (bar == 0 && offset == kUsermode && size_bytes <= os::nvrm::kUsermodeBytes)
    return objects_.engines().doorbells(0).map_at(nullptr, size_bytes, protection, MAP_SHARED);
  if (bar != 0 || offset != kRom || size_bytes > kRomBytes) return -EINVAL;
  return rom_.map_at(nullptr, size_bytes, protection & PROT_READ, MAP_SHARED);
}

// ---- signed programs

// As a boot ROM, which is told where the signature lies, for whom, and by what number.
bool GpuFunction::takes(const FalconModel& falcon, const SignedProgram& p) const {
  const uint32_t signature = falcon.get(0x1210);
  const auto has = [](const std::vector<uint8_t>& memory, size_t at,
                      const std::vector<uint8_t>& bytes) {
    return at <= memory.size() && bytes.size() <= memory.size() - at &&
           std::equal(bytes.begin(), bytes.end(), memory.begin() + ptrdiff_t(at));
  };
  return has(falcon.code, p.physical, p.code) && has(falcon.data, signature, p.signature) &&
         falcon.get(0x119c) == p.engine_mask && falcon.get(0x1198) == p.ucode_id &&
         falcon.get(0x104) == p.entry;
}

uint64_t GpuFunction::mailboxes(const FalconModel& falcon) {
  return uint64_t{falcon.get(0x44)} << 32 | falcon.get(0x40);
}

// A program that is not taken never halts.
bool GpuFunction::run_fwsec(FalconModel& falcon) {
  if (!takes(falcon, options_.fwsec))
    return mistake_("the GSP's falcon takes no such program"), false;
  const std::vector<uint8_t>& data = falcon.data;
  const uint32_t head = word_in(data, options_.fwsec_interfaces);
  const uint32_t header = head >> 8 & 0xff, entry = head >> 16 & 0xff, count = head >> 24;
  uint32_t mapper = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = options_.fwsec_interfaces + header + i * entry;
    if (word_in(data, at) == 4) mapper = word_in(data, at + 4);
  }
  const uint32_t command = word_in(data, mapper + 44), place = word_in(data, mapper + 8);
  std::vector<uint32_t> arguments;
  for (uint32_t i = 0; i < (command == 0x15 ? 11u : 6u); ++i)
    arguments.push_back(word_in(data, place + 4 * i));
  if (std::vector(arguments.begin(), arguments.begin() + 6) !=
      std::vector<uint32_t>{1, 24, 0, 0, 0, 2})
    mistake_("FWSEC is told of another VBIOS");
  if (command == 0x15) protect(arguments);
  else if (command == 0x19) sb_scratch_ = options_.sb_error;
  else mistake_(fmt::format("FWSEC is given command {:#x}", command));
  return true;
}

void GpuFunction::protect(const std::vector<uint32_t>& arguments) {
  if (arguments[6] != 1 || arguments[7] != 20 || arguments[9] != 0x100 || arguments[10] != 2)
    mistake_("FWSEC is told of another region");
  if (is_protected()) mistake_("memory is protected twice");
  frts_scratch_ = options_.frts_error << 16;
  if (options_.frts_error) return;
  protected_begin_ = uint64_t{arguments[8]} << 12;
  protected_end_ = protected_begin_ + kFrtsBytes;
  if (protected_end_ > options_.video_bytes) mistake_("a region beyond video memory");
}

bool GpuFunction::run_booter(FalconModel& falcon) {
  uint32_t error = options_.booter_error;
  if (booted_ && takes(falcon, options_.load)) {  // started again: the firmware goes on
    if (!gsp_->riscv_chosen || !firmware_) mistake_("nothing is there to be resumed");
    gsp_->riscv = handed_off_ = true;
    falcon.write(0x40, 0);
    if (firmware_) firmware_->resume();
    return true;
  }
  if (takes(falcon, options_.load)) {
    if (!error) error = load_firmware(mailboxes(falcon));
  } else if (takes(falcon, options_.unload)) {
    if (!error) error = unload_firmware();
  } else {
    return mistake_("SEC2 takes no such program"), false;
  }
  falcon.write(0x40, error);
  return true;
}

uint32_t GpuFunction::load_firmware(uint64_t description) {
  if (!is_protected()) return mistake_("a booter before FWSEC"), 1;
  const BootedFirmware booted =
      boot_firmware(*memory_, description, options_.files, options_.video_bytes, protected_begin_,
                    protected_end_);
  if (!booted.refusal.empty()) return mistake_("the booter finds " + booted.refusal), 2;
  if (!gsp_->riscv_chosen) return mistake_("the GSP's core is not chosen"), 3;
  protected_begin_ = booted.protected_begin;
  world_.host_end = booted.host_end;
  gsp_->riscv = booted_ = true;
  aperture_block_ = kApertureByTable;  // the firmware has one of its own
  firmware_ = std::make_unique<GspFirmware>(world_, mailboxes(*gsp_));
  return 0;
}

std::optional<uint32_t> GpuFunction::read_of_fsp(uint64_t offset) {
  if (!fsp_) return std::nullopt;
  if (offset == options_.fsp_ready) {
    if (own_start_reads_ > 0) --own_start_reads_;
    return own_start_reads_ == 0 ? 0xff : 0;
  }
  const bool inside = offset >= FspModel::kFirst && offset < FspModel::kEnd;
  return inside ? std::optional(fsp_->read(offset)) : std::nullopt;
}

// The GSP's first program runs after FSP has answered; what it finds wrong is in a mailbox.
uint32_t GpuFunction::take_message(uint32_t kind, const std::vector<uint32_t>& payload) {
  if (kind != 0x14) return mistake_(fmt::format("FSP is sent message {:#x}", kind)), 1;
  if (own_start_reads_ > 0) mistake_("FSP is sent a message before it is ready");
  const FspRequest request = read_request(*memory_, payload, *options_.fmc);
  if (!request.refusal.empty()) return mistake_("FSP finds " + request.refusal), 2;
  if (is_protected()) return mistake_("FSP is to start what runs"), 3;
  uint32_t error = options_.booter_error;
  const BootedFirmware booted = place_firmware(*memory_, request.description, options_.files,
                                               options_.video_bytes, request.end_bytes);
  if (!booted.refusal.empty()) mistake_("the first program finds " + booted.refusal), error = 4;
  gsp_->start_elsewhere(request.arguments, error);
  if (error != 0) return 0;
  protected_begin_ = booted.protected_begin;
  protected_end_ = booted.protected_end;
  world_.host_end = booted.host_end;
  aperture_block_ = kApertureByTable;
  firmware_ = std::make_unique<GspFirmware>(world_, request.libos_arguments);
  return 0;
}

uint32_t GpuFunction::unload_firmware() {
  if (mailboxes(*sec2_) != 0x000000ff000000ff) mistake_("a booter with another argument");
  if (!firmware_ || !firmware_->has_ended()) return mistake_("a booter ends what still runs"), 4;
  firmware_.reset();
  protected_begin_ = protected_end_ = 0;
  handed_off_ = booted_ = false;
  return 0;
}

}  // namespace tuff::emu::nv
