#include <tuff/jit.h>

#include <algorithm>

#include "base/check.h"
#include "engine/jit/captured_graph.h"
#include "engine/realize/capture.h"
#include "engine/realize/launch.h"
#include "engine/jit/rebind.h"
#include "engine/stats.h"
#include "ir/walk.h"
#include "tensor/dynamic_axes.h"
#include "tensor/impl.h"
#include "tensor/jit_parts.h"
#include "tensor/positions.h"

namespace tuff {
namespace {

using ir::Shape;

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

// A result: where replays store it, and how it is shown to the caller. It lies in an argument of
// each call, in memory that replays store into (a slot, which several results may share), or in
// memory that stays the same one.
struct Output {
  int32_t argument = -1;      // it lies in this argument's memory, or
  int32_t slot = -1;          // in this one of the Jit's inputs, after the arguments', or
  Ref<engine::Buffer> fixed;  // here
  bool is_argument = false;   // it is the argument, not a part of it or in another shape
  bool leads = true;          // the first one in its slot
  bool shares_slot = false;   // they hold the memory for one another: each replay gets its own
  uint64_t offset = 0;        // bytes from the beginning of argument or slot
  DType dtype = DType::F32;
  Shape shape;  // symbolic where extents vary

  bool varies() const { return is_symbolic(shape); }
};

Tensor shown(const Ref<engine::Buffer>& b, const Shape& shape, const std::string& device) {
  return detail::wrap(ir::reshape(ir::buffer(b), shape), device);
}

// A part of memory that may hold more.
Ref<engine::Buffer> part(const Ref<engine::Buffer>& b, int64_t count, uint64_t offset, DType t) {
  if (offset == 0 && count == b->count && t == b->dtype) return b;
  return engine::Buffer::view(b, t, count, offset);
}

// What is made meanwhile is the function's own, and not state that it finds.
class FunctionCall {
 public:
  // `running`: of the Jit whose function it is.
  explicit FunctionCall(bool& running) : outer_(detail::function_call), running_(running) {
    if (running)
      fail<InvalidArgument>(
          "Jit: the function calls the Jit that runs it: call the function itself");
    static std::atomic<uint64_t> calls{0};
    detail::function_call = ++calls;
    running_ = true;
  }
  ~FunctionCall() {
    detail::function_call = outer_;
    running_ = false;
  }
  FunctionCall(const FunctionCall&) = delete;

 private:
  const uint64_t outer_;
  bool& running_;
};

// Its value is another one at another replay. What was assigned to is memory that replays store to.
bool varies(const TensorImpl& t, const engine::CapturedBytes& bytes) {
  if (t.assigned_by != std::thread::id()) return false;
  return std::ranges::any_of(ir::toposort(t.uop), [&](const ir::Node* n) {
    return n->op == ir::Op::Buffer && bytes.vary(*detail::buffer_of(ir::UOp(n)));
  });
}

// What the function asked of positions in an argument, or (-1) in memory of outside.
struct PositionRule {
  int32_t argument = -1;
  uint64_t accepted = 0;  // KnownIntegers::version() of what was found inside
  detail::PositionRules::Rule rule;
};

}  // namespace

void detail::refuse_left_behind() {
  fail<InvalidArgument>(
      "a tensor was used that a Jit's function computed while it was captured, and that is none of "
      "its results: replays do not compute it again. Return it, or assign() it to a tensor that "
      "was there before (a gradient: call Optimizer::step() inside, or return grad())");
}

struct Jit::State {
  explicit State(std::vector<DynamicAxis> axes) : dynamic(std::move(axes)) {}

