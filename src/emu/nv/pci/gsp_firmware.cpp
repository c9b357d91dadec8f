#include "emu/nv/pci/gsp_firmware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tuff::emu::nv {
namespace {

using nvrm::Status;
using Payload = std::vector<uint8_t>;

constexpr uint64_t kArgumentPage = 4096;
constexpr uint64_t kFile = 1;  // that its clients belong to
constexpr uint32_t kResumeCore = 8;
constexpr uint32_t kStaticGraphicsFacts = 0x20800a2a, kFactsOfAnEngine = 0x3a, kEngines = 8;

template <class T>
T payload_value(const Payload& bytes, size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
void put_value(Payload& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

uint64_t id_of(const char* name) {
  uint64_t id = 0;
  for (; *name; ++name) id = id << 8 | uint8_t(*name);
  return id;
}

}  // namespace

GspFirmware::GspFirmware(const World& world, uint64_t arguments)
    : world_(world),
      channels_(world.objects, world.memory, world.physical, world.host_end,
                [this](uint32_t event, const Payload& payload) {
                  if (end_ && ready_ && !ended_ && !end_->answer(event, 0, payload))
                    world_.mistake("there is no room for an event");
                }) {
  const auto queues = read_arguments(arguments);
  if (!queues) {
    world_.mistake("the GSP was given no queues");
    return;
  }
  end_.emplace([this](uint64_t address) { return host(address, kArgumentPage); }, *queues,
               world_.mistake);
  end_->whole_bytes = [](const GspCommand& first) -> uint64_t {
    if (first.function == 103) return 32 + uint64_t{payload_value<uint32_t>(first.payload, 20)};
    if (first.function == 76) return 24 + uint64_t{payload_value<uint32_t>(first.payload, 16)};
    return first.payload.size();
  };
  end_->start();
  ring();
}

GspFirmware::~GspFirmware() { world_.objects.free_clients(kFile); }

std::byte* GspFirmware::host(uint64_t address, uint64_t size_bytes) const {
  return world_.memory.at(address, size_bytes);
}

// ---- what it is started with

// Named ranges up to one without a name: logs, and the resource manager's own arguments.
std::optional<uint64_t> GspFirmware::read_arguments(uint64_t arguments) {
  constexpr uint64_t entry_bytes = 32;
  std::optional<uint64_t> queues;
  uint32_t logs = 0;
  for (uint64_t i = 0; i < kArgumentPage / entry_bytes; ++i) {
    const std::byte* const entry = host(arguments + i * entry_bytes, entry_bytes);
    if (!entry) return std::nullopt;
    uint64_t words[4];
    std::memcpy(words, entry, sizeof words);
    if (words[0] == 0) break;
    if (words[3] != 0x101) world_.mistake("a range that is not contiguous in the host's memory");
    if (words[0] == id_of("RMARGS")) queues = queues_of(words[1]);
    else if (++logs, i == 0 && words[0] != id_of("LOGINIT")) world_.mistake("another first log");
    else check_log(words[1], words[2]);
  }
  if (logs != 5) world_.mistake(fmt::format("{} logs", logs));
  return queues;
}

uint64_t GspFirmware::queues_of(uint64_t address) {
  const std::byte* const at = host(address, 72);
  if (!at) return 0;
  uint64_t words[9];
  std::memcpy(words, at, sizeof words);
  if (words[1] != 129 || words[2] != 0x1000 || words[3] != 0x41000)
    world_.mistake("queues of another shape");
  if (words[4] || words[5] || words[7] || words[8]) world_.mistake("a start that is none");
  return words[0];
}

void GspFirmware::check_log(uint64_t address, uint64_t size_bytes) {
  for (uint64_t page = 0; page < size_bytes / kArgumentPage; ++page) {
    const std::byte* const at = host(address + 8 * (1 + page), 8);
    uint64_t entry = 0;
    if (at) std::memcpy(&entry, at, sizeof entry);
    if (!at || entry != address + page * kArgumentPage)
      return world_.mistake("a log without its pages");
  }
}

// ---- until it is ready

void GspFirmware::take_startup(const GspCommand& c) {
  constexpr uint32_t wanted[] = {72, 73};
  if (c.function != wanted[startup_])
    world_.mistake(fmt::format("message {} before the GSP is ready", c.function));
  if (c.function == 72 && c.payload.size() != 928) world_.mistake("another system info");
  if (c.function == 73 && payload_value<uint32_t>(c.payload, 0) != c.payload.size())
    world_.mistake("a registry of another size");
  ++startup_;
}

// One sequence after another; what follows one that resumes the core waits for that.
void GspFirmware::go_on() {
  while (!ready_ && !suspended_ && startup_ == 2) {
    if (next_sequence_ == world_.sequences.size()) {
      ready_ = true;
      end_->answer(0x1001, 0, {});
      return;
    }
    const std::vector<uint32_t>& commands = world_.sequences[next_sequence_++];
    Payload message(40 + 4 * commands.size());
    put_value(message, 0, uint32_t(commands.size() + 1));
    put_value(message, 4, uint32_t(commands.size()));
    if (!commands.empty())
      std::memcpy(message.data() + 40, commands.data(), 4 * commands.size());
    suspended_ = !commands.empty() && commands.back() == kResumeCore;
    end_->answer(0x1002, 0, message);
  }
}

void GspFirmware::resume() {
  if (!suspended_) world_.mistake("the GSP is resumed, and was not suspended");
  suspended_ = false;
  go_on();
}

void GspFirmware::ring() {
  if (!end_ || suspended_) return;
  while (auto command = end_->take()) {
    if (ended_) world_.mistake("a call after the firmware has ended");
    else if (startup_ < 2) take_startup(*command);
    else answer(*command);
  }
  go_on();
}

// ---- calls

void GspFirmware::answer(const GspCommand& command) {
  Payload payload = command.payload;
  uint32_t result = 0;
  switch (command.function) {
    case 10: result = free(payload); break;
    case 47: ended_ = true; break;
    case 54: result = set_directory(payload, true); break;
    case 79: result = set_directory(payload, false); break;
    case 65: fill_static_info(payload); break;
    case 76: put_value(payload, 12, control(payload)); break;
    case 103: put_value(payload, 16, alloc(payload)); break;
    default:
      world_.mistake(fmt::format("a call of function {}", command.function));
      result = uint32_t(Status::NotSupported);
  }
  if (!end_->answer(command.function, result, payload))
    world_.mistake("there is no room for an answer");
}

uint32_t GspFirmware::refused(const RmRefused& why) const {
  if (why.mistake) world_.mistake(fmt::format("{:#x}: {}", uint32_t(why.status), why.why));
  return uint32_t(why.status);
}

// Of a token for GB20x, which the kernel driver makes itself.
void GspFirmware::leave_out_bit(std::span<std::byte> parameters) {
  nvrm::SubmitToken token;
  std::memcpy(&token, parameters.data(), sizeof token);
  token.token &= ~nvrm::kRunlistDoorbell;
  std::memcpy(parameters.data(), &token, sizeof token);
}

uint32_t GspFirmware::alloc(Payload& payload) {
  nvrm::Alloc a{};
  a.client = payload_value<uint32_t>(payload, 0);
  a.parent = payload_value<uint32_t>(payload, 4);
  a.object = payload_value<uint32_t>(payload, 8);
  a.object_class = payload_value<uint32_t>(payload, 12);
  const std::span<std::byte> parameters = std::as_writable_bytes(std::span(payload)).subspan(32);
  try {
    const uint32_t wanted = world_.objects.parameter_bytes(a.object_class);
    if (parameters.size() != payload_value<uint32_t>(payload, 20) || parameters.size() != wanted)
      refuse_rm(Status::InvalidParamStruct, "class {:#x} with {} bytes, {} are wanted",
                a.object_class, parameters.size(), wanted);
    world_.objects.alloc(kFile, a, parameters);
    return 0;
  } catch (const RmRefused& why) {
    return refused(why);
  }
}

uint32_t GspFirmware::control(Payload& payload) {
  nvrm::Control c{};
  c.client = payload_value<uint32_t>(payload, 0);
  c.object = payload_value<uint32_t>(payload, 4);
  c.command = payload_value<uint32_t>(payload, 8);
  const std::span<std::byte> parameters = std::as_writable_bytes(std::span(payload)).subspan(24);
  try {
    if (parameters.size() != payload_value<uint32_t>(payload, 16))
      refuse_rm(Status::InvalidParamStruct, "control {:#x} of another size", c.command);
    if (c.command == kStaticGraphicsFacts) {
      world_.objects.find(c.client, c.object, nvrm::object::Subdevice);
      if (parameters.size() != kEngines * kFactsOfAnEngine * sizeof(nvrm::InfoEntry))
        refuse_rm(Status::InvalidParamStruct, "facts of engines in {} bytes", parameters.size());
      fill_graphics_facts(parameters);
      return 0;
    }
    if (c.command == nvrm::control::GrGetInfo)
      refuse_rm(Status::InvalidCommand, "a control whose parameters name memory of a process");
    if (channels_.control(c, parameters)) return 0;
    std::vector<nvrm::InfoEntry> none;
    world_.objects.control(c, parameters, none);
    if (c.command == nvrm::control::GetSubmitToken) leave_out_bit(parameters);
    return 0;
  } catch (const RmRefused& why) {
    return refused(why);
  }
}

std::optional<uint64_t> GspFirmware::directory(nvrm::Handle space) const {
  const TableMappings* const table = channels_.table(space);
  return table ? std::optional(table->root()) : std::nullopt;
}

// Client, device, process, then at 16 the root with its entries and flags, or at 12 the space.
uint32_t GspFirmware::set_directory(const Payload& payload, bool set) {
  try {
    const auto client = payload_value<uint32_t>(payload, 0);
    const auto space = payload_value<uint32_t>(payload, set ? 32 : 12);
    world_.objects.find(client, payload_value<uint32_t>(payload, 4), nvrm::object::Device);
    world_.objects.find(client, space, nvrm::object::VaSpace);
    if (payload.size() != (set ? 48u : 20u) ||
        payload_value<uint32_t>(payload, set ? 40 : 16) != 1)
      refuse_rm(Status::InvalidArgument, "a page directory in {} bytes", payload.size());
    if (!set) return channels_.unset_table(space), 0;
    if (const auto flags = payload_value<uint32_t>(payload, 28); flags != 8)
      refuse_rm(Status::InvalidArgument, "a page directory with flags {:#x}", flags);
    channels_.set_table(client, space, payload_value<uint64_t>(payload, 16),
                        payload_value<uint32_t>(payload, 24));
    return 0;
  } catch (const RmRefused& why) {
    return refused(why);
  }
}

uint32_t GspFirmware::free(const Payload& payload) {
  try {
    channels_.before_free(payload_value<uint32_t>(payload, 8));
    world_.objects.free(payload_value<uint32_t>(payload, 0), payload_value<uint32_t>(payload, 8));
    return 0;
  } catch (const RmRefused& why) {
    return refused(why);
  }
}

// ---- what it says of the GPU

void GspFirmware::fill_static_info(Payload& payload) const {
  constexpr size_t gid = 24, memory = 1224, l2 = 1256, name = 1260, name_bytes = 64;
  if (payload.size() < 1656) return world_.mistake("static info has more bytes");
  const nvrm::Uuid uuid = world_.objects.uuid_of(0);
  put_value(payload, gid + 4, nvrm::kGidBinary);
  put_value(payload, gid + 8, uint32_t(uuid.size()));
  std::copy(uuid.begin(), uuid.end(), payload.begin() + gid + 12);
  put_value(payload, memory, world_.video_bytes);
  fill_regions(payload);
  put_value(payload, l2, uint32_t(world_.objects.chip().l2_bytes));
  std::snprintf(reinterpret_cast<char*>(payload.data() + name), name_bytes, "%s",
                world_.objects.chip().name);
}

// What is below the firmware is for the host, the rest is not.
void GspFirmware::fill_regions(Payload& payload) const {
  constexpr size_t count = 344, first = 352, region_bytes = 48;
  put_value(payload, count, uint32_t{2});
  put_value(payload, first, world_.host_end);
  put_value(payload, first + 8, world_.video_bytes - 1);
  put_value(payload, first + 16, world_.video_bytes - world_.host_end);
  put_value(payload, first + region_bytes, uint64_t{0});
  put_value(payload, first + region_bytes + 8, world_.host_end - 1);
}

// By engine and index; of the first engine alone.
void GspFirmware::fill_graphics_facts(std::span<std::byte> parameters) const {
  const ChipKind& chip = world_.objects.chip();
  const nvrm::InfoEntry facts[] = {
      {nvrm::gr_info::SmVersion, chip.sass_version >> 4 << 8 | (chip.sass_version & 0xf)},
      {nvrm::gr_info::WarpsPerSm, chip.warps_per_sm},
      {nvrm::gr_info::Gpcs, chip.gpcs},
      {nvrm::gr_info::TpcsPerGpc, chip.tpcs_per_gpc},
      {nvrm::gr_info::SmsPerTpc, chip.sms_per_tpc}};
  for (const nvrm::InfoEntry& fact : facts)
    std::memcpy(parameters.data() + fact.index * sizeof fact, &fact, sizeof fact);
}

}  // namespace tuff::emu::nv
