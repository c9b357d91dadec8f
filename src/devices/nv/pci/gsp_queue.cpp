#include "devices/nv/pci/gsp_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::devices::nv {
namespace {

// Offsets in a ring's first page: what its writer says of it, and how far its writer has read the
// other ring.
enum Header : size_t {
  kVersion = 0,
  kSize = 4,
  kEntryBytes = 8,
  kEntryCount = 12,
  kWritten = 16,
  kFlags = 20,
  kReadOffset = 24,
  kFirstEntry = 28,
  kRead = 32,
};
constexpr uint32_t kCount = GspQueues::kQueueBytes / GspQueues::kPageBytes - 1;
constexpr uint32_t kSwapsRead = 1;  // flag: `kRead` is of the other ring

// A record's header, then that of the call: version, signature, bytes with this header, function,
// result, result again, sequence, a guest's number.
struct RecordHeader {
  uint8_t authentication[32];  // of confidential computing, else zero
  uint32_t checksum, sequence, pages, padding;
  uint32_t version, signature, length, function, result, private_result, call_sequence, guest;
};
static_assert(sizeof(RecordHeader) == 80);
constexpr size_t kCallHeader = 48;
constexpr uint32_t kHeaderVersion = 3u << 24, kSignature = 0x43505256, kPending = ~0u;

// Of whole words of 64 bits, the last filled up with zeros; with its checksum a record has 0.
uint32_t checksum(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    sum ^= word;
  }
  return uint32_t(sum >> 32) ^ uint32_t(sum);
}

}  // namespace

GspQueues::GspQueues(std::span<std::byte> memory, uint64_t address, std::function<void()> ring,
                     uint64_t timeout_ms)
    : memory_(memory), ring_(std::move(ring)), timeout_ms_(timeout_ms) {
  TUFF_CHECK(memory.size() == kBytes && address % kPageBytes == 0);
  for (size_t i = 0; i < kPages; ++i) {
    const uint64_t page = address + i * kPageBytes;
    std::memcpy(at(8 * i), &page, sizeof page);
  }
  const auto put = [&](Header field, uint32_t value) { store(kCommands + field, value); };
  put(kSize, kQueueBytes);
  put(kEntryBytes, kPageBytes);
  put(kEntryCount, kCount);
  put(kFlags, kSwapsRead);
  put(kReadOffset, kRead);
  put(kFirstEntry, kPageBytes);
}

uint32_t GspQueues::load(size_t offset) const {
  return std::atomic_ref(*reinterpret_cast<uint32_t*>(at(offset)))
      .load(std::memory_order_acquire);
}

void GspQueues::store(size_t offset, uint32_t value) const {
  std::atomic_ref(*reinterpret_cast<uint32_t*>(at(offset)))
      .store(value, std::memory_order_release);
}

void GspQueues::wait_until(const char* what, const std::function<bool()>& done) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  while (!done()) {
    if (Clock::now() >= end)
      fail<DeviceLost>("NV: the GSP did not {} within {} ms", what, timeout_ms_);
    std::this_thread::yield();
  }
}

// The place of the first entry is what it writes last.
void GspQueues::link() {
  wait_until("set up its queue", [&] { return load(kStatus + kFirstEntry) != 0; });
  const auto has = [&](Header field, uint32_t value) { return load(kStatus + field) == value; };
  if (!has(kVersion, 0) || !has(kSize, kQueueBytes) || !has(kEntryBytes, kPageBytes) ||
      !has(kEntryCount, kCount) || !has(kFlags, kSwapsRead) || !has(kReadOffset, kRead) ||
      !has(kFirstEntry, kPageBytes))
    fail<DeviceLost>("NV: the GSP's queue is of another layout than that of firmware 535 to 595");
}

// ---- commands

// One entry stays free, or a full ring would look empty.
uint32_t GspQueues::room() const {
  const uint32_t read = load(kStatus + kRead);
  if (read >= kCount) fail<DeviceLost>("NV: the GSP has read to page {} of {}", read, kCount);
  return (read + kCount - write_ - 1) % kCount;
}

