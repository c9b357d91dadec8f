// A replay's floor on NVIDIA's GPUs by direct submission: the list's methods and launches in a
// channel of their own, whose entries a bare loop writes and whose semaphore it watches.
#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "base/os.h"
#include "devices/nv/nv_device.h"
#include "raw_replay.h"

namespace tuff::devices {
namespace nv {
namespace {

class NvRawReplay final : public RawReplay {
 public:
  NvRawReplay(NvDevice& device, const hcq::CommandList& list)
      : device_(device),
        generation_(*device.space().facts().generation),
        group_(device.space().make_group()),
        semaphores_(device.space()),
        passed_(semaphores_, 0),
        channel_(group_->make_channel(std::array{uint32_t{generation_.compute_class},
                                                 uint32_t{generation_.copy_class}})) {
    group_->schedule();
    channel_->read_token();
    const HandleBinding binding(semaphores_);
    encoded_ = encode_compute({generation_, binding, list, &passed_, 0});
    TUFF_CHECK(encoded_.timeline_slot == 0, "a raw replay is of a list without slots");
    values_.resize(encoded_.value_count());
    methods_ = placed(encoded_.methods);
    launches_ = placed(encoded_.launches);
    PacketStream methods = setup_compute(generation_);
    append_release(methods, passed_.address(), ++value_);
    const hcq::Span setup = placed(methods);
    push(setup, methods);
    wait();
    device_.allocator().free(setup);
  }
  ~NvRawReplay() override {
    group_->stop();
    for (const hcq::Span& s : {methods_, launches_}) device_.allocator().free(s);
  }

  void run() override {
    values_[encoded_.timeline_slot] = ++value_;
    values_[encoded_.launch_address] = launches_.address();
    encoded_.patch_methods(values_, words_of(methods_));
    encoded_.launches.patch(values_, words_of(launches_));
    push(methods_, encoded_.methods);
    wait();
  }

  uint64_t driver_submit_ns() const override { return 0; }

 private:
  static uint32_t* words_of(const hcq::Span& s) { return reinterpret_cast<uint32_t*>(s.host()); }

  hcq::Span placed(const PacketStream& stream) {
    const hcq::Span s =
        device_.allocator().allocate(stream.dwords.size() * 4, hcq::MemoryKind::Args);
    std::copy(stream.dwords.begin(), stream.dwords.end(), words_of(s));
    return s;
  }
  void push(const hcq::Span& methods, const PacketStream& stream) {
    channel_->push(entries_++, gpfifo_entry(methods.address(), uint32_t(stream.dwords.size())));
  }
  void wait() const {
    const uint64_t begin_ns = os::monotonic_ns();
    const int64_t limit_ms = device_.liveness().timeout_ms();
    for (; passed_.value() < value_; os::cpu_relax()) {
      if (os::monotonic_ns() - begin_ns > uint64_t(limit_ms) * 1'000'000)
        fail<DeviceLost>("{}: a raw replay does not end within {} ms (limit: TUFF_TIMEOUT_MS)",
                         device_.name(), limit_ms);
    }
  }

  NvDevice& device_;
  const Generation& generation_;
  const std::unique_ptr<ChannelGroup> group_;
  SemaphorePages semaphores_;
  NvSignal passed_;
  const std::unique_ptr<Channel> channel_;
  Encoded encoded_;
  hcq::Span methods_, launches_;
  std::vector<uint64_t> values_;
  uint64_t value_ = 0, entries_ = 0;
};

}  // namespace
}  // namespace nv

std::unique_ptr<RawReplay> nv_raw_replay(hcq::Device& device, const hcq::CommandList& list) {
  return std::make_unique<nv::NvRawReplay>(dynamic_cast<nv::NvDevice&>(device), list);
}

}  // namespace tuff::devices
