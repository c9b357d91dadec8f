#include "devices/shuffle/shuffle.h"

#include <cstring>

#include "base/check.h"
#include "base/compilers.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_memory_room.h"
#include "devices/cpu_program.h"
#include "devices/shuffle/machine.h"

namespace tuff::devices {
namespace {

using namespace hcq;
using namespace shuffle;

constexpr const char* kKind = "SHUFFLE";
constexpr const char* kVisible = "visible";
constexpr size_t kComputeQueue = 0, kCopyQueue = 1, kQueues = 2;
// A machine that cannot go on says so, with its waits, before Queue::wait gives up without them.
constexpr uint64_t kStuckShare = 2;

std::string name_of(bool host_visible) {
  return host_visible ? fmt::format("{}:{}", kKind, kVisible) : kKind;
}

DeviceInfo describe(bool host_visible) {
  return {.name = name_of(host_visible),
          .description =
              "the CPU's kernels in random legal order, by workgroup: for tests, shows missing "
              "barriers and waits",
          .driver = "tuff",
          .memory_bytes = os::physical_memory_bytes(),
          .features = {{"seed", std::to_string(env_int(Env::TUFF_SHUFFLE_SEED))},
                       {"memory", host_visible ? "host-visible" : "staged"}}};
}

uint64_t seed_of(const ShuffleOptions& options) {
  return options.seed ? *options.seed : static_cast<uint64_t>(env_int(Env::TUFF_SHUFFLE_SEED));
}

void check_command(const Command& c, const CommandList& list, bool kernels) {
  if (const auto* d = std::get_if<DispatchCmd>(&c.body)) {
    if (!kernels) fail<Unsupported>("SHUFFLE: the copy queue runs no kernels");
    const auto* program = dynamic_cast<const CpuProgram*>(d->program);
    TUFF_CHECK(program != nullptr, "dispatch without a program of the CPU");
    TUFF_CHECK(d->args.size_bytes >= program->args().size_bytes(),
               "{}: argument block of {} bytes, needs {}", program->name(), d->args.size_bytes,
               program->args().size_bytes());
    for (int32_t slot : d->group_slots)
      TUFF_CHECK(slot < int64_t{list.slot_count}, "slot {} of {}", slot, list.slot_count);
  } else if (const auto* copy = std::get_if<CopyCmd>(&c.body)) {
    TUFF_CHECK(copy->dst.size_bytes == copy->src.size_bytes, "copy of {} bytes into {}",
               copy->src.size_bytes, copy->dst.size_bytes);
  } else if (const auto* w = std::get_if<WaitCmd>(&c.body)) {
    TUFF_CHECK(w->signal && w->value_slot < list.slot_count, "slot {}", w->value_slot);
  } else if (const auto* s = std::get_if<SignalCmd>(&c.body)) {
    TUFF_CHECK(s->signal && s->value_slot < list.slot_count, "slot {}", s->value_slot);
  } else if (const auto* t = std::get_if<TimestampCmd>(&c.body)) {
    TUFF_CHECK(t->index < list.timestamp_count, "timestamp {}", t->index);
  }
}

class ShuffleQueue final : public Queue {
 public:
  ShuffleQueue(Device& device, std::shared_ptr<Machine> machine, size_t index,
               bool takes_group_slots)
      : Queue(device),
        machine_(std::move(machine)),
        index_(index),
        takes_group_slots_(takes_group_slots),
        timeline_(machine_, 0) {}
  std::unique_ptr<EncodedList> encode(const CommandList& list, EncodeUse) override {
    for (const Command& c : list.commands) check_command(c, list, index_ == kComputeQueue);
    return std::make_unique<ShuffleList>(machine_, list);
  }
  uint64_t submit(EncodedList& list, std::span<const uint64_t> slots) override {
    device().fail_if_lost();
    collect();
    return machine_->submit(index_, static_cast<ShuffleList&>(list).recorded, slots, timeline_);
  }
  std::vector<uint64_t> timestamps(EncodedList& list) override {
    return static_cast<ShuffleList&>(list).recorded->times;
  }
  Signal& timeline() override { return timeline_; }
  bool takes_group_slots() const override { return takes_group_slots_; }
  uint64_t last_submitted() const override { return machine_->last_submitted(index_); }

