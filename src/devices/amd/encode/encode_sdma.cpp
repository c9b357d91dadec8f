#include <algorithm>

#include "base/check.h"
#include "devices/amd/encode/list_encoder.h"
#include "devices/amd/encode/packets.h"
#include "hcq/device.h"

namespace tuff::devices::amd {
namespace {

class SdmaEncoder : ListEncoder {
 public:
  explicit SdmaEncoder(const EncodeInput& input)
      : ListEncoder(input, "a copy queue"), w_(out_.ib) {}

  Encoded run() {
    for (const hcq::Command& c : in_.list.commands)
      std::visit([&](const auto& body) { encode(body); }, c.body);
    release(signal_address(in_.completion.timeline), completion_word());
    if (in_.completion.mailbox) {
      fence(in_.completion.mailbox, in_.completion.event_id);
      header(sdma::TRAP);
      w_.dword(in_.completion.event_id);
    }
    return std::move(out_);
  }

 private:
  void header(uint32_t dword) {
    w_.unit();
    w_.dword(dword);
  }

  void settle() {
    // Copies run in order, but some engines overlap their accesses; a NOP waits for them. Source:
    // AMD PAL dmaCmdBuffer.cpp (CmdBarrier).
    if (owed_.idle) header(sdma::NOP);
    if (owed_.system) {
      header(sdma::POLL_REGMEM);  // in the form that flushes HDP
      w_.dword(0);
      w_.dword(sdma::kHdpFlushMarker);
      for (int i = 0; i < 3; ++i) w_.dword(0);
      if (gen_.sdma_caches) caches(pm4::kGl2Wb | pm4::kGl2Inv);
    }
    owed_ = {};
  }
  void caches(uint32_t gcr_control) {
    header(sdma::GCR_USER);
    w_.dword(0);
    w_.dword(sdma::gcr(gcr_control));
    w_.dword(0);
    w_.dword(0);
  }
  void fence(uint64_t address, const Operand& word) {
    header(sdma::FENCE | (gen_.sdma_caches ? sdma::kMtypeUncached : 0));
    w_.address(address);
    w_.lo(word);
  }
  void release(uint64_t address, const Operand& word) {
    if (gen_.sdma_caches) caches(pm4::kGl2Wb);
    fence(address, word);
  }

  void encode(const hcq::WaitCmd& c) {
    const Operand word = signal_word(c.signal, c.value_slot);
    header(sdma::POLL_REGMEM | sdma::kPollMemory | sdma::kPollGreaterEqual);
    w_.address(signal_address(c.signal));
    w_.lo(word);
    w_.dword(~0u);
    w_.dword(sdma::kPollForever);
    owed_.system = true;
  }
  void encode(const hcq::SignalCmd& c) {
    const Operand word = signal_word(c.signal, c.value_slot);
    release(signal_address(c.signal), word);
  }
  void encode(const hcq::TimestampCmd& c) {
    const uint64_t address = timestamp_address(c.index);
    header(sdma::TIMESTAMP_GET_GLOBAL);
    w_.address(address);
  }
  void encode(const hcq::BarrierCmd&) { owed_.idle = true; }
  void encode(const hcq::DispatchCmd&) { unsupported("run kernels"); }
  void encode(const hcq::HostCallCmd&) { unsupported("call the host"); }

  void encode(const hcq::CopyCmd& c) {
    if (!copies(c)) return;
    settle();
    uint64_t dst = c.dst.address(), src = c.src.address();
    for (uint64_t at = 0; at < c.src.size_bytes;) {
      const uint64_t bytes = std::min<uint64_t>(c.src.size_bytes - at, gen_.copy_max_bytes);
      header(sdma::COPY_LINEAR);
      w_.dword(uint32_t(bytes - 1));
      w_.dword(0);
      w_.address(src);
      w_.address(dst);
      at += bytes;
      src += bytes;
      dst += bytes;
    }
  }

  PacketWriter w_;
};

}  // namespace

Encoded encode_sdma(const EncodeInput& input) { return SdmaEncoder(input).run(); }

}  // namespace tuff::devices::amd