void GspQueues::send_record(uint32_t function, std::span<const uint8_t> payload) {
  std::vector<uint8_t> record(sizeof(RecordHeader) + payload.size());
  RecordHeader h{};
  h.sequence = next_sent_++;
  h.pages = uint32_t(ceil_div(record.size(), kPageBytes));
  h.version = kHeaderVersion;
  h.signature = kSignature;
  h.length = uint32_t(record.size() - kCallHeader);
  h.function = function;
  h.result = h.private_result = kPending;
  std::memcpy(record.data(), &h, sizeof h);
  std::copy(payload.begin(), payload.end(), record.begin() + sizeof h);
  h.checksum = checksum(record);
  std::memcpy(record.data(), &h, sizeof h);
  wait_until("make room for a command", [&] { return room() >= h.pages; });
  for (uint32_t page = 0; page < h.pages; ++page) {
    const size_t from = page * kPageBytes, bytes = std::min(kPageBytes, record.size() - from);
    std::byte* const to = at(kCommands + kPageBytes * (1 + (write_ + page) % kCount));
    std::memcpy(to, record.data() + from, bytes);
    std::memset(to + bytes, 0, kPageBytes - bytes);
  }
  write_ = (write_ + h.pages) % kCount;
  store(kCommands + kWritten, write_);
  ring_();
}

void GspQueues::send(uint32_t function, std::span<const uint8_t> payload) {
  send_record(function, payload.first(std::min(payload.size(), kMostPayload)));
  for (size_t done = kMostPayload; done < payload.size(); done += kMostPayload)
    send_record(kContinuationRecord,
                payload.subspan(done, std::min(kMostPayload, payload.size() - done)));
}

// ---- answers

uint32_t GspQueues::waiting() const {
  const uint32_t written = load(kStatus + kWritten);
  if (written >= kCount) fail<DeviceLost>("NV: the GSP wrote to page {} of {}", written, kCount);
  return (written + kCount - read_) % kCount;
}

std::optional<GspMessage> GspQueues::receive() {
  const uint32_t there = waiting();
  if (there == 0) return std::nullopt;
  const auto page = [&](uint32_t n) {
    return at(kStatus + kPageBytes * (1 + (read_ + n) % kCount));
  };
  // Copied once: what the GSP writes afterwards is not looked at.
  std::vector<uint8_t> record(kPageBytes);
  std::memcpy(record.data(), page(0), kPageBytes);
  RecordHeader h;
  std::memcpy(&h, record.data(), sizeof h);
  const uint64_t bytes = kCallHeader + uint64_t(h.length);
  const uint64_t pages = ceil_div(bytes, kPageBytes);
  if (bytes < sizeof h || bytes > 16 * kPageBytes || h.pages != pages || pages > there)
    fail<DeviceLost>("NV: the GSP sent {} bytes in {} pages, of which {} are there", bytes, h.pages,
                     there);
  record.resize(pages * kPageBytes);
  for (uint32_t n = 1; n < pages; ++n)
    std::memcpy(record.data() + n * kPageBytes, page(n), kPageBytes);
  record.resize(bytes);
  if (checksum(record) != 0 || h.signature != kSignature || h.version != kHeaderVersion)
    fail<DeviceLost>("NV: the GSP sent a record of function {} whose checksum or header is wrong",
                     h.function);
  if (h.sequence != next_received_)
    fail<DeviceLost>("NV: the GSP sent record {} where {} was to come", h.sequence,
                     next_received_);
  ++next_received_;
  read_ = uint32_t((read_ + pages) % kCount);
  store(kCommands + kRead, read_);
  return GspMessage{h.function, h.result, {record.begin() + sizeof h, record.end()}};
}

GspMessage GspQueues::wait_for(uint32_t function, size_t payload_bytes,
                               const std::function<void(const GspMessage&)>& event) {
  std::optional<GspMessage> answer;
  wait_until("answer", [&] {
    std::optional<GspMessage> m = receive();
    if (!m) return false;
    const bool first = !answer && m->function == function;
    const bool more = answer && m->function == kContinuationRecord;
    if (more) answer->payload.insert(answer->payload.end(), m->payload.begin(), m->payload.end());
    if (first) answer = std::move(m);
    if (!first && !more) event(*m);
    return answer && (answer->payload.size() >= payload_bytes || answer->result != 0);
  });
  return *std::move(answer);
}

}  // namespace tuff::devices::nv