  Function function;
  DynamicAxes dynamic;
  uint64_t calls = 0;
  std::vector<InputShape> shapes;
  std::vector<Ref<engine::Buffer>> inputs;
  std::vector<ir::UOp> given_before;  // by argument: the nodes of the replay before
  std::vector<Tensor> outputs;
  std::vector<Output> stored;      // by output
  bool outputs_move = false;       // some are shown by show_results()
  std::vector<int64_t> shown_for;  // the variables' values that results are shown for
  std::unique_ptr<engine::CapturedGraph> graph;
  uint64_t replays = 0;
  bool running = false;      // the function
  uint64_t call_id = 0;      // of the function, the last time
  std::vector<PositionRule> rules;
  std::vector<detail::PositionRules::Computed> computed;  // these are the last of `outputs`
  std::vector<Tensor> results;                            // the others, where there are such
  detail::JitParts parts;                                 // of tensors on several devices

  std::vector<Tensor> run(const std::vector<Tensor>& given,
                          const detail::PositionRules* positions = nullptr) {
    const FunctionCall here(running);
    call_id = detail::function_call;
    std::vector<Tensor> made = parts.results(function(parts.arguments(given)));
    if (positions)
      for (const auto& c : positions->computed()) made.push_back(c.index);
    // Assignments the function made but did not realize belong to the step all the same.
    std::vector<Tensor> all = detail::pending_assigns();
    for (const Tensor& r : made) {
      if (!r.defined()) fail<InvalidArgument>("Jit: the function returned an undefined tensor");
      all.push_back(r);
    }
    Tensor::realize(all);
    return made;
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
      inputs[i] = engine::Buffer::make(device, from->dtype, ir::element_count(shape));
      const engine::BoundCall copy =
          engine::BoundCopy{engine::Buffer::view(inputs[i], from->dtype, from->count, 0), from};
      engine::execute({&copy, 1});
      out.push_back(shown(inputs[i], shape, shapes[i].device));
    }
    return out;
  }

  void capture(const std::vector<Tensor>& given) {
    take_inputs(given);
    const std::vector<Tensor> arguments = symbolic_arguments(given);
    const detail::BoundVariables bound(dynamic.by_name());
    const detail::PositionRules positions;
    engine::Capture recorder;
    outputs = run(arguments, &positions);
    computed = positions.computed();
    for (auto& c : computed) c.index = Tensor();
    keep_rules(positions, arguments.size(), recorder.bytes());
    stored.clear();  // of a capture that failed
    for (size_t i = 0; i < outputs.size(); i++)
      stored.push_back(output(i, arguments, recorder.bytes()));
    outputs_move = std::ranges::any_of(
        stored, [](const Output& o) { return o.argument >= 0 || o.varies() || o.fixed; });
    mark_left_behind(recorder.bytes());
    graph = std::make_unique<engine::CapturedGraph>(recorder.take(), inputs, dynamic.variables());
    for (size_t i = 0; i < given.size(); i++) inputs[i] = detail::buffer_of(given[i]);
    given_before.assign(given.size(), ir::UOp());
    show_results(given);
    require_known_positions();
    require_computed_positions();
  }

  // The host knows nothing of memory that the function fills.
  void keep_rules(const detail::PositionRules& asked, size_t arguments,
                  const engine::CapturedBytes& bytes) {
    rules.clear();
    for (const detail::PositionRules::Rule& r : asked.rules()) {
      const Ref<engine::Buffer> memory = detail::buffer_of(ir::UOp(r.buffer));
      const auto end = inputs.begin() + std::ptrdiff_t(arguments);
      const auto at = std::find(inputs.begin(), end, memory);
      const auto is_same = [&](const PositionRule& o) {
        return o.rule.value == r.value && o.rule.allowed == r.allowed;
      };
      if (std::ranges::any_of(rules, is_same)) continue;
      if (at != end)
        rules.push_back({int32_t(at - inputs.begin()), 0, r});
      else if (bytes.was_there_before(*memory) &&
               engine::input_slot(*memory, std::span(inputs).first(arguments)) < 0)
        rules.push_back({-1, 0, r});
    }
  }

