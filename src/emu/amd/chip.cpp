#include "emu/amd/chip.h"

#include <bit>

#include "base/check.h"

namespace tuff::emu::amd {
namespace {

constexpr size_t kNamesKept = 4096;

const char* cache_of(Path path) {
  switch (path) {
    case Path::Vector: return "L0 or L1 (GLV_INV, GL1_INV)";
    case Path::Scalar: return "scalar cache or L1 (GLK_INV, GL1_INV)";
    case Path::Code: return "instruction cache or L1 (GLI_INV, GL1_INV)";
    case Path::L2: break;
  }
  return "L2";
}

}  // namespace

OpId Chip::begin(uint32_t slot, const std::string& name) {
  const OpId op = op_id(tick(), slot);
  names_.emplace_back(op, name);
  if (names_.size() > kNamesKept) names_.pop_front();
  return op;
}

void Chip::restart_serials() {
  caches.clear();
  code.invalidate();
  serial_ = 0;
  released_ = {};
  signals_.clear();
  names_.clear();
}

uint32_t Chip::take_slot() {
  TUFF_CHECK(~slots_, "emulated GPU {}: more than {} queues", index, (kSlots - 1) / 3);
  const uint32_t slot = uint32_t(std::countr_one(slots_));
  slots_ |= 1ull << slot;
  return slot;
}

// The destroyer of a queue knows that it stands still.
void Chip::give_slot(uint32_t slot) {
  slots_ &= ~(1ull << slot);
  released_.add(op_id(serial_, slot));
}

void Chip::signalled(uint64_t address, uint64_t value, const Order& order) {
  signals_[address] = {uint32_t(value), order};
  released_.join(order);
}

const Order& Chip::learned(uint64_t address, uint32_t value) const {
  const auto found = signals_.find(address);
  return found != signals_.end() && found->second.value == value ? found->second.order : released_;
}

void Chip::report(FindingKind kind, uint32_t queue, uint64_t address, std::string what) {
  events.report({kind, index, queue, address, std::move(what)});
}

std::string Chip::name_of(OpId op) const {
  const auto found = std::lower_bound(
      names_.begin(), names_.end(), op,
      [](const auto& entry, OpId id) { return serial_of(entry.first) < serial_of(id); });
  return found != names_.end() && found->first == op ? found->second : "an earlier operation";
}

std::string Chip::describe(const Accessor& who, const Request& request, const Conflict& c) const {
  const char* verb = request.write ? (request.read ? "updates" : "writes") : "reads";
  switch (c.kind) {
    case Conflict::Kind::Concurrent:
      return fmt::format("{} {} what {} {}, which nothing waits for between the two", who.name,
                         verb, name_of(c.other), c.other_writes ? "writes" : "reads");
    case Conflict::Kind::Unseen:
      return fmt::format("{} {} what {} wrote, and the {} was not invalidated between the two",
                         who.name, verb, name_of(c.other), cache_of(request.path));
    default:
      return fmt::format(
          "{} {} what has changed in memory since the {} fetched it and was last invalidated",
          who.name, verb, cache_of(request.path));
  }
}

void Chip::report(const Accessor& who, const Request& request, const Conflict& conflict) {
  std::string what = describe(who, request, conflict);
  if (!reported_.insert(what).second) return;
  report(conflict.kind == Conflict::Kind::Concurrent ? FindingKind::ConcurrentUse
                                                     : FindingKind::StaleData,
         who.queue, conflict.address, std::move(what));
}

}  // namespace tuff::emu::amd
