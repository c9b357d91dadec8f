#include <algorithm>
#include <map>

#include "base/check.h"
#include "devices/amd/encode/list_encoder.h"
#include "devices/amd/encode/packets.h"
#include "devices/amd/encode/pm4.h"
#include "hcq/device.h"

namespace tuff::devices::amd {
namespace {

// Words 1 and 3 of the buffer descriptor by which RDNA2's kernels reach scratch. Sources: ROCr
// core/inc/registers.h (SQ_BUF_RSRC_WORD*), amd_aql_queue.cpp; LLVM AMDGPUUsage, private segment.
constexpr uint32_t kSwizzleEnable = 1u << 31;
constexpr uint32_t kSelectXyzw = 4 | 5 << 3 | 6 << 6 | 7 << 9, kFormat32Uint = 20 << 12,
                   kIndexStride32 = 2 << 21, kIndexStride64 = 3 << 21, kAddTid = 1 << 23,
                   kResourceLevel = 1 << 24, kNoBoundsCheck = 2 << 28;

class Pm4Encoder : ListEncoder {
 public:
  explicit Pm4Encoder(const EncodeInput& input)
      : ListEncoder(input, "a compute queue"), w_(gen_, out_.ib) {
    TUFF_CHECK(input.xccs == 1, "PM4 for {} XCCs: their queues are AQL", input.xccs);
  }

  Encoded run() {
    for (const hcq::Command& c : in_.list.commands)
      std::visit([&](const auto& body) { encode(body); }, c.body);
    w_.release(signal_address(in_.completion.timeline), completion_word());
    if (in_.completion.mailbox) w_.interrupt(in_.completion.mailbox, in_.completion.event_id);
    if (w_.size() > pm4::kIbMaxDwords) unsupported("take so many commands at once; cut the list");
    return std::move(out_);
  }

 private:
  void settle() {
    if (owed_.idle) w_.wait_for_idle();
    if (owed_.system) w_.flush_hdp();
    if (owed_.device || owed_.system) w_.acquire(owed_.system);
    owed_ = {};
  }

  void encode(const hcq::WaitCmd& c) {
    w_.wait_at_least(signal_address(c.signal), signal_word(c.signal, c.value_slot));
    owed_.system = true;
  }
  void encode(const hcq::SignalCmd& c) {
    const Operand word = signal_word(c.signal, c.value_slot);
    w_.release(signal_address(c.signal), word);
  }
  void encode(const hcq::TimestampCmd& c) { w_.timestamp(timestamp_address(c.index)); }
  void encode(const hcq::BarrierCmd&) { owed_.idle = owed_.device = true; }
  void encode(const hcq::HostCallCmd&) { unsupported("call the host"); }

  void encode(const hcq::CopyCmd& c) {
    if (!copies(c)) return;
    settle();
    w_.copy(c.dst.address(), c.src.address(), c.src.size_bytes);
  }

  void encode(const hcq::DispatchCmd& c) {
    const std::optional<KernelCode> kernel = kernel_to_launch(c);
    if (!kernel) return;
    settle();
    set_kernel(*kernel);
    const uint64_t args = c.args ? c.args.address() : 0;
    set(reg::COMPUTE_USER_DATA_0, user_data(*kernel, args, c.program->name()));
    const uint32_t initiator = pm4::kComputeShaderEn | pm4::kForceStartAt000 |
                               (kernel->properties & kWave32 ? pm4::kCsW32En : 0);
    if (c.indirect) {
      w_.dispatch_indirect(c.indirect.address(), initiator);
    } else {
      w_.dispatch({groups_of(c, 0), groups_of(c, 1), groups_of(c, 2)}, initiator);
    }
  }

  void set_kernel(const KernelCode& k) {
    const uint64_t code = k.entry >> 8;
    set(reg::COMPUTE_PGM_LO, {code, code >> 32});
    set(reg::COMPUTE_PGM_RSRC1, {k.rsrc1, k.rsrc2});
    set(reg::kShBase + gen_.rsrc3, {k.rsrc3});
    set(reg::COMPUTE_RESOURCE_LIMITS, {0});
    set(reg::COMPUTE_TMPRING_SIZE, {in_.scratch.size.tmpring});
    if (gen_.architected_scratch) {
      const uint64_t base = in_.scratch.address >> 8;
      set(reg::COMPUTE_DISPATCH_SCRATCH_BASE_LO, {base, base >> 32});
    }
    set(reg::COMPUTE_RESTART_X, {0, 0, 0});
    set(reg::COMPUTE_START_X, {0, 0, 0, k.local[0], k.local[1], k.local[2]});
  }

  // In the order that LLVM's AMDGPUUsage gives, "Initial Kernel Execution State".
  std::vector<Operand> user_data(const KernelCode& k, uint64_t args,
                                 const std::string& name) const {
    if (k.properties & (kDispatchPtr | kQueuePtr | kDispatchId)) {
      fail<Unsupported>(
          "{}: kernel \"{}\" asks for its dispatch packet or queue (properties {:#x}), which a PM4 "
          "queue has not",
          gen_.name, name, k.properties);
    }
    std::vector<Operand> data;
    const uint64_t scratch = in_.scratch.address;
    if (k.properties & kPrivateSegmentBuffer) {
      const uint32_t stride = k.properties & kWave32 ? kIndexStride32 : kIndexStride64;
      data = {scratch, scratch >> 32 | kSwizzleEnable,
              std::min<uint64_t>(in_.scratch.size.size_bytes, 0xffffffffu),
              kSelectXyzw | kFormat32Uint | stride | kAddTid | kResourceLevel | kNoBoundsCheck};
    }
    if (k.properties & kKernargSegmentPtr) data.insert(data.end(), {args, args >> 32});
    if (k.properties & kFlatScratchInit) data.insert(data.end(), {scratch, scratch >> 32});
    if (k.properties & kPrivateSegmentSize) data.push_back(in_.scratch.size.bytes_per_lane);
    return data;
  }

  // Each register takes an operand's lower half. They keep their values from dispatch to dispatch
  // of a list, so only those that differ are written.
  void set(uint32_t first, const std::vector<Operand>& values) {
    if (values.empty()) return;
    auto [known, fresh] = registers_.try_emplace(first);
    if (!fresh && known->second == values) return;
    known->second = values;
    w_.set_registers(first, values);
  }

  Pm4Writer w_;
  std::map<uint32_t, std::vector<Operand>> registers_;
};

}  // namespace

Encoded encode_pm4(const EncodeInput& input) { return Pm4Encoder(input).run(); }

}  // namespace tuff::devices::amd
