// Runs cases in child processes, so that a driver that crashes or hangs costs one case and not the
// run: a child gets a batch and reports each case; when it dies or stalls, the case that was
// running is the crash or the hang, and a new child goes on with the rest. Called by `tuff check`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/result_json.h"
#include "check/worker.h"

namespace tuff::check {

struct PoolOptions {
  std::vector<std::string> worker;  // command of a worker: program and arguments
  uint32_t jobs = 1;                // children at a time
  double timeout_s = 60;            // a case that takes longer hangs
  uint32_t batch = 64;              // cases per child
};

// Called by one thread at a time, with the index of the task.
using OnResult = std::function<void(size_t task, const CaseResult&)>;
// What a child drew under TUFF_RANDOM_OPTS; nothing of those that died.
using OnOpts = std::function<void(size_t task, const Json& counts)>;
// A task is one device's share of the work; its `cases` are all of them, the pool makes batches.
// Returns early, children killed, once os::interrupted().
void run_pool(const std::vector<WorkOrder>& tasks, const PoolOptions& options,
              const OnResult& on_result, const OnOpts& on_opts = {});

}  // namespace tuff::check
