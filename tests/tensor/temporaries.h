// Memory that schedules need besides inputs and results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tuff/autograd.h>
#include <tuff/tensor.h>
#include "engine/device.h"
#include "sched/schedule.h"
#include "tensor/impl.h"

namespace tuff::test {

// Of one schedule of these tensors.
inline uint64_t temporary_bytes(const Tensors& tensors) {
  const detail::BuildGuard section;
  std::vector<ir::UOp> sinks;
  for (const Tensor& t : tensors)
    sinks.push_back(ir::make(ir::Op::Contiguous, t.dtype(), {detail::uop(t)}));
  const auto made = sched::schedule(sinks, [](const std::string& d) -> const Target& {
    return engine::Device::get(d)->target();
  });
  uint64_t bytes = 0;
  for (const sched::Arena& a : made.schedule->arenas) bytes += a.size_bytes;
  return bytes;
}

}  // namespace tuff::test
