#include "emu/memory/operations.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tuff::emu {
namespace {

constexpr size_t kNamesKept = 4096;

}  // namespace

OpId Operations::begin(uint32_t slot, const std::string& name) {
  const OpId op = op_id(tick(), slot);
  names_.emplace_back(op, name);
  if (names_.size() > kNamesKept) names_.pop_front();
  return op;
}

void Operations::restart() {
  serial_ = 0;
  released_.restart();
  signals_.clear();
  names_.clear();
}

uint32_t Operations::take_slot() {
  TUFF_CHECK(~slots_, "emulated GPU {}: more than {} queues", index, (kSlots - 1) / 3);
  const uint32_t slot = uint32_t(std::countr_one(slots_));
  slots_ |= 1ull << slot;
  return slot;
}

// The destroyer of a queue knows that it stands still.
void Operations::give_slot(uint32_t slot) {
  slots_ &= ~(1ull << slot);
  released_.add(op_id(serial_, slot));
}

void Operations::signalled(uint64_t address, uint64_t value, const Order& order) {
  signals_[address] = {uint32_t(value), order};
  released_.join(order);
}

const Order& Operations::learned(uint64_t address, uint32_t value) const {
  const auto found = signals_.find(address);
  return found != signals_.end() && found->second.value == value ? found->second.order : released_;
}

std::string Operations::name_of(OpId op) const {
  const auto found = std::lower_bound(
      names_.begin(), names_.end(), op,
      [](const auto& entry, OpId id) { return serial_of(entry.first) < serial_of(id); });
  return found != names_.end() && found->first == op ? found->second : "an earlier operation";
}

std::string Operations::describe(const Accessor& who, const Request& request, const Conflict& c,
                                 const char* cache) const {
  return describe(who, request, c, cache, name_of(c.other));
}

std::string Operations::describe(const Accessor& who, const Request& request, const Conflict& c,
                                 const char* cache, const std::string& other) {
  const char* verb = request.write ? (request.read ? "updates" : "writes") : "reads";
  switch (c.kind) {
    case Conflict::Kind::Concurrent:
      return fmt::format("{} {} what {} {}, which nothing waits for between the two", who.name,
                         verb, other, c.other_writes ? "writes" : "reads");
    case Conflict::Kind::Unseen:
      return fmt::format("{} {} what {} wrote, and the {} was not invalidated between the two",
                         who.name, verb, other, cache);
    default:
      return fmt::format(
          "{} {} what has changed in memory since the {} fetched it and was last invalidated",
          who.name, verb, cache);
  }
}

}  // namespace tuff::emu
