// Runs cases on one device and compares with the interpreter, or with another device. Called by the
// worker (worker.h) and by the random graphs. Must never know processes: a driver that crashes or
// hangs takes the caller with it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/compare.h"
#include "sched/schedule.h"

namespace tuff::check {

enum class Verdict : uint8_t { Pass, Fail, Unsupported, Crash, Hang };
const char* name(Verdict v);
Verdict verdict_named(const std::string& text);  // InvalidArgument if there is none

struct CaseResult {
  std::string name, op;
  DType dtype = DType::Void;
  Verdict verdict = Verdict::Pass;
  bool expected = true;  // pass, or listed in expected_unsupported.def
  double error_ulp = 0, budget_ulp = 0;
  double time_ms = 0;
  std::string message;     // what differs, or the error; what is missing if unsupported
  std::string reproducer;  // folder, if one was written
};

// One case on its device, with memory and schedule, not yet run.
class BoundCase {
 public:
  // Uploads the inputs, builds and schedules. Throws what the engine throws.
  BoundCase(const Case& c, const std::string& device, uint64_t seed);
  const Arrays& inputs() const { return inputs_; }
  const Roots& leaves() const { return leaves_; }  // the Buffer nodes of the inputs
  const Roots& roots() const { return roots_; }
  const sched::Schedule& schedule() const { return *schedule_; }
  // The kernels of the case, for compiling many cases at once.
  std::vector<ir::UOp> asts() const;
  Arrays interpret() const;  // with the inputs as they are
  // With denormals as zeros; none if there are none.
  std::optional<Arrays> interpret_flushed() const;
  Arrays run();  // on the device; blocks

 private:
  Arrays interpret_with(const Arrays& inputs) const;
  const Case& case_;
  std::string device_;
  Arrays inputs_;
  Roots leaves_;
  Roots roots_, sinks_;
  std::shared_ptr<const sched::Schedule> schedule_;
};

// `against`: what the device must agree with, empty for the interpreter, or a device's name. Never
// throws for what the case does: an error is a verdict. DeviceLost gives Crash, after which the
// process can run nothing more on that device. `outputs` receives what the device gave.
CaseResult run_case(const Case& c, const std::string& device, const std::string& against,
                    uint64_t seed, Arrays* outputs = nullptr);

}  // namespace tuff::check
