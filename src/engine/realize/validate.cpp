#include "engine/realize/validate.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/env.h"
#include "base/log.h"
#include "engine/program/compile_options.h"
#include "ir/error_bound.h"
#include "ir/interpret.h"
#include "ir/walk.h"
#include "kernel/pipeline.h"

namespace tuff::engine {
namespace {

constexpr const char* kInterpreter = "INTERPRETER";
// Where many elements exceed the plain budget, those that differ most are analysed: as many as
// make about so many steps of the kernel's reductions, about a second, and no fewer than the least.
constexpr int64_t kAnalysedSteps = 1 << 20;
constexpr int64_t kLeastAnalysed = 16;

using Bytes = std::vector<std::byte>;
using ArgumentBytes = std::vector<Bytes>;  // by argument

ArgumentBytes contents_of(const BoundKernel& k) {
  ArgumentBytes out;
  for (const Ref<Buffer>& b : k.buffers) b->copyout(out.emplace_back(b->size_bytes()).data());
  return out;
}

ir::VariableValues variables_of(const BoundKernel& k) {
  ir::VariableValues out;
  for (size_t i = 0; i < k.scalars.size(); i++)
    out[k.kernel->variables[i]->get<ir::VariableArg>().name] = k.scalars[i];
  return out;
}

// A machine on which nothing has to be decomposed: every op is what graph says it means.
Target interpreter_target() {
  Target t = builtin_target("c-x86-64");
  t.device = t.identity = kInterpreter;
  TargetFeatures& f = t.features;
  f.f16 = f.bf16 = f.f8 = f.exp2 = f.log2 = f.sin = true;
  return t;
}

// The kernel as the interpreter runs it: one workgroup, no heuristics.
const kernel::LinearKernel& plain_kernel(const ir::UOp& ast) {
  static std::mutex mutex;
  static auto& lowered = *std::make_unique<ir::UOpMap<kernel::LinearKernel>>().release();
  static const Target target = interpreter_target();
  std::lock_guard lock(mutex);
  auto it = lowered.find(ast);
  if (it == lowered.end()) it = lowered.emplace(ast, kernel::lower_with(ast, target, {})).first;
  return it->second;
}

void run_interpreted(const BoundKernel& k, ArgumentBytes& contents) {
  const kernel::LinearKernel& plain = plain_kernel(k.kernel->ast);
  ir::LinearRun run;
  for (const auto& a : plain.buffers) {
    const auto same = std::find_if(k.kernel->buffers.begin(), k.kernel->buffers.end(),
                                   [&](const auto& mine) { return mine.slot == a.slot; });
    TUFF_CHECK(same != k.kernel->buffers.end(), "slot {} is missing", a.slot);
    run.buffers.resize(std::max(run.buffers.size(), size_t(a.slot) + 1));
    run.buffers[size_t(a.slot)] = contents[size_t(same - k.kernel->buffers.begin())];
  }
  run.variables = variables_of(k);
  ir::interpret_linear(plain.ops, run);
}

void run_on(const std::shared_ptr<Device>& judge, const BoundKernel& k, ArgumentBytes& contents,
            const RunCall& run) {
  BoundKernel other;
  other.kernel = judge->programs().get({&k.kernel->ast, 1}).at(0);
  TUFF_CHECK(other.kernel->buffers.size() == k.buffers.size(), "{} has {} arguments on {} and {}",
             k.kernel->name, k.buffers.size(), judge->name(), other.kernel->buffers.size());
  const ir::VariableValues values = variables_of(k);
  for (size_t i = 0; i < k.buffers.size(); i++) {
    const Buffer& b = *k.buffers[i];
    other.buffers.push_back(Buffer::make(judge, b.dtype, b.count));
    other.buffers.back()->copyin(contents[i].data());
  }
  bind_variables(other, values);
  run(*judge, other);
  contents = contents_of(other);
}

struct Difference {
  size_t argument;
  int64_t element;
  Scalar mine, other;
  double distance;
  double allowed = 0;
  bool stored = false;  // the kernel says that it stores the element
};

class Comparison {
 public:
  Comparison(const BoundKernel& k, const ArgumentBytes& before, bool nonfinite_matters)
      : k_(k), before_(before), nonfinite_matters_(nonfinite_matters) {}

  // The elements that are further apart than a right implementation may be; the worst first.
  std::vector<Difference> run(const ArgumentBytes& mine, const ArgumentBytes& other) {
    const double plain = ir::plain_ulps(k_.kernel->ast);
    for (size_t i = 0; i < k_.buffers.size(); i++) {
      if (!k_.kernel->buffers[i].written || mine[i] == other[i]) continue;
      const DType t = k_.buffers[i]->dtype;
      for (int64_t e = 0; e < k_.buffers[i]->count; e++) add(i, e, t, mine[i], other[i], plain);
    }
    if (suspects_.empty()) return {};
    const auto worse = [](const Difference& a, const Difference& b) {
      return a.distance > b.distance || std::isnan(a.distance);
    };
    std::stable_sort(suspects_.begin(), suspects_.end(), worse);
    const int64_t terms = ir::terms_of_element(k_.kernel->ast);
    const auto most = size_t(std::max(kAnalysedSteps / terms, kLeastAnalysed));
    if (suspects_.size() > most) suspects_.resize(most);
    analyse();
    std::erase_if(suspects_, [](const Difference& d) { return d.distance <= d.allowed; });
    return std::move(suspects_);
  }

