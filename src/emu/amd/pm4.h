// Pm4: executes PM4 packets of a compute queue of gfx1100 one at a time. Used by pm4_queue for its
// ring and by both compute queues for indirect buffers. Refuses what it does not know.
// Sources: AMD PAL gfx11_f32_mec_pm4_packets.h (layouts), Linux amdgpu/soc15d.h and nvd.h, Mesa
// src/amd/registers (GCR_CNTL, RELEASE_MEM_OP, COMPUTE_*).
#pragma once

#include <bitset>
#include <span>

#include "emu/amd/queue.h"

namespace tuff::emu::amd {

inline constexpr uint32_t kMaxGroupItems = 1024, kMaxLdsBytes = 64 * 1024;

class Pm4Queue : public Queue {
 public:
  using Queue::Queue;

 protected:
  // Packets that follow one another in memory that is not a ring.
  struct Buffer {
    uint64_t address = 0;
    std::vector<uint32_t> dwords;
    size_t next = 0;
    bool over() const { return next >= dwords.size(); }
  };
  // INDIRECT_BUFFER's body: address and size.
  void enter(const Packet& packet, size_t first);
  bool in_buffer() const { return buffer_.has_value(); }
  bool take_from_buffer();
  static uint32_t dwords_of(uint32_t header);             // with the header
  Progress execute(const Packet& packet, bool buffered);  // `buffered`: not in the ring
  // Executes packet_, which is gone once that is done.
  bool go_on(bool buffered);
  Packet parse(uint64_t address, std::span<const uint32_t> dwords) const;
  std::optional<Packet> packet_;

 private:
  Progress wait_reg_mem(const Packet& p);
  void flush_hdp(const Packet& p);
  Progress event_write(const Packet& p);
  void release_mem(const Packet& p);
  void acquire_mem(const Packet& p);
  Progress dma_data(const Packet& p);
  Progress dispatch(const Packet& p, bool indirect);
  void set_sh_reg(const Packet& p);
  void pred_exec(const Packet& p, bool buffered);
  uint32_t need(uint32_t reg) const;
  rdna::Launch launch_of(std::array<uint32_t, 3> groups, uint32_t initiator) const;
  void set_scratch(rdna::Launch& launch) const;

  static constexpr uint32_t kFirstRegister = 0x200, kRegisters = 0x50;
  std::array<uint32_t, kRegisters> registers_{};
  std::bitset<kRegisters> written_;
  std::optional<Buffer> buffer_;
  bool copying_ = false;  // a DMA_DATA that waits has been started
};

const char* pm4_name(uint32_t opcode);  // null: no packet of this GPU

// GCR_CNTL of ACQUIRE_MEM and of SDMA's GCR_USER.
CacheActions gcr_actions(const Packet& packet, uint32_t gcr_control);

}  // namespace tuff::emu::amd
