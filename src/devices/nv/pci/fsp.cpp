#include "devices/nv/pci/fsp.h"

#include <cstring>
#include <thread>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::devices::nv {
namespace {

// Of the channel that the host has, in BAR 0.
enum FspRegister : uint64_t {
  kWindow = 0x8f2ac0,  // where in memory the next word is
  kWindowData = 0x8f2ac4,
  kSentHead = 0x8f2c00,  // the host's packet: first and last word; equal once it was taken
  kSentTail = 0x8f2c04,
  kAnsweredHead = 0x8f2c80,  // likewise, of FSP's
  kAnsweredTail = 0x8f2c84,
};
constexpr uint32_t kWrites = 1u << 24, kReads = 1u << 25;  // the place moves on with each
constexpr uint32_t kFspReady = 0xff;
constexpr size_t kPacketWords = 1024 / sizeof(uint32_t), kHeaders = 2, kAnswerWords = kHeaders + 3;

// A packet is a message of its own: first and last, without a sequence.
constexpr uint32_t kOnlyPacket = 3u << 30;
constexpr uint32_t kFromVendor = 0x7e, kNvidiaVendor = 0x10de;

constexpr uint32_t message_header(FspMessage kind) {
  return kFromVendor | kNvidiaVendor << 8 | uint32_t(kind) << 24;
}

// Blocks have 64 words.
uint32_t window_place(uint32_t window) { return (window >> 8 & 0xff) * 64 + (window >> 2 & 0x3f); }

}  // namespace

void Fsp::wait_for(const char* what, uint64_t offset, uint32_t value) const {
  const AwaitedRegister r = wait_for_register(device_, 0, offset, ~0u, value,
                                              std::chrono::milliseconds(timeout_ms_));
  if (!r.arrived)
    fail<DeviceLost>("{}: FSP did not {} within {} ms (register {:#x} has {:#x})",
                     device_.function().address, what, timeout_ms_, offset, r.seen);
}

void Fsp::wait_until_ready() const { wait_for("end its own start", ready_register_, kFspReady); }

bool Fsp::is_idle() const {
  return device_.read(0, kSentHead) == device_.read(0, kSentTail) &&
         device_.read(0, kAnsweredHead) == device_.read(0, kAnsweredTail);
}

void Fsp::write_window(std::span<const uint32_t> words) const {
  device_.write(0, kWindow, kWrites);
  for (const uint32_t word : words) device_.write(0, kWindowData, word);
  if (window_place(device_.read(0, kWindow)) != words.size())
    fail<DeviceLost>("{}: FSP's memory did not take {} words", device_.function().address,
                     words.size());
}

std::vector<uint32_t> Fsp::read_window(size_t words) const {
  device_.write(0, kWindow, kReads);
  std::vector<uint32_t> read(words);
  for (uint32_t& word : read) word = device_.read(0, kWindowData);
  return read;
}

std::vector<uint32_t> Fsp::wait_for_answer() const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  for (;;) {
    const bool late = Clock::now() >= end;
    const uint32_t head = device_.read(0, kAnsweredHead), tail = device_.read(0, kAnsweredTail);
    if (head != tail) {
      const uint32_t words = (tail - head) / sizeof(uint32_t) + 1;
      if (words > kPacketWords || (tail - head) % sizeof(uint32_t))
        fail<DeviceLost>("{}: FSP answered from {:#x} to {:#x}", device_.function().address, head,
                         tail);
      std::vector<uint32_t> answer = read_window(words);
      device_.write(0, kAnsweredTail, head);  // taken
      device_.write(0, kAnsweredHead, head);
      return answer;
    }
    if (late)
      fail<DeviceLost>("{}: FSP did not answer within {} ms", device_.function().address,
                       timeout_ms_);
    std::this_thread::yield();
  }
}

// The head is written last: that tells FSP.
void Fsp::call(FspMessage kind, std::span<const uint8_t> payload) const {
  TUFF_CHECK(payload.size() <= kMostPayload);
  std::vector<uint32_t> packet(kHeaders + ceil_div(payload.size(), sizeof(uint32_t)));
  packet[0] = kOnlyPacket;
  packet[1] = message_header(kind);
  if (!payload.empty()) std::memcpy(packet.data() + kHeaders, payload.data(), payload.size());
  wait_for("take the packet before", kSentHead, device_.read(0, kSentTail));
  write_window(packet);
  device_.write(0, kSentTail, uint32_t((packet.size() - 1) * sizeof(uint32_t)));
  device_.write(0, kSentHead, 0);
  // Headers, the number of a task, the kind of what is answered, an error.
  const std::vector<uint32_t> answer = wait_for_answer();
  const bool whole = answer.size() >= kAnswerWords && (answer[0] & kOnlyPacket) == kOnlyPacket &&
                     answer[1] == message_header(FspMessage::Response) &&
                     answer[3] == uint32_t(kind);
  if (!whole)
    fail<DeviceLost>("{}: FSP did not answer message {:#x} but sent {} words: {:#x}",
                     device_.function().address, uint32_t(kind), answer.size(),
                     fmt::join(answer, " "));
  if (answer[4] != 0)
    fail<DeviceLost>("{}: FSP refused message {:#x}: error {:#x}", device_.function().address,
                     uint32_t(kind), answer[4]);
}

}  // namespace tuff::devices::nv