 private:
  void add(size_t i, int64_t e, DType t, const Bytes& mine, const Bytes& other, double plain) {
    const size_t at = size_t(e) * size_bytes(t);
    const Scalar a = load_scalar(t, mine.data() + at), b = load_scalar(t, other.data() + at);
    if (a == b) return;
    const double x = a.as_double(), y = b.as_double();
    if (x == y && is_float(t)) return;
    if (std::isnan(x) && std::isnan(y)) return;
    double distance = std::abs(x - y);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (!nonfinite_matters_) return;
      distance = INFINITY;
    }
    if (!is_float(t)) distance = std::max(distance, 1.0);  // doubles may round it to 0
    if (distance > plain * ir::ulp_of(t, std::max(std::abs(x), std::abs(y))) || !is_float(t))
      suspects_.push_back({i, e, a, b, distance});
  }

  void analyse() {
    ir::KernelInputs inputs;
    inputs.variables = variables_of(k_);
    std::unordered_map<int32_t, size_t> argument;
    for (size_t i = 0; i < k_.buffers.size(); i++) {
      const int32_t slot = k_.kernel->buffers[i].slot;
      inputs.buffers.resize(std::max(inputs.buffers.size(), size_t(slot) + 1));
      inputs.buffers[size_t(slot)] = before_[i];
      argument[slot] = i;
    }
    std::unordered_map<int64_t, Difference*> by_place;
    const auto place = [&](size_t i, int64_t e) {
      return e * int64_t(k_.buffers.size()) + int64_t(i);
    };
    for (Difference& d : suspects_) by_place[place(d.argument, d.element)] = &d;
    const auto find = [&](const ir::StoredElement& s) -> Difference* {
      const auto it = by_place.find(place(argument.at(s.slot), s.element));
      return it == by_place.end() ? nullptr : it->second;
    };
    ir::bound_errors(
        k_.kernel->ast, inputs, [&](const ir::StoredElement& s) { return find(s) != nullptr; },
        [&](const ir::StoredElement& s, const ir::Bounded& b) {
          find(s)->allowed = 2 * b.error;  // both may be off
          find(s)->stored = true;
        });
  }

  const BoundKernel& k_;
  const ArgumentBytes& before_;
  const bool nonfinite_matters_;
  std::vector<Difference> suspects_;
};

std::string value_text(const Scalar& s) {
  return is_float(s.dtype) ? fmt::format("{:.9g}", s.as_double()) : std::to_string(s.as_int());
}

[[noreturn]] void report(const BoundKernel& k, const std::vector<Difference>& wrong,
                         const std::string& mine, const std::string& judge) {
  const Difference& d = wrong[0];
  throw ValidationFailed(fmt::format(
      "TUFF_VALIDATE: kernel {}: element {} of argument {} ({} x {}) is {} on {} and {} on {}; "
      "they "
      "may differ by {:.3g}{}. {} elements are that far apart",
      k.kernel->name, d.element, k.kernel->buffers[d.argument].slot, k.buffers[d.argument]->count,
      name(d.mine.dtype), value_text(d.mine), mine, value_text(d.other), judge, d.allowed,
      d.stored ? "" : ", since the kernel does not store it", wrong.size()));
}

// The judge's name as TUFF_VALIDATE spells it: INTERPRETER, or a device.
struct Judge {
  std::string name;
  std::shared_ptr<Device> device;  // null: the interpreter
};
Judge find_judge() {
  std::string name = env_text(Env::TUFF_VALIDATE);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  if (name == kInterpreter) return {name, nullptr};
  try {
    auto device = Device::get(env_text(Env::TUFF_VALIDATE));
    return {device->name(), device};
  } catch (const InvalidArgument& e) {
    fail<InvalidArgument>("TUFF_VALIDATE: {}; or INTERPRETER", e.what());
  }
}

bool computes(const Device& d) { return d.target().renderer != "null"; }

bool judged(const BoundKernel& k, const Judge& judge, ArgumentBytes& contents, const RunCall& run) {
  try {
    if (judge.device) {
      run_on(judge.device, k, contents, run);
    } else {
      run_interpreted(k, contents);
    }
    return true;
  } catch (const Unsupported& e) {
    log_warn("TUFF_VALIDATE: kernel {} is not checked by {}: {}", k.kernel->name, judge.name,
             e.what());
    return false;
  }
}

bool runs_nothing(const BoundKernel& k) {
  return std::ranges::find(k.groups, 0u) != k.groups.end();
}

}  // namespace

bool validating() { return !env_text(Env::TUFF_VALIDATE).empty(); }

void run_validated(const BoundCall& call, const RunCall& run) {
  if (checking_bounds())
    fail<InvalidArgument>("TUFF_CHECK_OOB and TUFF_VALIDATE are set: choose one of them");
  Device& device = device_of(call);
  const auto* k = std::get_if<BoundKernel>(&call);
  const Judge judge = find_judge();
  if (k && k->kernel->by_user())
    log_warn("TUFF_VALIDATE: kernel {} is not checked: its user wrote it", k->kernel->name);
  if (!k || k->kernel->by_user() || runs_nothing(*k) || judge.device.get() == &device ||
      !computes(device) || (judge.device && !computes(*judge.device)))
    return run(device, call);
  const ArgumentBytes before = contents_of(*k);
  run(device, call);
  ArgumentBytes expected = before;
  if (!judged(*k, judge, expected, run)) return;
  const bool nonfinite_matters =
      device.target().features.signed_zero_inf_nan &&
      (!judge.device || judge.device->target().features.signed_zero_inf_nan);
  const auto wrong = Comparison(*k, before, nonfinite_matters).run(contents_of(*k), expected);
  if (!wrong.empty()) report(*k, wrong, device.name(), judge.name);
}

}  // namespace tuff::engine
