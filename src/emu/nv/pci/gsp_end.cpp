#include "emu/nv/pci/gsp_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tuff::emu::nv {
namespace {

constexpr uint32_t kPage = 0x1000, kRingPages = 64, kSlots = 63, kFirstStatusPage = 1 + kRingPages;
constexpr uint32_t kRecordPages = 16, kBefore = 0x30, kBoth = 0x50;
constexpr uint32_t kContinues = 0x47;

uint32_t word(const std::vector<uint8_t>& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

// All words of 32 bits, since a sum of halves of 64 is a sum of words.
uint32_t folded(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) sum ^= uint32_t(bytes[i]) << 8 * (i % 4);
  return sum;
}

}  // namespace

GspEnd::GspEnd(Page page, uint64_t table, std::function<void(const std::string&)> mistake)
    : page_(std::move(page)), table_(table), mistake_(std::move(mistake)) {}

// Pages are where the table says; the first is the table itself.
std::byte* GspEnd::ring(bool status, uint32_t page) const {
  const uint32_t number = (status ? kFirstStatusPage : 1) + page;
  uint64_t address = 0;
  if (const std::byte* table = page_(table_)) std::memcpy(&address, table + 8 * number, 8);
  return address % kPage ? nullptr : page_(address);
}

uint32_t GspEnd::get(bool status, uint32_t offset) const {
  uint32_t value = ~0u;
  if (const std::byte* at = ring(status, 0)) std::memcpy(&value, at + offset, 4);
  return value;
}

void GspEnd::set(bool status, uint32_t offset, uint32_t value) const {
  if (std::byte* at = ring(status, 0)) std::memcpy(at + offset, &value, 4);
}

void GspEnd::start() {
  const uint32_t wanted[] = {0, kRingPages * kPage, kPage, kSlots};
  for (uint32_t i = 0; i < 4; ++i)
    if (get(false, 4 * i) != wanted[i])
      mistake_(fmt::format("word {} of the ring of commands is {:#x}", i, get(false, 4 * i)));
  if (get(false, 20) != 1 || get(false, 24) != 32 || get(false, 28) != kPage)
    mistake_("the ring of commands has another place for its entries");
  for (uint32_t i = 0; i < 4; ++i) set(true, 4 * i, wanted[i]);
  set(true, 16, 0);
  set(true, 20, 1);
  set(true, 24, 32);
  set(true, 28, kPage);
}

bool GspEnd::take_record(uint32_t& function, std::vector<uint8_t>& payload) {
  const uint32_t written = get(false, 16);
  if (written >= kSlots) return mistake_(fmt::format("commands end at page {}", written)), false;
  const uint32_t there = (written + kSlots - taken_) % kSlots;
  if (there == 0) return false;
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < std::min(there, kRecordPages); ++i) {
    const auto* at = reinterpret_cast<const uint8_t*>(ring(false, 1 + (taken_ + i) % kSlots));
    if (!at) return mistake_("a page of commands is not there"), false;
    bytes.insert(bytes.end(), at, at + kPage);
  }
  const uint32_t pages = word(bytes, 40), length = word(bytes, 56);
  taken_ = (taken_ + std::clamp(pages, 1u, there)) % kSlots;
  set(true, 32, taken_);
  const uint64_t size = uint64_t(kBefore) + length;
  if (size < kBoth || pages != (size + kPage - 1) / kPage || size > bytes.size())
    return mistake_(fmt::format("a command of {} bytes in {} pages", size, pages)), false;
  const bool padded = std::all_of(bytes.begin() + int64_t(size), bytes.begin() + pages * kPage,
                                  [](uint8_t b) { return b == 0; });
  bytes.resize(size);
  if (folded(bytes) != 0) return mistake_("a command's checksum is wrong"), false;
  if (!padded) return mistake_("a command's last page is not filled up with zeros"), false;
  if (word(bytes, 36) != sequence_in_)
    return mistake_(fmt::format("command {} where {} was to come", word(bytes, 36), sequence_in_)),
           false;
  ++sequence_in_;
  if (word(bytes, 48) != 3u << 24 || word(bytes, 52) != 0x43505256 || word(bytes, 64) != ~0u)
    return mistake_("a call's version, signature or result"), false;
  function = word(bytes, 60);
  payload.assign(bytes.begin() + kBoth, bytes.end());
  return true;
}

std::optional<GspCommand> GspEnd::take() {
  uint32_t function = 0;
  std::vector<uint8_t> payload;
  while (take_record(function, payload)) {
    if (function != kContinues) {
      if (partial_) mistake_("a command begins where records of another are missing");
      partial_ = GspCommand{function, payload};
      partial_bytes_ = whole_bytes ? whole_bytes(*partial_) : payload.size();
    } else if (!partial_) {
      mistake_("a record continues nothing");
      continue;
    } else {
      partial_->payload.insert(partial_->payload.end(), payload.begin(), payload.end());
    }
    if (partial_->payload.size() >= partial_bytes_) return std::exchange(partial_, std::nullopt);
  }
  return std::nullopt;
}

bool GspEnd::put_record(uint32_t function, uint32_t result, const uint8_t* payload, size_t bytes) {
  std::vector<uint8_t> record(kBoth + bytes);
  const auto put = [&](size_t at, uint32_t value) { std::memcpy(record.data() + at, &value, 4); };
  const auto pages = uint32_t((record.size() + kPage - 1) / kPage);
  const uint32_t read = get(false, 32);
  if (read >= kSlots) return mistake_(fmt::format("answers are read to page {}", read)), false;
  if ((read + kSlots - put_ - 1) % kSlots < pages) return false;
  put(36, sequence_out_++);
  put(40, pages);
  put(48, 3u << 24);
  put(52, 0x43505256);
  put(56, uint32_t(record.size() - kBefore));
  put(60, function);
  put(64, result);
  put(68, result);
  if (bytes) std::memcpy(record.data() + kBoth, payload, bytes);
  put(32, folded(record));
  for (uint32_t i = 0; i < pages; ++i) {
    std::byte* const at = ring(true, 1 + (put_ + i) % kSlots);
    const size_t left = record.size() - i * kPage;
    if (at) std::memcpy(at, record.data() + i * kPage, std::min<size_t>(kPage, left));
  }
  put_ = (put_ + pages) % kSlots;
  set(true, 16, put_);
  return true;
}

bool GspEnd::answer(uint32_t function, uint32_t result, const std::vector<uint8_t>& payload) {
  constexpr size_t most = kRecordPages * kPage - kBoth;
  for (size_t done = 0; done == 0 || done < payload.size(); done += most) {
    const size_t bytes = std::min(most, payload.size() - done);
    if (!put_record(done ? kContinues : function, result, payload.data() + done, bytes))
      return false;
  }
  return true;
}

}  // namespace tuff::emu::nv
