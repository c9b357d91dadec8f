// A replay's floor on CUDA: one graph of the list's launches, one cuGraphLaunch and one
// cuStreamSynchronize per run.
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/os.h"
#include "devices/cuda/cuda_device.h"
#include "raw_replay.h"

namespace tuff::devices {
namespace cuda {
namespace {

// The driver's calls that a submission makes, timed. They stand in the table of functions, whose
// entries take no context: hence one per process.
struct TimedCalls {
  CudaApi before;
  std::atomic<uint64_t> total_ns{0};
};
TimedCalls timed;

template <auto kCall, class... Args>
CUresult timed_call(Args... args) {
  const uint64_t begin_ns = os::monotonic_ns();
  const CUresult result = (timed.before.*kCall)(args...);
  timed.total_ns += os::monotonic_ns() - begin_ns;
  return result;
}
template <auto kCall, class... Args>
void time_call(CudaApi& api, CUresult (*CudaApi::*)(Args...)) {
  api.*kCall = timed_call<kCall, Args...>;
}

class SubmitTimer {
 public:
  explicit SubmitTimer(CudaApi& api) : api_(api) {
    TUFF_CHECK(!timed.before.GraphLaunch, "one raw replay at a time");
    timed.before = api;
    time_call<&CudaApi::GraphLaunch>(api, &CudaApi::GraphLaunch);
    time_call<&CudaApi::MemcpyAsync>(api, &CudaApi::MemcpyAsync);
    time_call<&CudaApi::StreamWriteValue64>(api, &CudaApi::StreamWriteValue64);
    time_call<&CudaApi::CtxGetCurrent>(api, &CudaApi::CtxGetCurrent);
    time_call<&CudaApi::CtxSetCurrent>(api, &CudaApi::CtxSetCurrent);
    timed.total_ns = 0;
  }
  ~SubmitTimer() { api_ = std::exchange(timed.before, {}); }
  SubmitTimer(const SubmitTimer&) = delete;

 private:
  CudaApi& api_;
};

class CudaRawReplay final : public RawReplay {
 public:
  CudaRawReplay(CudaDevice& device, const hcq::CommandList& list)
      : context_(device.context()),
        // The table's own object is no constant (cuda_api).
        timer_(const_cast<CudaApi&>(context_->api)) {
    const Current current(*context_);
    std::vector<Work> work;
    hcq::Dependencies order;
    for (const hcq::Command& command : list.commands) {
      // Barriers: each launch comes after the one before it. Copies bring patched arguments to the
      // device; here they never change.
      const auto* d = std::get_if<hcq::DispatchCmd>(&command.body);
      if (!d) continue;
      const auto& program = dynamic_cast<const CudaProgram&>(*d->program);
      if (work.empty()) order.after.emplace_back();
      else order.after.push_back({uint32_t(work.size() - 1)});
      work.push_back(CudaLaunch{&program, d->args.address(), d->groups});
    }
    order.last = {uint32_t(work.size() - 1)};
    graph_.emplace(context_, work, order);
    context_->check(context_->api.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  ~CudaRawReplay() override {
    const Current current(*context_, std::nothrow);
    if (current) context_->release(context_->api.StreamDestroy(stream_), "cuStreamDestroy");
  }

  void run() override {
    const Current current(*context_);
    graph_->launch(stream_, {});
    context_->check(context_->api.StreamSynchronize(stream_), "cuStreamSynchronize");
  }

  uint64_t driver_submit_ns() const override { return timed.total_ns; }

 private:
  const std::shared_ptr<Context> context_;
  SubmitTimer timer_;
  std::optional<ExecGraph> graph_;
  CUstream stream_ = nullptr;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<RawReplay> cuda_raw_replay(hcq::Device& device, const hcq::CommandList& list) {
  return std::make_unique<cuda::CudaRawReplay>(dynamic_cast<cuda::CudaDevice&>(device), list);
}

}  // namespace tuff::devices
