#include <tuff/jit.h>

#include <algorithm>

#include "base/check.h"
#include "engine/jit/capture.h"
#include "engine/stats.h"
#include "tensor/dynamic_axes.h"
#include "tensor/impl.h"

TUFF_DECLARE_REPLAY_SECTION(tensor);

namespace tuff {
namespace {

using graph::Shape;

struct InputShape {
  Shape shape;  // as it was given; dynamic axes may differ
  DType dtype;
  std::string device;
};

std::string text(const InputShape& s) {
  return fmt::format("{} {} on {}", name(s.dtype), detail::text(detail::sizes_of(s.shape)),
                     s.device);
}
InputShape shape_of(const Tensor& t) {
  return {detail::uop(t)->shape, t.dtype(), t.impl()->device};
}

// A result: where replays store it, and how it is shown to the caller.
struct Output {
  int32_t slot = -1;          // of the Jit's inputs, after the arguments'; -1: stays where it is
  int32_t argument = -1;      // it is this argument, whose extents vary
  Shape shape;                // symbolic where extents vary
  Ref<engine::Buffer> fixed;  // its memory, with room for the largest extents, without a slot

  bool varies() const { return is_symbolic(shape); }
};

Tensor shown(const Ref<engine::Buffer>& b, const Shape& shape, const std::string& device) {
  return detail::wrap(graph::reshape(graph::buffer(b), shape), device);
}

// What is made meanwhile is the function's own, and not state that it finds.
class FunctionCall {
 public:
  FunctionCall() : outer_(detail::function_call) {
    static std::atomic<uint64_t> calls{0};
    detail::function_call = ++calls;
  }
  ~FunctionCall() { detail::function_call = outer_; }
  FunctionCall(const FunctionCall&) = delete;

 private:
  const uint64_t outer_;
};

}  // namespace

struct Jit::State {
  explicit State(std::vector<DynamicAxis> axes) : dynamic(std::move(axes)) {}

  Function function;
  DynamicAxes dynamic;
  uint64_t calls = 0;
  std::vector<InputShape> shapes;
  std::vector<Ref<engine::Buffer>> inputs;
  std::vector<Tensor> outputs;
  std::vector<Output> stored;      // by output
  std::vector<int64_t> shown_for;  // the variables' values that results are shown for
  std::unique_ptr<engine::CapturedGraph> graph;
  uint64_t replays = 0;
  hcq::Footprint footprint;  // of what a replay reads here

  std::vector<Tensor> run(const std::vector<Tensor>& given) {
    const FunctionCall here;
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
      shapes.push_back(shape_of(t));
      inputs.push_back(detail::buffer_of(t));
      for (size_t j = 0; j < i; j++) {
        if (&inputs[j]->root() == &inputs[i]->root())
          fail<InvalidArgument>("Jit: arguments {} and {} share memory", j, i);
      }
    }
  }

  // What the function sees while it is captured: arguments of symbolic extent, in memory that has
  // room for the largest, with the values of this call at its front.
  std::vector<Tensor> symbolic_arguments(const std::vector<Tensor>& given) {
    std::vector<Tensor> out;
    for (size_t i = 0; i < given.size(); i++) {
      const Shape shape = dynamic.shape(i, shapes[i].shape);
      if (!is_symbolic(shape)) {
        out.push_back(given[i]);
        continue;
      }
      if (given[i].requires_grad())
        fail<Unsupported>("Jit: argument {} has requires_grad and an axis that varies", i);
      const Ref<engine::Buffer> from = inputs[i];
      const std::shared_ptr<engine::Device> device = engine::Device::get(from->device);
      inputs[i] = make_ref<engine::Buffer>(device, from->dtype, graph::element_count(shape));
      const engine::BoundCall copy =
          engine::BoundCopy{make_ref<engine::Buffer>(inputs[i], from->dtype, from->count, 0), from};
      engine::execute({&copy, 1});
      out.push_back(shown(inputs[i], shape, shapes[i].device));
    }
    return out;
  }

