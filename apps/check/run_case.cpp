#include "check/run_case.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/check.h"
#include "base/os.h"
#include "check/expected.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/program/compile_options.h"
#include "engine/realize/linear.h"
#include "ir/walk.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::Op;
using ir::Shape;
using ir::UOp;

constexpr const char* kVerdicts[] = {"pass", "fail", "unsupported", "crash", "hang"};

Shape shape_of(const ir::IntVec& extents) { return {extents.begin(), extents.end()}; }

UOp sink_of(const UOp& root, const std::string& device) {
  if (root->device && (root->op == Op::Assign || !ir::is_movement(root->op))) return root;
  ir::Arg place;
  if (!root->device) place = ir::Placement{{device}};
  return ir::make(Op::Contiguous, root->dtype, {root}, place);
}

const std::string& renderer_of(const std::string& device) {
  return engine::Device::get(device)->target().renderer;
}

// SPIR-V's denormals are kept only where a module asks for it, and none of tuff's does.
bool keeps_denormals(const std::string& device) { return renderer_of(device) != "spirv"; }

HostArray download(engine::Buffer& b, const UOp& root, const ir::VariableValues& variables) {
  HostArray a{root->dtype, {}, {}};
  for (const ir::Dim& d : root->shape)
    a.shape.push_back(d.is_const() ? d.value() : ir::evaluate_index(d.uop(), variables));
  // The memory has room for the largest extents; values stand at its front.
  std::vector<std::byte> all(b.size_bytes());
  if (!all.empty()) b.copyout(all.data());
  all.resize(size_t(a.count()) * size_bytes(a.dtype));
  a.bytes = std::move(all);
  return a;
}

}  // namespace

const char* name(Verdict v) { return kVerdicts[size_t(v)]; }

Verdict verdict_named(const std::string& text) {
  for (size_t i = 0; i < std::size(kVerdicts); i++) {
    if (text == kVerdicts[i]) return Verdict(i);
  }
  fail<InvalidArgument>("'{}' is no verdict", text);
}

BoundCase::BoundCase(const Case& c, const std::string& device, uint64_t seed)
    : case_(c), device_(device), inputs_(c.inputs(seed)) {
  const auto on = engine::Device::get(device);
  Roots shaped;
  for (const HostArray& a : inputs_) {
    auto memory = engine::Buffer::make(on, a.dtype, a.count());
    if (!a.bytes.empty()) memory->copyin(a.bytes.data());
    leaves_.push_back(ir::buffer(memory));
    shaped.push_back(ir::reshape(leaves_.back(), shape_of(a.shape)));
  }
  roots_ = c.build(shaped, device);
  for (const UOp& r : roots_) sinks_.push_back(sink_of(r, device));
  const auto target_of = [](const std::string& d) -> const Target& {
    return engine::Device::get(d)->target();
  };
  schedule_ = sched::schedule(sinks_, target_of, {}, engine::schedule_steps()).schedule;
}

std::vector<UOp> BoundCase::asts() const {
  std::vector<UOp> out;
  for (const sched::Call& call : schedule_->calls) {
    if (call.kind == sched::CallKind::Kernel && call.device == device_) out.push_back(call.ast);
  }
  return out;
}

Arrays BoundCase::interpret_with(const Arrays& inputs) const {
  ir::Bindings bindings;
  std::deque<std::vector<std::byte>> memory;
  for (size_t i = 0; i < inputs.size(); i++) {
    std::vector<std::byte>& bytes = memory.emplace_back(inputs[i].bytes);
    bindings.storages[leaves_[i]->get<Ref<ir::Storage>>()->id] = bytes;
  }
  // What is neither an input nor computed (the state of a generator) is read as it is.
  for (const ir::Node* n : ir::toposort(roots_)) {
    if (n->op != Op::Buffer) continue;
    const auto& storage = n->get<Ref<ir::Storage>>();
    if (bindings.storages.count(storage->id)) continue;
    auto* buffer = dynamic_cast<engine::Buffer*>(storage.get());
    TUFF_CHECK(buffer, "storage {} is no engine buffer", storage->id);
    std::vector<std::byte>& bytes = memory.emplace_back(buffer->size_bytes());
    if (!bytes.empty()) buffer->copyout(bytes.data());
    bindings.storages[storage->id] = bytes;
  }
  bindings.variables = case_.variables;
  return ir::interpret(roots_, bindings);
}

