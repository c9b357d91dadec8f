#include "devices/amd/kfd/kfd_space.h"

#include "base/os.h"
#include "devices/amd/kfd/queue.h"

namespace tuff::devices::amd {

KfdSpace::KfdSpace(std::shared_ptr<Process> process, const GpuNode& node)
    : process_(std::move(process)), gpu_(process_->attach(node)), events_(*process_, gpu_) {}

std::unique_ptr<Buffer> KfdSpace::allocate(const BufferRequest& request) {
  return process_->allocate(gpu_, request);
}

void KfdSpace::free(std::unique_ptr<Buffer> buffer) noexcept {
  process_->free(std::unique_ptr<KfdBuffer>(static_cast<KfdBuffer*>(buffer.release())));
}

// The GPUs of one process have one address space; the kernel lists links only where one GPU sees
// all memory of the other.
bool KfdSpace::reaches(const Space& other) const {
  const auto* peer = dynamic_cast<const KfdSpace*>(&other);
  return peer && peer != this && peer->process_ == process_ && gpu_.node.reaches(peer->gpu_.node);
}

bool KfdSpace::share(Buffer& buffer, Space& to) {
  return process_->share(static_cast<KfdBuffer&>(buffer), static_cast<KfdSpace&>(to).gpu_);
}

std::shared_ptr<const void> KfdSpace::show_code(uint64_t address, std::vector<uint8_t> object) {
  LoadedCode& code = process_->loaded_code();
  LoadedCode::Entry* const entry = code.add(address, std::move(object));
  return {entry,
          [&code](const LoadedCode::Entry* e) { code.remove(const_cast<LoadedCode::Entry*>(e)); }};
}

std::unique_ptr<Interrupt> KfdSpace::make_interrupt() {
  return std::make_unique<KfdEvent>(*process_, gpu_, uapi::EventType::Signal);
}

std::unique_ptr<HardwareQueue> KfdSpace::make_queue(const HardwareQueueSetup& setup) {
  return std::make_unique<KfdQueue>(*process_, gpu_, setup);
}

ClockPoint KfdSpace::read_clock() const {
  uapi::GetClockCounters c{};
  c.gpu_id = gpu_.node.gpu_id;
  const uint64_t before = os::monotonic_ns();
  checked(process_->kernel().ioctl(process_->fd(), uapi::kGetClockCounters, &c),
          "GET_CLOCK_COUNTERS({})", gpu_.node.arch());
  return {c.gpu_clock_counter, before + (os::monotonic_ns() - before) / 2};
}

}  // namespace tuff::devices::amd
