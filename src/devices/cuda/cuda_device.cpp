#include "devices/cuda/cuda_device.h"

#include "base/log.h"
#include "devices/cuda/cuda.h"
#include "devices/selector.h"

namespace tuff::devices {
namespace cuda {

CudaDevice::CudaDevice(std::shared_ptr<Context> context)
    : context_(std::move(context)),
      info_(describe(context_->facts, context_->name)),
      target_(target_of(context_->facts)),
      memory_(context_),
      words_(std::make_shared<SignalWords>(context_)) {
  context_->on_loss([this](const std::string& reason) { lose(reason); });
  compute_.emplace(*this, context_, words_, "compute");
  if (context_->facts.copy_engines > 0) copy_.emplace(*this, context_, words_, "copy");
}

CudaDevice::~CudaDevice() {
  for (hcq::Queue* queue : {&compute_queue(), copy_queue()}) {
    try {
      if (queue && !lost()) queue->wait_idle();
    } catch (const Error& e) {
      log_warn("closing {}: {}", info_.name, e.what());
    }
  }
  shut_down();
  context_->on_loss({});
}

hcq::MemoryBlock CudaDevice::map_block(size_t size_bytes, hcq::MemoryKind kind) {
  fail_if_lost();
  return memory_.map(size_bytes, kind);
}

std::vector<std::unique_ptr<hcq::Program>> CudaDevice::load(
    std::span<const render::Binary> binaries) {
  fail_if_lost();
  return load_programs(context_, binaries);
}

std::unique_ptr<hcq::Signal> CudaDevice::create_signal(uint64_t value) {
  return std::make_unique<CudaSignal>(words_, value);
}

std::optional<hcq::ForeignMemory> CudaDevice::over_host(void* data, size_t size_bytes) {
  fail_if_lost();
  return memory_.over_host(data, size_bytes);
}

std::vector<CUstream> CudaDevice::streams() const {
  std::vector<CUstream> all{compute_->stream()};
  if (copy_) all.push_back(copy_->stream());
  return all;
}

bool CudaDevice::reaches(const hcq::Device& other) const {
  const auto* peer = dynamic_cast<const CudaDevice*>(&other);
  if (!peer || peer == this || &peer->context_->api != &context_->api) return false;
  int can = 0;
  const CUresult code = context_->api.DeviceCanAccessPeer(&can, context_->facts.device,
                                                          peer->context_->facts.device);
  return code == CUDA_SUCCESS && can != 0;
}

// All memory of a context is let in at once.
void CudaDevice::share(const hcq::MemoryBlock&, hcq::Device& to) {
  const Context& peer = *static_cast<CudaDevice&>(to).context_;
  std::lock_guard lock(peers_mutex_);
  if (reached_by_.contains(peer.handle())) return;
  const Current current(peer);
  const CUresult code = peer.api.CtxEnablePeerAccess(context_->handle(), 0);
  if (code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) peer.check(code, "cuCtxEnablePeerAccess");
  reached_by_.insert(peer.handle());
}

void CudaDevice::lose(const std::string& reason) {
  std::string text = reason;
  for (const auto* queue : {&compute_, &copy_}) {
    if (!*queue) continue;
    if (const std::string running = (*queue)->in_flight(); !running.empty()) text += "; " + running;
  }
  declare_lost(text);
  fail_if_lost();
}

}  // namespace cuda

std::vector<Candidate> cuda_probe() {
  std::vector<Candidate> found;
  try {
    for (const cuda::Facts& f : cuda::list_devices(cuda::cuda_api())) {
      const std::string name = fmt::format("CUDA:{}", found.size());
      // Never the default: it is not proven on hardware yet.
      found.push_back({name, f.usable(), f.missing, cuda::describe(f, name), 0});
    }
  } catch (const Error& e) {
    return {{.name = "CUDA", .reason = e.what()}};
  }
  return found;
}

std::unique_ptr<hcq::Device> cuda_open(const std::string& selector) {
  const cuda::CudaApi& api = cuda::cuda_api();
  const std::vector<cuda::Facts> devices = cuda::list_devices(api);
  std::vector<Choice> choices;
  for (const cuda::Facts& f : devices) choices.push_back({f.name, f.uuid, f.name});
  const size_t i = choose("CUDA", choices, selector);
  const std::string name = fmt::format("CUDA:{}", i);
  if (!devices[i].usable())
    fail<Unsupported>("{} ({}) cannot be used: {}", name, devices[i].name, devices[i].missing);
  auto device =
      std::make_unique<cuda::CudaDevice>(std::make_shared<cuda::Context>(api, devices[i], name));
  hcq::close_in_children(*device);
  return device;
}

}  // namespace tuff::devices
