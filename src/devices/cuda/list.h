// CudaList: a command list as calls on a stream. What is replayed has its launches and copies in
// graphs; waits and signals, whose values are others each time, stand between them. Made and
// submitted by the queue.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "devices/cuda/graph.h"
#include "devices/cuda/signal.h"
#include "devices/driver_list.h"
#include "devices/flights.h"

namespace tuff::devices::cuda {

struct StreamWait {
  const CudaSignal* signal = nullptr;
  uint32_t slot = 0;
};
struct StreamSignal {
  const CudaSignal* signal = nullptr;
  uint32_t slot = 0;
};
struct HostFunction {
  void (*fn)(void*) = nullptr;
  void* context = nullptr;
};
struct EventMark {
  CUevent event = nullptr;
};
using Step = std::variant<CudaLaunch, CudaCopy, std::unique_ptr<ExecGraph>, StreamWait,
                          StreamSignal, HostFunction, EventMark>;

class CudaList final : public DriverList {
 public:
  CudaList(hcq::Queue& queue, hcq::EncodeUse use, const hcq::CommandList& list,
           std::shared_ptr<Context> context);
  ~CudaList() override;

  const std::shared_ptr<Context> context;
  std::vector<Step> steps;
  std::vector<CUevent> events;  // of its timestamps
  KernelNames kernels;          // that it runs, for errors
};

}  // namespace tuff::devices::cuda