 private:
  std::shared_ptr<Machine> machine_;
  size_t index_;
  bool takes_group_slots_;
  ShuffleSignal timeline_;
};

class ShuffleDevice final : public Device {
 public:
  explicit ShuffleDevice(const ShuffleOptions& options)
      : info_(describe(options.host_visible)),
        target_(cpu_target(kKind)),
        host_visible_(options.host_visible),
        machine_(std::make_shared<Machine>(options, seed_of(options), kQueues)),
        compute_(*this, machine_, kComputeQueue, !options.host_visible),
        copy_(*this, machine_, kCopyQueue, false) {
    allocator().spoil_freed([](const Span& span) {
      std::memset(reinterpret_cast<void*>(span.address()), kSpoilt, span.size_bytes);
    });
  }
  ~ShuffleDevice() override {
    shut_down();
    machine_->drop();
  }
  const DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  MemoryBlock map_block(size_t size_bytes, MemoryKind kind) override;
  void unmap_block(const MemoryBlock& block) noexcept override {
    machine_->unmap(reinterpret_cast<void*>(block.address), block.size_bytes);
  }
  std::vector<std::unique_ptr<Program>> load(std::span<const render::Binary> binaries) override {
    fail_if_lost();
    return loader_.load(binaries);
  }
  Queue& compute_queue() override { return compute_; }
  Queue* copy_queue() override { return &copy_; }
  std::unique_ptr<Signal> create_signal(uint64_t value) override {
    return std::make_unique<ShuffleSignal>(machine_, value);
  }
  void check_status() override;
  Machine& machine() const { return *machine_; }

 protected:
  void on_lost() noexcept override { machine_->drop(); }

 private:
  DeviceInfo info_;
  Target target_;
  bool host_visible_;
  CpuLoader loader_;
  std::shared_ptr<Machine> machine_;
  ShuffleQueue compute_, copy_;
};

MemoryBlock ShuffleDevice::map_block(size_t size_bytes, MemoryKind kind) {
  fail_if_lost();
  void* pages = size_bytes <= info_.memory_bytes
                    ? os::map_pages_within_limits(size_bytes, "SHUFFLE")
                    : nullptr;
  if (pages == nullptr) fail<OutOfMemory>("SHUFFLE: no {} bytes of host memory", size_bytes);
  std::memset(pages, kSpoilt, size_bytes);
  const bool hidden = !host_visible_ && (kind == MemoryKind::Device || kind == MemoryKind::Args);
  return {reinterpret_cast<uint64_t>(pages), size_bytes,
          hidden ? nullptr : static_cast<std::byte*>(pages), kind, 0};
}

void ShuffleDevice::check_status() {
  const uint64_t timeout_ns = static_cast<uint64_t>(env_int(Env::TUFF_TIMEOUT_MS)) * 1'000'000;
  const std::string why =
      machine_->defect(liveness().held() ? timeout_ns : timeout_ns / kStuckShare);
  if (why.empty()) return;
  declare_lost(why);
  throw DeviceLost(why);
}

ShuffleDevice& native(const hcq::Device& device) {
  auto* own = dynamic_cast<const ShuffleDevice*>(&device);
  if (own == nullptr) fail<InvalidArgument>("{} is no SHUFFLE device", device.name());
  return const_cast<ShuffleDevice&>(*own);
}

}  // namespace

std::vector<Candidate> shuffle_probe() {
  const std::string why = why_no_c_compiler();
  std::vector<Candidate> found;
  for (const bool host_visible : {false, true}) {
    // Rank 0, never the default: it is slow on purpose.
    found.push_back({.name = name_of(host_visible), .usable = why.empty(), .reason = why});
    if (why.empty()) found.back().info = describe(host_visible);
  }
  return found;
}

std::unique_ptr<hcq::Device> shuffle_open(const std::string& selector) {
  if (!selector.empty() && selector != "0" && selector != kVisible)
    fail<InvalidArgument>("SHUFFLE:{}: there are SHUFFLE and SHUFFLE:{}", selector, kVisible);
  return shuffle_open(ShuffleOptions{.host_visible = selector == kVisible});
}

std::unique_ptr<hcq::Device> shuffle_open(const ShuffleOptions& options) {
  return std::make_unique<ShuffleDevice>(options);
}

ShuffleStats shuffle_stats(const hcq::Device& device) { return native(device).machine().stats(); }

void shuffle_reseed(hcq::Device& device, uint64_t seed) { native(device).machine().reseed(seed); }

}  // namespace tuff::devices
