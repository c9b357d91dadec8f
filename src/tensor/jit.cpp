#include <tuff/jit.h>

#include <algorithm>

#include "base/check.h"
#include "engine/jit/capture.h"
#include "engine/stats.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

struct InputShape {
  Sizes sizes;
  DType dtype;
  std::string device;
};

std::string text(const InputShape& s) {
  return fmt::format("{} {} on {}", name(s.dtype), detail::text(s.sizes), s.device);
}

}  // namespace

struct Jit::State {
  Function function;
  uint64_t calls = 0;
  std::vector<InputShape> shapes;
  std::vector<Ref<engine::Buffer>> inputs;
  std::vector<Tensor> outputs;
  std::vector<int32_t> output_slots;  // of `inputs`, after the arguments'; -1: stays where it is
  std::unique_ptr<engine::CapturedGraph> graph;
  uint64_t replays = 0;

  std::vector<Tensor> run(const std::vector<Tensor>& given) {
    std::vector<Tensor> results = function(given);
    // Assignments the function made but did not realize belong to the step all the same.
    std::vector<Tensor> all = detail::pending_assigns();
    for (const Tensor& r : results) {
      if (!r.defined()) fail<InvalidArgument>("Jit: the function returned an undefined tensor");
      all.push_back(r);
    }
    Tensor::realize(all);
    return results;
  }

  void take_inputs(const std::vector<Tensor>& given) {
    shapes.clear();
    inputs.clear();
    for (size_t i = 0; i < given.size(); i++) {
      Tensor t = given[i];
      t.realize();
      shapes.push_back({t.sizes(), t.dtype(), t.device()});
      inputs.push_back(detail::buffer_of(t));
      for (size_t j = 0; j < i; j++) {
        if (&inputs[j]->root() == &inputs[i]->root())
          fail<InvalidArgument>("Jit: arguments {} and {} share memory", j, i);
      }
    }
  }

  void capture(const std::vector<Tensor>& given) {
    take_inputs(given);
    engine::Capture recorder;
    const uint64_t last_before = graph::last_storage_id();
    outputs = run(given);
    for (size_t i = 0; i < outputs.size(); i++) {
      output_slots.push_back(is_replaceable(i, last_before) ? int32_t(inputs.size()) : -1);
      if (output_slots.back() >= 0) inputs.push_back(detail::buffer_of(outputs[i]));
    }
    graph = std::make_unique<engine::CapturedGraph>(recorder.take(), inputs);
  }

  // What the captured calls made anew, whole and for this result alone. An argument that is handed
  // on, or a tensor that the function assigns to, is its caller's and stays what it is.
  bool is_replaceable(size_t i, uint64_t last_before) const {
    const Ref<engine::Buffer> b = detail::buffer_of(outputs[i]);
    if (!b || b->id <= last_before || &b->root() != b.get()) return false;
    for (size_t j = 0; j < outputs.size(); j++) {
      const Ref<engine::Buffer> other = detail::buffer_of(outputs[j]);
      if (j != i && other && &other->root() == b.get()) return false;
    }
    return true;
  }

  // By somebody besides this Jit: as a tensor, in a graph, or as an argument of this call.
  bool is_held(size_t i) const {
    const graph::UOp& u = detail::uop(outputs[i]);
    if (outputs[i].impl()->ref_count() > 1) return true;
    for (const graph::Node* n = u.get();; n = n->src(0).get()) {
      if (n->refs.load(std::memory_order_relaxed) > 1) return true;
      if (n->op == graph::Op::Buffer) break;
    }
    const engine::Buffer* b = inputs[size_t(output_slots[i])].get();
    if (b->ref_count() > 2) return true;  // its node and `inputs` have one each
    return std::any_of(inputs.begin(), inputs.begin() + std::ptrdiff_t(shapes.size()),
                       [&](const Ref<engine::Buffer>& in) { return &in->root() == b; });
  }

  void replace_held_outputs() {
    for (size_t i = 0; i < outputs.size(); i++) {
      if (output_slots[i] < 0 || !is_held(i)) continue;
      Ref<engine::Buffer>& b = inputs[size_t(output_slots[i])];
      const std::shared_ptr<engine::Device> device = engine::Device::get(b->device);
      b = make_ref<engine::Buffer>(device, b->dtype, b->count);
      outputs[i] = detail::wrap(graph::reshape(graph::buffer(b), detail::uop(outputs[i])->shape),
                                outputs[i].device());
    }
  }

  void check(size_t i, const Tensor& t) const {
    const graph::UOp& u = detail::uop(t);
    const InputShape& s = shapes[i];
    bool same =
        u->dtype == s.dtype && t.impl()->device == s.device && u->shape.size() == s.sizes.size();
    for (size_t d = 0; same && d < s.sizes.size(); d++) same = u->shape[d] == s.sizes[d];
    if (same) return;
    fail<InvalidArgument>("Jit: argument {} was {} when captured and is {} now", i, text(s),
                          text({t.sizes(), t.dtype(), t.device()}));
  }

  void replay(const std::vector<Tensor>& given) {
    if (given.size() != shapes.size())
      fail<InvalidArgument>("Jit: captured with {} arguments, called with {}", shapes.size(),
                            given.size());
    for (size_t i = 0; i < given.size(); i++) {
      check(i, given[i]);
      Ref<engine::Buffer> b = detail::buffer_of(given[i]);
      if (!b) fail<InvalidArgument>("Jit: argument {} is not realized", i);
      inputs[i] = std::move(b);
    }
    replace_held_outputs();
    graph->replay(inputs);
    replays++;
  }
};

Jit::Jit(Function function) : state_(std::make_unique<State>()) {
  if (!function) fail<InvalidArgument>("Jit: no function given");
  state_->function = std::move(function);
}
Jit::~Jit() = default;

const std::vector<Tensor>& Jit::operator()(const std::vector<Tensor>& inputs) {
  State& s = *state_;
  if (s.graph) {
    s.replay(inputs);
  } else if (s.calls == 0) {
    s.take_inputs(inputs);
    s.outputs = s.run(inputs);
  } else {
    s.capture(inputs);
  }
  s.calls++;
  return s.outputs;
}

bool Jit::captured() const { return state_->graph != nullptr; }
const engine::CapturedGraph* Jit::graph() const { return state_->graph.get(); }

JitStats Jit::stats() const {
  JitStats out;
  out.replays = state_->replays;
  if (!state_->graph) return out;
  const engine::ReplayStats& r = state_->graph->stats();
  out.kernels = r.kernels;
  out.copies = r.copies;
  out.barriers = r.barriers;
  out.submits_per_replay = r.submits_per_replay;
  out.rebind_copies = r.rebind_copies;
  out.flops = r.flops;
  out.bytes = r.bytes;
  return out;
}

}  // namespace tuff
