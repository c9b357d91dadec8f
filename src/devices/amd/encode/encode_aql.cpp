// AQL: kernels are packets of the ring; waits, signals, timestamps and copies are PM4 in an
// indirect buffer that vendor packets jump to. All XCCs execute PM4, so what has to be done once is
// left to the first.
#include "base/check.h"
#include "devices/amd/encode/list_encoder.h"
#include "devices/amd/encode/packets.h"
#include "devices/amd/encode/pm4.h"
#include "hcq/device.h"

namespace tuff::devices::amd {
namespace {

constexpr uint32_t kFirstXcc = 1;

class AqlEncoder : ListEncoder {
 public:
  explicit AqlEncoder(const EncodeInput& input)
      : ListEncoder(input, "an AQL queue"), packets_(out_.packets), pm4_(gen_, out_.ib) {}

  Encoded run() {
    for (const hcq::Command& c : in_.list.commands)
      std::visit([&](const auto& body) { encode(body); }, c.body);
    begin_pm4();
    once([&] {
      pm4_.release(signal_address(in_.completion.timeline), completion_word());
      if (in_.completion.mailbox) pm4_.interrupt(in_.completion.mailbox, in_.completion.event_id);
    });
    end_pm4();
    return std::move(out_);
  }

 private:
  // A barrier-AND without dependencies: with its barrier bit it ends when all before it has, and
  // nothing after it begins earlier. Its fences reach every XCC's L2.
  void settle() {
    if (owed_.system) {
      begin_pm4();
      once([&] { pm4_.flush_hdp(); });
    }
    if (owed_.idle || owed_.device || owed_.system) {
      end_pm4();
      packets_.unit();
      packets_.dword(aql::BARRIER_AND | aql::kBarrierBit |
                     aql::fences(owed_.system ? aql::kFenceSystem : aql::kFenceAgent));
      zeros(15);
    }
    owed_ = {};
  }

  void encode(const hcq::WaitCmd& c) {
    begin_pm4();
    pm4_.wait_at_least(signal_address(c.signal), signal_word(c.signal, c.value_slot));
    owed_.system = true;
  }
  void encode(const hcq::SignalCmd& c) {
    const Operand word = signal_word(c.signal, c.value_slot);
    begin_pm4();
    once([&] { pm4_.release(signal_address(c.signal), word); });
  }
  void encode(const hcq::TimestampCmd& c) {
    const uint64_t address = timestamp_address(c.index);
    begin_pm4();
    once([&] { pm4_.timestamp(address); });
  }
  void encode(const hcq::BarrierCmd&) { owed_.idle = owed_.device = true; }
  void encode(const hcq::HostCallCmd&) { unsupported("call the host"); }

  void encode(const hcq::CopyCmd& c) {
    if (!copies(c)) return;
    settle();
    begin_pm4();
    once([&] {
      pm4_.copy(c.dst.address(), c.src.address(), c.src.size_bytes);
    });
  }

  void encode(const hcq::DispatchCmd& c) {
    const std::optional<KernelCode> kernel = kernel_to_launch(c);
    if (!kernel) return;
    if (c.indirect) unsupported("launch indirectly; launch sizes have to come from slots");
    settle();
    end_pm4();
    const auto& local = kernel->local;
    packets_.unit();
    packets_.dword(aql::KERNEL_DISPATCH | aql::kThreeDimensions);
    packets_.dword(local[0] | uint32_t(local[1]) << 16);
    packets_.dword(local[2]);
    for (size_t axis = 0; axis < 3; ++axis) {
      // A grid of no work-items is not allowed (HSA runtime specification, kernel dispatch packet).
      if (c.group_slots[axis] >= 0) packets_.leave_unit_out_if_zero();
      packets_.lo(groups_of(c, axis, local[axis]));
    }
    packets_.dword(kernel->private_bytes);
    packets_.dword(kernel->group_bytes);
    packets_.address(kernel->descriptor);
    packets_.address(c.args ? c.args.address() : 0);
    zeros(4);  // reserved, no completion signal
  }

  void zeros(int n) {
    for (int i = 0; i < n; ++i) packets_.dword(0);
  }
  template <class Fn>
  void once(Fn fn) {
    if (in_.xccs > 1) pm4_.begin_xcc(kFirstXcc);
    fn();
    if (in_.xccs > 1) pm4_.end_xcc();
  }
  void begin_pm4() {
    if (!fragment_) fragment_ = pm4_.size();
  }
  // The vendor packet waits for all packets before it, and brings what they wrote to memory.
  void end_pm4() {
    if (!fragment_) return;
    const uint32_t first = *fragment_, dwords = pm4_.size() - first;
    fragment_.reset();
    const auto jump = indirect_buffer(0, dwords);
    packets_.unit();
    packets_.dword(aql::VENDOR_SPECIFIC | aql::kBarrierBit | aql::fences(aql::kFenceSystem) |
                   aql::kFormatPm4Ib);
    packets_.dword(jump[0]);
    packets_.address(Operand::of_slot(out_.slots.ib_address(), uint64_t(first) * 4));
    packets_.dword(jump[3]);
    packets_.dword(aql::kPm4IbRemaining);
    zeros(10);
  }

  PacketWriter packets_;
  Pm4Writer pm4_;
  std::optional<uint32_t> fragment_;  // of PM4, not jumped to yet: its first dword
};

}  // namespace

Encoded encode_aql(const EncodeInput& input) { return AqlEncoder(input).run(); }

}  // namespace tuff::devices::amd
