// Runs a Schedule on the host by evaluating its kernels' ASTs, with temporaries in real arenas, and
// evaluates tensor graphs directly: the two sides that the scheduler's tests compare.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/uop.h"
#include "sched/schedule.h"

namespace tuff::sched::testing {

using Values = std::vector<Scalar>;
using Bytes = std::vector<std::byte>;

// Contents by Storage::id.
using Contents = std::map<uint64_t, Values>;

struct RunResult {
  std::vector<Values> sinks;
  Contents storages;
};

// Every access is checked against the bounds of its buffer.
RunResult run_schedule(const Scheduled& s, const Contents& contents);

// The meaning of a tensor graph: an Assign is its value, a Buffer the contents given.
class TensorEvaluator {
 public:
  explicit TensorEvaluator(const Contents& contents) : contents_(contents) {}
  const Values& eval(const ir::UOp& u);

 private:
  Values compute(const ir::Node& n);
  const Contents& contents_;
  std::unordered_map<const ir::Node*, Values> memo_;
};

const Target& host_target(const std::string& device);
// Multiples of 0.002 from -2 to 2 in every input.
Contents random_contents(const Scheduled& s, uint32_t seed);
// Schedules the sinks, runs them on random contents and compares with the direct meaning: a failure
// where a value is further from the right one than tolerance * (1 + its magnitude). The schedule.
std::shared_ptr<const Schedule> expect_meaning(const std::vector<ir::UOp>& sinks,
                                               double tolerance,
                                               const TargetOf& target_of = host_target);

ir::UOp host_buffer(std::initializer_list<int64_t> shape, DType t = DType::F32,
                       const std::string& device = "CPU");
int kernel_count(const Schedule& s);

}  // namespace tuff::sched::testing
