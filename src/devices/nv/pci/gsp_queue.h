// GspQueues: how the host and a GPU's system processor (GSP) talk once it runs: two rings of pages
// in the host's memory, commands one way, answers and events the other. Called by what calls the
// resource manager by PCI. Knows no function's parameters. What the GSP writes is checked.
// Layout: that of versions 535 to 595, in open-gpu-kernel-modules, src/nvidia/inc/kernel/gpu/gsp/
// message_queue_priv.h and src/common/shared/msgq (headers), message_queue_cpu.c @1739a20 (sizes,
// checksum, order), Linux drivers/gpu/drm/nouveau/nvkm/subdev/gsp/r535.c (records that continue).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tuff::devices::nv {

inline constexpr uint32_t kContinuationRecord = 71;  // NV_VGPU_MSG_FUNCTION_CONTINUATION_RECORD

// One record: at most 16 pages with its headers.
struct GspMessage {
  uint32_t function = 0, result = 0;
  std::vector<uint8_t> payload;
};

class GspQueues {
 public:
  static constexpr size_t kPageBytes = 4096, kQueueBytes = 0x40000;
  static constexpr size_t kPages = 2 * kQueueBytes / kPageBytes + 1;  // with that of the table
  static constexpr size_t kBytes = kPages * kPageBytes;
  static constexpr size_t kCommands = kPageBytes, kStatus = kCommands + kQueueBytes;  // offsets
  static constexpr size_t kMostPayload = 16 * kPageBytes - 48 - 32;  // of a record

  // `memory` has kBytes, zeroed, and is at `address` for the GSP, in one piece. `ring` tells the
  // GSP that there are commands. Waits end after `timeout_ms` with DeviceLost.
  GspQueues(std::span<std::byte> memory, uint64_t address, std::function<void()> ring,
            uint64_t timeout_ms);
  // Waits until the GSP has set up its ring. DeviceLost if that is not laid out as is known.
  void link();
  // As many records as it takes.
  void send(uint32_t function, std::span<const uint8_t> payload);
  // The next record, if there is one. DeviceLost for one that is damaged.
  std::optional<GspMessage> receive();
  // Waits for the answer to a command, of `payload_bytes`, which may be several records; events
  // before it go to `event`.
  GspMessage wait_for(uint32_t function, size_t payload_bytes,
                      const std::function<void(const GspMessage&)>& event);

 private:
  void send_record(uint32_t function, std::span<const uint8_t> payload);
  void wait_until(const char* what, const std::function<bool()>& done) const;
  std::byte* at(size_t offset) const { return memory_.data() + offset; }
  uint32_t load(size_t offset) const;
  void store(size_t offset, uint32_t value) const;
  uint32_t room() const;
  uint32_t waiting() const;

  const std::span<std::byte> memory_;
  const std::function<void()> ring_;
  const uint64_t timeout_ms_;
  uint32_t write_ = 0, read_ = 0;              // pages
  uint32_t next_sent_ = 0, next_received_ = 0;  // sequence numbers
};

}  // namespace tuff::devices::nv