  void capture(const std::vector<Tensor>& given) {
    take_inputs(given);
    const std::vector<Tensor> arguments = symbolic_arguments(given);
    const detail::BoundVariables bound(dynamic.by_name());
    engine::Capture recorder;
    const uint64_t last_before = graph::last_storage_id();
    outputs = run(arguments);
    stored.clear();  // of a capture that failed
    for (size_t i = 0; i < outputs.size(); i++) stored.push_back(output(i, last_before));
    graph = std::make_unique<engine::CapturedGraph>(recorder.take(), inputs, dynamic.variables());
    for (size_t i = 0; i < given.size(); i++) inputs[i] = detail::buffer_of(given[i]);
    show_varying(given);
    foresee_replays(given);
  }

  void foresee_replays(const std::vector<Tensor>& given) {
    footprint.add(TUFF_REPLAY_SECTION(tensor));
    footprint.add(this, sizeof(*this));
    footprint.add(detail::Building::shared_state(), 1);
    footprint.add(shapes);
    footprint.add(inputs);
    footprint.add(outputs);
    footprint.add(stored);
    for (const Tensor& t : given) foresee(t);
    for (const Tensor& t : outputs) foresee(t);
    for (const Ref<engine::Buffer>& b : inputs) footprint.add_object(*b);
  }

  void foresee(const Tensor& t) {
    footprint.add(t.impl(), sizeof(*t.impl()));
    const auto u = detail::uop(t);
    for (const graph::Node* n = u.get();; n = n->src(0).get()) {
      footprint.add(n, sizeof(*n));
      if (n->src().empty()) break;
    }
  }