  // Nothing is asked of memory that the host knows nothing of, or the same as at the call before.
  void require_known_positions() {
    for (PositionRule& r : rules) {
      const Ref<engine::Buffer> memory =
          r.argument >= 0 ? inputs[size_t(r.argument)] : detail::buffer_of(ir::UOp(r.rule.buffer));
      const uint64_t version = memory->known_integers().version();
      if (version == r.accepted) continue;
      detail::require_known_inside(r.rule, r.argument >= 0 ? memory : Ref<engine::Buffer>());
      r.accepted = version;
    }
  }

  [[gnu::noinline]] void require_computed_positions() {
    const size_t visible = outputs.size() - computed.size();
    for (size_t i = 0; i < computed.size(); i++)
      detail::require_computed_inside(computed[i].allowed, outputs[visible + i]);
    if (!computed.empty()) results.assign(outputs.begin(), outputs.begin() + ptrdiff_t(visible));
  }

  void mark_left_behind(const engine::CapturedBytes& bytes) const {
    detail::for_each_live([&](TensorImpl& t) {
      if (t.made_in != call_id || !varies(t, bytes)) return;
      const auto is_it = [&](const Tensor& o) { return o.impl() == &t; };
      if (std::ranges::none_of(outputs, is_it)) t.left_behind = true;
    });
  }

  Output output(size_t i, std::span<const Tensor> arguments, const engine::CapturedBytes& bytes) {
    Output o;
    o.shape = detail::uop(outputs[i])->shape;
    const Ref<engine::Buffer> b = detail::buffer_of(outputs[i]);
    if (!b) return o;
    o.dtype = b->dtype;
    o.argument = engine::input_slot(*b, std::span(inputs).first(arguments.size()));
    if (o.argument >= 0) {
      const size_t a = size_t(o.argument);
      o.offset = b->byte_offset() - inputs[a]->byte_offset();
      o.is_argument = detail::uop(outputs[i]) == detail::uop(arguments[a]);
    } else if (bytes.made_anew(*b)) {
      o.slot = slot_of(b->root());
      o.offset = b->byte_offset();
      for (Output& other : stored) {
        if (other.slot != o.slot) continue;
        o.leads = false;
        o.shares_slot = other.shares_slot = true;
      }
    } else {
      o.fixed = b;  // memory from outside, or made of numbers by the function: it stays what it is
    }
    return o;
  }

  // Where replays are told the memory that results lie in.
  int32_t slot_of(engine::Buffer& root) {
    const auto first = inputs.begin() + std::ptrdiff_t(shapes.size());
    const auto at = std::find_if(first, inputs.end(),
                                 [&](const Ref<engine::Buffer>& b) { return b.get() == &root; });
    const auto slot = int32_t(at - inputs.begin());
    if (at == inputs.end()) inputs.emplace_back(&root);
    return slot;
  }

  // What lies in an argument is shown in this call's. Results of symbolic extent are shown as views
  // of the elements that this call has.
  void show_results(const std::vector<Tensor>& given) {
    const bool anew = !std::ranges::equal(shown_for, dynamic.values());
    if (anew) shown_for.assign(dynamic.values().begin(), dynamic.values().end());
    for (size_t i = 0; i < outputs.size(); i++) {
      const Output& o = stored[i];
      if (o.argument >= 0)
        show_argument(i, given[size_t(o.argument)]);
      else if (o.varies() ? anew : o.fixed && lies_elsewhere(i))
        show(i);
    }
  }

  void show_argument(size_t i, const Tensor& given) {
    if (stored[i].is_argument)
      outputs[i] = given;
    else
      show(i);
  }

  // An assignment between replays left this result the old contents, in memory of its own.
  bool lies_elsewhere(size_t i) const {
    const auto u = detail::uop(outputs[i]);
    const ir::Node* n = u.get();
    while (n->op == ir::Op::Reshape) n = n->src(0).get();
    return n->op == ir::Op::Buffer &&
           n->get<Ref<ir::Storage>>().get() != stored[i].fixed.get();
  }

