// A replay's floor on AMD's GPUs: the list's packets in a hardware queue of their own, whose ring a
// bare loop fills and whose signal it watches.
#include <array>

#include "base/check.h"
#include "base/os.h"
#include "devices/amd/amd_device.h"
#include "raw_replay.h"

namespace tuff::devices {
namespace amd {
namespace {

class AmdRawReplay final : public RawReplay {
 public:
  AmdRawReplay(AmdDevice& device, const hcq::CommandList& list)
      : device_(device),
        setup_(compute_setup(device.gpu().facts)),
        passed_(device.gpu(), 0),
        hardware_(device.gpu().space->make_queue(setup_)) {
    const HandleBinding binding;
    scratch_ = device.gpu().scratch(private_bytes(list, binding));
    EncodeInput input{device.gpu().generation,      binding, list, {}, {}, 0,
                      device.gpu().facts.shape.xccs};
    input.completion = {&passed_, 0, 0};
    if (scratch_) input.scratch = scratch_->area;
    const bool aql = setup_.type == QueueType::Aql;
    if (aql && scratch_) hardware_->set_scratch(scratch_->area);
    encoded_ = aql ? encode_aql(input) : encode_pm4(input);
    TUFF_CHECK(encoded_.slots.list_slots == 0, "a raw replay is of a list without slots");
    values_.resize(encoded_.value_count());
    epochs_.assign(encoded_.words.size(), &passed_.epoch());
    place_buffer();
    if (aql) {
      ring_ = encoded_.packets;
    } else {
      const auto jump = indirect_buffer(buffer_.address(), uint32_t(encoded_.ib.dwords.size()));
      ring_.dwords.assign(jump.begin(), jump.end());
      ring_.units = {0};
    }
  }
  ~AmdRawReplay() override {
    hardware_->stop();
    if (buffer_) device_.allocator().free(buffer_);
  }

  void run() override {
    ++value_;
    const uint64_t ib_address = buffer_ ? buffer_.address() : 0;
    fill_values(encoded_, {{}, value_, ib_address}, epochs_, values_);
    if (buffer_) encoded_.ib.patch(values_, reinterpret_cast<uint32_t*>(buffer_.host()));
    ring_.patch(values_, ring_.dwords.data());
    const uint64_t begin_ns = os::monotonic_ns();
    for (size_t unit = 0; unit < ring_.units.size(); pause(begin_ns)) {
      unit = hardware_->ring().push(ring_, ring_.dwords, unit);
      hardware_->ring().commit();
    }
    while (passed_.value() < value_) pause(begin_ns);
  }

  uint64_t driver_submit_ns() const override { return 0; }

 private:
  void place_buffer() {
    const std::vector<uint32_t>& dwords = encoded_.ib.dwords;
    if (dwords.empty()) return;
    buffer_ =
        device_.allocator().allocate(dwords.size() * sizeof(uint32_t), hcq::MemoryKind::Upload);
    std::copy(dwords.begin(), dwords.end(), reinterpret_cast<uint32_t*>(buffer_.host()));
  }

  void pause(uint64_t begin_ns) const {
    const int64_t limit_ms = device_.liveness().timeout_ms();
    if (os::monotonic_ns() - begin_ns > uint64_t(limit_ms) * 1'000'000)
      fail<DeviceLost>("{}: a raw replay does not end within {} ms (limit: TUFF_TIMEOUT_MS)",
                       device_.name(), limit_ms);
    os::cpu_relax();
  }

  AmdDevice& device_;
  const HardwareQueueSetup setup_;
  AmdSignal passed_;
  const std::unique_ptr<HardwareQueue> hardware_;
  std::shared_ptr<const Scratch> scratch_;
  Encoded encoded_;
  hcq::Span buffer_;   // of encoded_.ib
  PacketStream ring_;  // what the ring is given
  std::vector<const SignalEpoch*> epochs_;
  std::vector<uint64_t> values_;
  uint64_t value_ = 0;
};

}  // namespace
}  // namespace amd

std::unique_ptr<RawReplay> amd_raw_replay(hcq::Device& device, const hcq::CommandList& list) {
  return std::make_unique<amd::AmdRawReplay>(dynamic_cast<amd::AmdDevice&>(device), list);
}

}  // namespace tuff::devices
