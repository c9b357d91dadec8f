#include "base/log.h"
#include "devices/opencl/opencl.h"
#include "devices/opencl/queue.h"

namespace tuff::devices {
namespace {

using namespace opencl;

constexpr const char* kKind = "CL";

class ClDevice final : public hcq::Device {
 public:
  ClDevice(const ClApi& api, const Facts& facts, const std::string& name)
      : context_(std::make_shared<Context>(api, facts, name)),
        info_(opencl::describe(facts, name)),
        target_(target_of(facts)),
        events_(std::make_shared<WaitingEvents>(context_)),
        memory_(context_),
        queue_(*this, context_, events_) {}
  ~ClDevice() override;
  const hcq::DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  hcq::MemoryBlock map_block(size_t size_bytes, hcq::MemoryKind kind) override {
    fail_if_lost();
    return memory_.map(size_bytes, kind);
  }
  void unmap_block(const hcq::MemoryBlock& block) noexcept override { memory_.unmap(block); }
  std::vector<std::unique_ptr<hcq::Program>> load(
      std::span<const render::Binary> binaries) override {
    fail_if_lost();
    return load_programs(context_, binaries);
  }
  hcq::Queue& compute_queue() override { return queue_; }
  std::unique_ptr<hcq::Signal> create_signal(uint64_t value) override {
    return std::make_unique<ClSignal>(events_, value);
  }
  ClApi& api() { return context_->api; }

 protected:
  void on_lost() noexcept override {
    queue_.abandon();
    events_->abandon();
  }
  // Software drivers compile a kernel when it is first launched.
  int64_t slowness() const override { return info_.hardware ? 1 : 4; }

 private:
  std::shared_ptr<Context> context_;
  hcq::DeviceInfo info_;
  Target target_;
  std::shared_ptr<WaitingEvents> events_;
  Memory memory_;
  ClQueue queue_;
};

ClDevice::~ClDevice() {
  try {
    if (!lost()) queue_.wait_idle();
  } catch (const Error& e) {
    log_warn("closing {}: {}", info_.name, e.what());
  }
  queue_.finish();
  shut_down();
}

}  // namespace

std::vector<Candidate> opencl_probe() {
  std::vector<Candidate> found;
  try {
    const std::vector<Facts> devices = list_devices(load_api());
    for (size_t i = 0; i < devices.size(); ++i) {
      Candidate& c = found.emplace_back();
      c.name = fmt::format("{}:{}", kKind, i);
      c.usable = devices[i].usable();
      c.reason = devices[i].missing;
      c.info = opencl::describe(devices[i], c.name);
      c.rank = devices[i].rank();
    }
  } catch (const Error& e) {
    found.clear();
    Candidate& none = found.emplace_back();
    none.name = kKind;
    none.reason = e.what();
  }
  return found;
}

std::unique_ptr<hcq::Device> opencl_open(const std::string& selector) {
  const ClApi api = load_api();
  const std::vector<Facts> devices = list_devices(api);
  const size_t i = select_device(devices, selector);
  return std::make_unique<ClDevice>(api, devices[i], fmt::format("{}:{}", kKind, i));
}

ClApi& opencl_api(hcq::Device& device) {
  auto* cl = dynamic_cast<ClDevice*>(&device);
  TUFF_CHECK(cl != nullptr, "{} is not an OpenCL device", device.name());
  return cl->api();
}

}  // namespace tuff::devices
