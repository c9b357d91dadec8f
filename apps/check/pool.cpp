#include "check/pool.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/os.h"
#include "check/random_case.h"
#include "check/result_json.h"
#include "check/suite.h"

namespace tuff::check {
namespace {

constexpr uint64_t kSlice = 100'000'000;  // how soon an interrupt is seen, ns

struct Batch {
  size_t task;
  std::vector<std::string> cases;
};

struct Shared {
  const std::vector<WorkOrder>& tasks;
  const PoolOptions& options;
  const OnResult& on_result;
  const OnOpts& on_opts;
  std::deque<Batch> batches;
  std::mutex mutex;  // of batches and the callbacks

  bool take(Batch& b) {
    std::lock_guard lock(mutex);
    if (batches.empty()) return false;
    b = std::move(batches.front());
    batches.pop_front();
    return true;
  }
  void report(size_t task, const CaseResult& r) {
    std::lock_guard lock(mutex);
    on_result(task, r);
  }
  void report_opts(size_t task, const Json& counts) {
    std::lock_guard lock(mutex);
    if (on_opts) on_opts(task, counts);
  }
};

// One batch, through as many children as it takes.
class BatchRun {
 public:
  BatchRun(Shared& shared, Batch batch)
      : shared_(shared), task_(batch.task), order_(shared.tasks[batch.task]) {
    remaining_.assign(batch.cases.begin(), batch.cases.end());
  }

  void run() {
    while (!remaining_.empty() && !os::interrupted()) one_child();
  }

 private:
  uint64_t timeout_ns() const { return uint64_t(shared_.options.timeout_s * 1e9); }
  // Preparing compiles for every case of the batch.
  uint64_t allowed_ns() const {
    return timeout_ns() * (preparing_ ? 1 + remaining_.size() / 8 : 1);
  }

  os::Environment environment() const {
    // The pool's patience ends before the engine's, so that a stalled device is a hang.
    return {{"TUFF_TIMEOUT_MS", std::to_string(int64_t(shared_.options.timeout_s * 1000) + 60000)}};
  }

  void one_child() {
    order_.cases.assign(remaining_.begin(), remaining_.end());
    current_.clear();
    preparing_ = false;
    ready_ = false;
    os::Process child(shared_.options.worker, to_text(order_), environment());
    uint64_t last = os::monotonic_ns();
    for (;;) {
      if (os::interrupted()) return;
      const auto line = child.read_line(kSlice);
      if (line) {
        last = os::monotonic_ns();
        if (hear(*line)) return;
      } else if (child.at_end()) {
        return ended(child);
      } else if (os::monotonic_ns() - last > allowed_ns()) {
        return stalled(child);
      }
    }
  }

  // True: the child has done what it can.
  bool hear(const std::string& line) {
    const Json j = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!j.is_object() || !j.contains("event")) return false;  // a driver's own words
    const std::string event = j.at("event").get<std::string>();
    if (event == "prepare") preparing_ = true;
    if (event == "ready") {
      preparing_ = false;
      ready_ = true;
    }
    if (event == "begin") current_ = j.at("case").get<std::string>();
    if (event == "opts") shared_.report_opts(task_, j.at("counts"));
    if (event == "result") finished(result_from_json(j));
    return event == "done" || event == "lost";
  }

  void finished(const CaseResult& r) {
    std::erase(remaining_, r.name);
    current_.clear();
    shared_.report(task_, r);
  }

  void ended(os::Process& child) {
    const int code = child.wait().exit_code;
    const std::string how = code > 128 ? os::signal_name(code - 128) : fmt::format("exit {}", code);
    gone(Verdict::Crash, with_words(how, child));
  }

  void stalled(os::Process& child) {
    child.kill();
    child.wait();
    gone(Verdict::Hang,
         with_words(fmt::format("no answer within {} s", shared_.options.timeout_s), child));
  }

  static std::string with_words(const std::string& how, const os::Process& child) {
    std::string words = child.error_tail();
    while (!words.empty() && words.back() == '\n') words.pop_back();
    return words.empty() ? how : how + ": " + words;
  }

  // The child is gone before it was done. If it was compiling for the whole batch, the next one
  // compiles case by case, so that the guilty one shows.
  void gone(Verdict verdict, const std::string& message) {
    if (preparing_) {
      order_.prepare = false;
    } else if (!current_.empty()) {
      finished(described(failed(current_, verdict, message)));
    } else if (!ready_) {  // it did not even open the device
      for (const std::string& name : std::vector(remaining_.begin(), remaining_.end()))
        finished(failed(name, verdict, "opening the device: " + message));
    }
  }

  CaseResult failed(const std::string& name, Verdict verdict, const std::string& message) const {
    CaseResult r;
    r.name = name;
    if (random_case_seed(name)) r.op = kRandomOp;
    if (const Case* c = find_case(name)) {
      r.op = c->op;
      r.dtype = c->dtype;
    }
    r.verdict = verdict;
    r.expected = false;
    r.message = message;
    return r;
  }

  // A child that only describes writes the folder: this process opens no device.
  CaseResult described(CaseResult r) {
    if (order_.out.empty() || !order_.replay.empty()) return r;
    WorkOrder order = order_;
    order.cases = {r.name};
    order.describe = true;
    order.result = r;
    os::Process child(shared_.options.worker, to_text(order), environment());
    const uint64_t deadline = os::monotonic_ns() + timeout_ns();
    while (!child.at_end() && os::monotonic_ns() < deadline && !os::interrupted()) {
      if (const auto line = child.read_line(kSlice)) r.reproducer = folder_in(*line, r.reproducer);
    }
    if (r.reproducer.empty()) r.message += with_words(" (no reproducer", child) + ")";
    return r;
  }

  static std::string folder_in(const std::string& line, const std::string& otherwise) {
    const Json j = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    return j.is_object() && j.contains("reproducer") ? j.at("reproducer").get<std::string>()
                                                     : otherwise;
  }

  Shared& shared_;
  size_t task_;
  WorkOrder order_;
  std::deque<std::string> remaining_;
  std::string current_;
  bool preparing_ = false, ready_ = false;
};

std::deque<Batch> batches_of(const std::vector<WorkOrder>& tasks, const PoolOptions& options) {
  std::deque<Batch> out;
  for (size_t t = 0; t < tasks.size(); t++) {
    const std::vector<std::string>& cases = tasks[t].cases;
    // Small runs are shared out too; large ones do not pay for more children than need be.
    const size_t share = (cases.size() + options.jobs - 1) / std::max(1u, options.jobs);
    const size_t size = std::clamp<size_t>(share, 1, options.batch);
    for (size_t i = 0; i < cases.size(); i += size) {
      const size_t end = std::min(i + size, cases.size());
      out.push_back({t, {cases.begin() + int64_t(i), cases.begin() + int64_t(end)}});
    }
  }
  return out;
}

}  // namespace

void run_pool(const std::vector<WorkOrder>& tasks, const PoolOptions& options,
              const OnResult& on_result, const OnOpts& on_opts) {
  Shared shared{tasks, options, on_result, on_opts, batches_of(tasks, options), {}};
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < std::max(1u, options.jobs); i++) {
    threads.emplace_back([&shared] {
      for (Batch b; !os::interrupted() && shared.take(b);) BatchRun(shared, std::move(b)).run();
    });
  }
}

}  // namespace tuff::check