Arrays BoundCase::interpret() const { return interpret_with(inputs_); }

std::optional<Arrays> BoundCase::interpret_flushed() const {
  Arrays flushed = inputs_;
  bool any = false;
  for (HostArray& a : flushed) {
    if (auto without = without_denormals(a)) {
      a = std::move(*without);
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return interpret_with(flushed);
}

Arrays BoundCase::run() {
  const auto buffers = engine::realize(sinks_, case_.variables);
  Arrays out;
  for (size_t i = 0; i < buffers.size(); i++)
    out.push_back(download(*buffers[i], roots_[i], case_.variables));
  return out;
}

namespace {

// The budget that holds on a device.
double budget_on(const Budget& b, const std::string& device) {
  return renderer_of(device) == "c" ? b.host_ulp : b.vulkan_ulp;
}

// The expected results of a case, and what they are where denormals may be flushed.
struct Expected {
  Arrays want;
  std::optional<Arrays> flushed;
};
Expected expected_of(const BoundCase& bound, const Case& c, const std::string& device,
                     const std::string& against, uint64_t seed) {
  if (!against.empty()) return {BoundCase(c, against, seed).run(), std::nullopt};
  Expected out{bound.interpret(), std::nullopt};
  if (keeps_denormals(device)) return out;
  out.flushed = bound.interpret_flushed();
  if (!out.flushed) out.flushed = out.want;  // results may be denormal all the same
  return out;
}

void judge(CaseResult& r, const Case& c, const Arrays& got, const Expected& expected) {
  TUFF_CHECK(got.size() == expected.want.size(), "{} results, {} expected", got.size(),
             expected.want.size());
  for (size_t i = 0; i < got.size(); i++) {
    const Comparison one = compare(got[i], expected.want[i], r.budget_ulp, c.budget.scale,
                                   expected.flushed ? &(*expected.flushed)[i] : nullptr);
    r.error_ulp = std::max(r.error_ulp, one.error_ulp);
    if (one.equal || r.verdict == Verdict::Fail) continue;
    r.verdict = Verdict::Fail;
    r.message = got.size() > 1 ? fmt::format("result {}, {}", i, one.message) : one.message;
  }
}

void run_and_judge(CaseResult& r, const Case& c, const std::string& device,
                   const std::string& against, uint64_t seed, Arrays* outputs) {
  BoundCase bound(c, device, seed);
  // Two devices may each use up the budget in their own direction.
  r.budget_ulp = budget_on(c.budget, device);
  if (!against.empty()) r.budget_ulp += budget_on(c.budget, against);
  const Expected expected = expected_of(bound, c, device, against, seed);
  const uint64_t begin = os::monotonic_ns();
  const Arrays got = bound.run();
  r.time_ms = double(os::monotonic_ns() - begin) / 1e6;
  if (outputs) *outputs = got;
  judge(r, c, got, expected);
}

}  // namespace

CaseResult run_case(const Case& c, const std::string& device, const std::string& against,
                    uint64_t seed, Arrays* outputs) {
  CaseResult r;
  r.name = c.name;
  r.op = c.op;
  r.dtype = c.dtype;
  try {
    run_and_judge(r, c, device, against, seed, outputs);
  } catch (const Unsupported& e) {
    r.verdict = Verdict::Unsupported;
    r.message = e.what();
  } catch (const DeviceLost& e) {
    r.verdict = Verdict::Crash;
    r.message = e.what();
  } catch (const std::exception& e) {
    r.verdict = Verdict::Fail;
    r.message = e.what();
  }
  r.expected = is_expected(r, c, device);
  return r;
}

}  // namespace tuff::check
