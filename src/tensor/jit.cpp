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
    outputs = run(given);
    graph = std::make_unique<engine::CapturedGraph>(recorder.take(), inputs);
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
  out.flops = r.flops;
  out.bytes = r.bytes;
  return out;
}

}  // namespace tuff
