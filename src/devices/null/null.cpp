#include "devices/null/null.h"

#include <cstring>

#include "base/check.h"
#include "base/os.h"
#include "devices/cpu_signal.h"

namespace tuff::devices {
namespace {

using namespace hcq;

// A real program holds the loaded code; the base class keeps name and argument layout.
class NullProgram final : public Program {
 public:
  using Program::Program;
};

// A real list holds native commands: a command buffer, packets, dwords.
class NullList final : public EncodedList {
 public:
  explicit NullList(const CommandList& list) : list(list), times(list.timestamp_count) {}
  CommandList list;
  std::vector<uint64_t> times;
};

class NullQueue final : public Queue {
 public:
  explicit NullQueue(Device& d) : Queue(d) {}
  std::unique_ptr<EncodedList> encode(const CommandList& list, EncodeUse) override {
    return std::make_unique<NullList>(list);
  }
  uint64_t submit(EncodedList& list, std::span<const uint64_t> slots) override {
    device().fail_if_lost();
    collect();  // frees Once lists whose value has passed
    std::lock_guard lock(mutex_);
    for (const Command& c : static_cast<NullList&>(list).list.commands)
      run(c, static_cast<NullList&>(list), slots);
    timeline_.set(timeline_.value() + 1);
    return timeline_.value();
  }
  std::vector<uint64_t> timestamps(EncodedList& list) override {
    return static_cast<NullList&>(list).times;
  }
  Signal& timeline() override { return timeline_; }
  uint64_t last_submitted() const override { return timeline_.value(); }

 private:
  // A real device does this asynchronously. Waits need no code here: a stream that does nothing
  // depends on nothing.
  void run(const Command& c, NullList& list, std::span<const uint64_t> slots) {
    if (const auto* s = std::get_if<SignalCmd>(&c.body)) s->signal->set(slots[s->value_slot]);
    if (const auto* t = std::get_if<TimestampCmd>(&c.body))
      list.times[t->index] = os::monotonic_ns();
    if (const auto* h = std::get_if<HostCallCmd>(&c.body)) h->fn(h->context);
    if (const auto* p = std::get_if<CopyCmd>(&c.body))
      std::memcpy(p->dst.host(), p->src.host(), p->dst.size_bytes);
  }

  CpuSignal timeline_;  // of a real device a word that it writes, or a driver's object
  std::mutex mutex_;
};

class NullDevice final : public Device {
 public:
  NullDevice() : info_(describe()), queue_(*this) {
    target_.device = "NULL";
    target_.renderer = "null";
    target_.arch = "null";
    target_.identity = "null";
    target_.features = {.i8 = true,
                        .i16 = true,
                        .i64 = true,
                        .f16 = true,
                        .bf16 = true,
                        .f64 = true,
                        .f8 = true,
                        .f16_casts = true,
                        .u32_to_f32 = true,
                        .storage8 = true,
                        .storage16 = true,
                        .device_address = true,
                        .signed_zero_inf_nan = true,
                        .known_zero_products = true,
                        .exp2 = true,
                        .log2 = true,
                        .sin = true,
                        .sqrt = true};
    target_.launch_cost_ns = 0;
  }
  ~NullDevice() override { shut_down(); }  // always first: waits for the queue, frees all memory

  static DeviceInfo describe() {
    return {.name = "NULL",
            .description = "does nothing, correctly",
            .driver = "tuff",
            .memory_bytes = os::physical_memory_bytes()};
  }
  const DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  MemoryBlock map_block(size_t size_bytes, MemoryKind kind) override {
    fail_if_lost();
    void* p = os::map_pages(size_bytes);
    if (p == nullptr) fail<OutOfMemory>("NULL: no {} bytes of host memory", size_bytes);
    return host_block(p, size_bytes, kind);
  }
  void unmap_block(const MemoryBlock& block) noexcept override {
    os::unmap_pages(block.host, block.size_bytes);
  }
  std::vector<std::unique_ptr<Program>> load(std::span<const render::Binary> binaries) override {
    fail_if_lost();
    std::vector<std::unique_ptr<Program>> programs;
    for (const render::Binary& b : binaries) programs.push_back(std::make_unique<NullProgram>(b));
    return programs;
  }
  Queue& compute_queue() override { return queue_; }
  std::unique_ptr<Signal> create_signal(uint64_t value) override {
    return std::make_unique<CpuSignal>(value);
  }

 private:
  DeviceInfo info_;
  Target target_;
  NullQueue queue_;
};

}  // namespace

std::vector<Candidate> null_probe() {
  // Rank 0, never the default: it computes nothing.
  return {{.name = "NULL", .usable = true, .info = NullDevice::describe()}};
}

std::unique_ptr<hcq::Device> null_open(const std::string& selector) {
  if (!selector.empty() && selector != "0")
    fail<InvalidArgument>("NULL:{}: there is one null device, NULL", selector);
  return std::make_unique<NullDevice>();
}

}  // namespace tuff::devices