  void show(size_t i) {
    const Output& o = stored[i];
    const Ref<engine::Buffer>& memory =
        o.fixed ? o.fixed : inputs[size_t(o.slot >= 0 ? o.slot : o.argument)];
    const Shape extents = dynamic.extents(o.shape);
    outputs[i] = shown(part(memory, ir::element_count(extents), o.offset, o.dtype), extents,
                       outputs[i].device());
  }

  // Whether others than this Jit hold it: as a tensor, in a graph, or as an argument of this call.
  bool is_held(size_t i) const {
    if (outputs[i].impl()->ref_count() > 1) return true;
    const auto u = detail::uop(outputs[i]);
    const ir::Node* n = u.get();
    for (;; n = n->src(0).get()) {
      if (n->refs.load(std::memory_order_relaxed) > 1) return true;
      if (n->op == ir::Op::Buffer) break;
    }
    const engine::Buffer* b = inputs[size_t(stored[i].slot)].get();
    // `inputs` has one, its node or the view that is shown the other; the view has its node's.
    if (b->ref_count() > 2) return true;
    const ir::Storage* own = n->get<Ref<ir::Storage>>().get();
    if (own != b && own->ref_count() > 1) return true;
    return std::any_of(inputs.begin(), inputs.begin() + std::ptrdiff_t(shapes.size()),
                       [&](const Ref<engine::Buffer>& in) { return &in->root() == b; });
  }

  void replace_held_outputs() {
    for (size_t i = 0; i < outputs.size(); i++) {
      const Output& o = stored[i];
      if (o.slot >= 0 && o.leads && (o.shares_slot || is_held(i))) replace(o.slot);
    }
  }

  void replace(int32_t slot) {
    Ref<engine::Buffer>& b = inputs[size_t(slot)];
    b = engine::Buffer::make(engine::Device::get(b->device), b->dtype, b->count);
    for (size_t i = 0; i < outputs.size(); i++)
      if (stored[i].slot == slot) show(i);
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

  // What was bound by the replay before is the same memory, shape and type.
  void bind(const std::vector<Tensor>& given) {
    const auto is_bound = [&](size_t i) {
      return detail::uop(given[i]).get() == given_before[i].get();
    };
    for (size_t i = 0; i < given.size(); i++)
      if (!is_bound(i)) check(i, given[i]);
    if (dynamic.any()) dynamic.read(given);
    for (size_t i = 0; i < given.size(); i++) {
      if (is_bound(i)) continue;
      Ref<engine::Buffer> b = detail::buffer_of(given[i]);
      if (!b) fail<InvalidArgument>("Jit: argument {} is not realized", i);
      inputs[i] = std::move(b);
      given_before[i] = detail::uop(given[i]);
    }
  }

  void replay(const std::vector<Tensor>& given) {
    if (given.size() != shapes.size())
      fail<InvalidArgument>("Jit: captured with {} arguments, called with {}", shapes.size(),
                            given.size());
    {
      const detail::BuildGuard section;
      bind(given);
      replace_held_outputs();
      if (outputs_move) show_results(given);
    }
    if (!rules.empty()) require_known_positions();
    graph->replay(inputs, dynamic.values());
    replays++;
    if (!computed.empty()) [[unlikely]]
      require_computed_positions();
  }
};

Jit::Jit(Function function, JitOptions options)
    : state_(std::make_unique<State>(std::move(options.dynamic))) {
  if (!function) fail<InvalidArgument>("Jit: no function given");
  state_->function = std::move(function);
}
Jit::~Jit() = default;

const std::vector<Tensor>& Jit::operator()(const std::vector<Tensor>& given) {
  State& s = *state_;
  s.parts.let_go();
  const std::vector<Tensor>& inputs = s.parts.taken_apart(given, s.graph != nullptr);
  if (s.dynamic.any() && s.parts.any_argument())
    fail<Unsupported>("Jit: an axis varies, and an argument is on several devices");
  if (s.graph) {
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
  return s.parts.put_together(s.computed.empty() ? s.outputs : s.results);
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
