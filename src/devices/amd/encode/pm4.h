// Pm4Writer: single PM4 packets for one generation. Used by encode_pm4 and, for what AQL leaves to
// PM4, by encode_aql. Knows packets, not commands.
#pragma once

#include "devices/amd/encode/encode.h"

namespace tuff::devices::amd {

class Pm4Writer {
 public:
  Pm4Writer(const Generation& generation, PacketStream& stream) : gen_(generation), w_(stream) {}

  void wait_for_idle();  // of kernels
  void flush_hdp();      // what the host wrote through the bar becomes visible
  // Stale lines of caches go; with `system` those of L2 too, after they were written back.
  void acquire(bool system);
  void wait_at_least(uint64_t address, const Operand& word);
  // After all earlier work: its writes reach memory, then the word is written.
  void release(uint64_t address, const Operand& word);
  void interrupt(uint64_t mailbox, uint32_t event_id);
  void timestamp(uint64_t address);
  void copy(uint64_t dst, uint64_t src, uint64_t size_bytes);
  void set_registers(uint32_t first, std::span<const Operand> values);
  void dispatch(const std::array<Operand, 3>& groups, uint32_t initiator);
  void dispatch_indirect(uint64_t address, uint32_t initiator);
  // What is written until end_xcc() is executed by these XCCs alone.
  void begin_xcc(uint32_t mask);
  void end_xcc();

  uint32_t size() const { return w_.size(); }

 private:
  void header(uint32_t opcode, uint32_t body_dwords);
  void release_mem(uint32_t caches, uint32_t selects, uint64_t address, const Operand& data,
                   uint32_t event_id);
  const Generation& gen_;
  PacketWriter w_;
  uint32_t xcc_begin_ = 0;  // dword behind an open PRED_EXEC, or 0
};

}  // namespace tuff::devices::amd