  Output output(size_t i, uint64_t last_before) {
    Output o;
    o.shape = detail::uop(outputs[i])->shape;
    const Ref<engine::Buffer> b = detail::buffer_of(outputs[i]);
    for (size_t a = 0; a < shapes.size() && o.varies(); a++) {
      if (b.get() == inputs[a].get()) o.argument = int32_t(a);
    }
    if (o.argument >= 0) return o;
    if (is_replaceable(i, last_before)) {
      o.slot = int32_t(inputs.size());
      inputs.push_back(b);
    } else {
      o.fixed = b;
    }
    return o;
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

  // Results of symbolic extent are shown as views of the elements that this call has.
  void show_varying(const std::vector<Tensor>& given) {
    const bool anew = !std::ranges::equal(shown_for, dynamic.values());
    if (anew) shown_for.assign(dynamic.values().begin(), dynamic.values().end());
    for (size_t i = 0; i < outputs.size(); i++) {
      const Output& o = stored[i];
      if (o.argument >= 0) {
        const Ref<engine::Buffer> b = detail::buffer_of(given[size_t(o.argument)]);
        outputs[i] = shown(b, dynamic.extents(o.shape), outputs[i].device());
      } else if (o.varies() ? anew : o.fixed && lies_elsewhere(i)) {
        show(i);
      }
    }
  }

  // An assignment between replays left this result the old contents, in memory of its own.
  bool lies_elsewhere(size_t i) const {
    const auto u = detail::uop(outputs[i]);
    const graph::Node* n = u.get();
    while (n->op == graph::Op::Reshape) n = n->src(0).get();
    return n->op == graph::Op::Buffer &&
           n->get<Ref<graph::Storage>>().get() != stored[i].fixed.get();
  }

  void show(size_t i) {
    const Output& o = stored[i];
    const Ref<engine::Buffer>& memory = o.slot >= 0 ? inputs[size_t(o.slot)] : o.fixed;
    const Shape extents = dynamic.extents(o.shape);
    const auto view = o.varies() ? make_ref<engine::Buffer>(memory, memory->dtype,
                                                            graph::element_count(extents), 0)
                                 : memory;
    outputs[i] = shown(view, extents, outputs[i].device());
  }

  // By somebody besides this Jit: as a tensor, in a graph, or as an argument of this call.
  bool is_held(size_t i) const {
    const auto u = detail::uop(outputs[i]);
    if (outputs[i].impl()->ref_count() > 1) return true;
    const graph::Node* n = u.get();
    for (;; n = n->src(0).get()) {
      if (n->refs.load(std::memory_order_relaxed) > 1) return true;
      if (n->op == graph::Op::Buffer) break;
    }
    const engine::Buffer* b = inputs[size_t(stored[i].slot)].get();
    // `inputs` has one, its node or the view that is shown the other; the view has its node's.
    if (b->ref_count() > 2) return true;
    if (stored[i].varies() && n->get<Ref<graph::Storage>>()->ref_count() > 1) return true;
    return std::any_of(inputs.begin(), inputs.begin() + std::ptrdiff_t(shapes.size()),
                       [&](const Ref<engine::Buffer>& in) { return &in->root() == b; });
  }

  void replace_held_outputs() {
    for (size_t i = 0; i < outputs.size(); i++) {
      if (stored[i].slot < 0 || !is_held(i)) continue;
      Ref<engine::Buffer>& b = inputs[size_t(stored[i].slot)];
      const std::shared_ptr<engine::Device> device = engine::Device::get(b->device);
      b = make_ref<engine::Buffer>(device, b->dtype, b->count);
      show(i);
    }
  }

  void check(size_t i, const Tensor& t) const {
    const auto u = detail::uop(t);
    const InputShape& s = shapes[i];
    bool same =
        u->dtype == s.dtype && t.impl()->device == s.device && u->shape.size() == s.shape.size();
    for (size_t d = 0; same && d < s.shape.size(); d++)
      same = u->shape[d] == s.shape[d] || dynamic.varies(i, d);
    if (same) return;
    fail<InvalidArgument>("Jit: argument {} was {} when captured and is {} now", i, text(s),
                          text(shape_of(t)));
  }

  void bind(const std::vector<Tensor>& given) {
    for (size_t i = 0; i < given.size(); i++) check(i, given[i]);
    if (dynamic.any()) dynamic.read(given);
    for (size_t i = 0; i < given.size(); i++) {
      Ref<engine::Buffer> b = detail::buffer_of(given[i]);
      if (!b) fail<InvalidArgument>("Jit: argument {} is not realized", i);
      inputs[i] = std::move(b);
    }
  }

  void replay(const std::vector<Tensor>& given) {
    if (given.size() != shapes.size())
      fail<InvalidArgument>("Jit: captured with {} arguments, called with {}", shapes.size(),
                            given.size());
    {
      const detail::Building section;
      bind(given);
      replace_held_outputs();
      show_varying(given);
    }
    graph->replay(inputs, dynamic.values());
    replays++;
  }
};

Jit::Jit(Function function, JitOptions options)
    : state_(std::make_unique<State>(std::move(options.dynamic))) {
  if (!function) fail<InvalidArgument>("Jit: no function given");
  state_->function = std::move(function);
}
Jit::~Jit() = default;

TUFF_REPLAY_CODE(tensor)
const std::vector<Tensor>& Jit::operator()(const std::vector<Tensor>& inputs) {
  State& s = *state_;
  if (s.graph) {
    hcq::Footprint::prefetch(s.footprint.lines());
    s.graph->prefetch();
    s.replay(inputs);
  } else {
    s.dynamic.read(inputs);
    if (s.calls == 0) {
      s.take_inputs(inputs);
      s.outputs = s.run(inputs);
    } else {
      s.capture(inputs);
    }
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
  out.host_copies = r.host_copies;
  out.barriers = r.barriers;
  out.submits_per_replay = r.submits_per_replay;
  out.rebind_copies = r.rebind_copies;
  out.flops = r.flops;
  out.bytes = r.bytes;
  return out;
}

}  // namespace tuff
