// realize: from pending graphs to memory, and memory back into every graph that waited for it.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "engine/realize/capture.h"
#include "engine/realize/linear.h"
#include "ir/device_group.h"
#include "ir/extents.h"
#include "ir/walk.h"
#include "tensor/leaves.h"
#include "tensor/impl.h"
#include "tensor/positions.h"
#include "tensor/shards.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::uop;
using ir::Op;
using ir::UOp;

namespace {

bool realized(const UOp& u) {
  return detail::buffer_of(u) || !detail::buffers_of_shards(u).empty();
}

using Buffers = std::unordered_set<const ir::Node*>;

// The Buffer nodes an Assign ends up writing.
void add_assigned_buffers(const ir::Node* n, Buffers& out) {
  while (n->op != Op::Buffer && n->op != Op::Shards) n = n->src(0).get();
  if (n->op == Op::Buffer) out.insert(n);
  if (n->op == Op::Shards)
    for (const UOp& part : n->src()) add_assigned_buffers(part.get(), out);
}

// What a realization has to know of its graphs, by one walk.
struct Found {
  Buffers assigned;
  bool has_history = false;
};
Found found_in(std::span<const UOp> roots) {
  Found out;
  for (const ir::Node* n : ir::toposort(roots)) {
    if (n->op == Op::Assign) add_assigned_buffers(n, out.assigned);
    out.has_history = out.has_history || ir::history_of(*n);
  }
  return out;
}

// Of Buffers. Allocates nothing for what is nothing but memory.
template <class Wanted>
bool reads_any(const UOp& u, const Wanted& wanted) {
  const ir::Node* n = u.get();
  while (n->op == Op::Reshape || (n->op == Op::Detach && n->src_count == 1)) n = n->src(0).get();
  if (n->op == Op::Buffer) return wanted(n);
  if (n->op == Op::Shards)
    return std::ranges::any_of(n->src(), [&](const UOp& part) { return reads_any(part, wanted); });
  return std::ranges::any_of(ir::toposort(u), wanted);
}

// The scheduler stores rows at their largest extents; what tensors are read from has its elements
// side by side, however many there are: as one row of symbolic length.
UOp side_by_side(const UOp& sink) {
  ir::Shape rows = sink->shape;
  const auto last =
      std::find_if(rows.rbegin(), rows.rend(), [](const ir::Dim& d) { return !d.is_const(); });
  const ir::Dim count = ir::count_of({rows.begin(), last.base()});
  rows.erase(rows.begin(), last.base());
  rows.insert(rows.begin(), count);
  const UOp& value = sink->op == Op::Contiguous ? sink->src(0) : sink;
  return ir::make(Op::Contiguous, sink->dtype, {ir::reshape(value, rows)}, sink->arg);
}

// Values with the memory alone: schedules are kept, and what they were made of must not be.
std::vector<UOp> as_memory(std::vector<UOp> sinks) {
  ir::UOpMap<UOp> memory;
  for (const UOp& n : ir::values_with_history(sinks)) memory.emplace(n, n->src(0));
  return memory.empty() ? sinks : ir::substitute(sinks, memory);
}

// Nothing but memory, in whatever shape.
bool is_memory(UOp u) {
  while (u->op == Op::Reshape || u->op == Op::Detach) u = u->src(0);
  return realized(u);
}

// Memory of an assignment may have been more than the tensor.
void tell_known(engine::Buffer& b, const std::optional<engine::Extremes>& known) {
  if (known && b.dtype == b.root().dtype && b.count == b.root().count)
    b.known_integers().learn(*known);
}

// One realization: no thread builds while it chooses what to compute, nor while memory takes the
// place of nodes. In between others build on, unless memory is overwritten.
class Realization {
 public:
  void add(TensorImpl& t) {
    if (realized(t.uop)) return;
    // What is made of numbers alone may be wanted on several devices.
    const bool is_new = t.uop->device ? seen_.insert(t.uop.get()).second
                                      : numbers_[t.uop].emplace(t.device, UOp()).second;
    if (!is_new) return;
    impls_.emplace_back(&t);
    roots_.push_back(t.uop);
  }
  template <class Overwritten>
  void add_old_versions(const Overwritten& overwritten, const TensorImpl* writer);
  void run();

 private:
  template <class Overwritten>
  void drop_histories(const Overwritten& overwritten);
  void keep_states(const detail::Leaves& leaves, size_t first, const Buffers& assigned);
  UOp with_history(const TensorImpl& t, const UOp& root, const UOp& memory,
                   const detail::Leaves& leaves, const Buffers& assigned) const;
  void substitute_everywhere(const ir::UOpMap<UOp>& map);

  const detail::RealizeGuard turn_;
  // Released last, when others may build: one of them may be the last owner of memory.
  std::vector<Tensor> states_;
  std::vector<Ref<TensorImpl>> impls_, waiting_;
  std::vector<UOp> roots_, replaced_, lost_;  // roots_ are of impls_
  bool roots_have_history_ = false;
  std::unordered_set<const ir::Node*> seen_;
  // Nodes that know no device: the memory of each of those on which they were wanted.
  ir::UOpMap<std::map<std::string, UOp>> numbers_;
  ir::UOpMap<UOp> kept_states_;  // by a generator's Buffer, what it holds until now
  std::optional<detail::ReplaceGuard> alone_{std::in_place};
};

// Whether it is memory, of which no graph is kept. Allocates nothing.
bool is_bare(const UOp& u) {
  const ir::Node* n = u.get();
  for (; n->op == Op::Reshape || n->op == Op::Detach; n = n->src(0).get())
    if (const ir::History* h = ir::history_of(*n); h && h->computed) return false;
  return n->op == Op::Buffer || n->op == Op::Shards;
}

// What values had been computed of is no longer there. Allocates nothing where there are no graphs.
template <class Overwritten>
void Realization::drop_histories(const Overwritten& overwritten) {
  std::vector<Ref<TensorImpl>> all;
  std::vector<UOp> graphs;
  const auto visit = [&](TensorImpl& t) {
    if (!t.uop->device || is_bare(t.uop) || (seen_.count(t.uop.get()) && !roots_have_history_))
      return;
    all.emplace_back(&t);
    graphs.push_back(t.uop);
  };
  detail::for_each_live([&visit](TensorImpl& t) { visit(t); });
  ir::UOpMap<UOp> lost;
  for (const UOp& n : ir::values_with_history(graphs)) {
    const ir::History& h = *ir::history_of(*n);
    if (h.computed && ir::any_below(h.computed, overwritten))
      lost.emplace(n, ir::with_lost_history(n->src(0), h.leaf));
  }
  if (lost.empty()) return;
  const std::vector<UOp> left = ir::substitute(graphs, lost);
  for (size_t i = 0; i < all.size(); i++) all[i]->uop = left[i];
  lost_ = std::move(graphs);
  for (size_t i = 0; i < roots_.size(); i++) {
    if (roots_[i] == impls_[i]->uop) continue;
    seen_.insert(impls_[i]->uop.get());
    roots_[i] = impls_[i]->uop;
  }
}

// Tensors that still want the contents of memory that is about to be overwritten are computed now;
// those that are nothing but that memory, as equal tensors and reshaped ones are, get their own.
// Allocates nothing where there are none.
template <class Overwritten>
void Realization::add_old_versions(const Overwritten& overwritten, const TensorImpl* writer) {
  drop_histories(overwritten);
  std::vector<Ref<TensorImpl>> readers;
  const auto visit = [&](TensorImpl& t) {
    if (&t == writer || !t.uop->device || seen_.count(t.uop.get())) return;
    if (reads_any(t.uop, overwritten)) readers.emplace_back(&t);
  };
  detail::for_each_live([&visit](TensorImpl& t) { visit(t); });
  std::sort(readers.begin(), readers.end(),
            [](const auto& a, const auto& b) { return a->uop->serial < b->uop->serial; });
  for (const auto& t : readers) {
    if (is_memory(t->uop)) t->uop = ir::make(Op::Contiguous, t->uop->dtype, {t->uop});
    add(*t);
  }
}

// Replaces computed nodes by their memory in every live graph. A node without a device may be a part
// of graphs on several: it is replaced where it is all that a tensor is.
void Realization::substitute_everywhere(const ir::UOpMap<UOp>& map) {
  std::vector<std::pair<Ref<TensorImpl>, UOp>> of_numbers;
  detail::for_each_live([&](TensorImpl& t) {
    if (realized(t.uop)) return;
    if (!t.uop->device) {
      const auto wanted = numbers_.find(t.uop);
      if (wanted == numbers_.end()) return;
      const auto memory = wanted->second.find(t.device);
      if (memory != wanted->second.end()) of_numbers.emplace_back(&t, memory->second);
      return;
    }
    waiting_.emplace_back(&t);
    replaced_.push_back(t.uop);
  });
  const std::vector<UOp> mapped = ir::substitute(replaced_, map);
  for (size_t i = 0; i < waiting_.size(); i++) {
    if (!(mapped[i] == replaced_[i])) waiting_[i]->uop = mapped[i];
  }
  for (auto& [t, memory] : of_numbers) t->uop = memory;
}

// A leaf below what is to have a history; empty: it is to have none. What is assigned to is memory
// and no value.
UOp leaf_below(const TensorImpl& t, const UOp& root, const detail::Leaves& leaves) {
  const ir::Node* base = root.get();
  while (base->op == Op::Reshape) base = base->src(0).get();
  const bool is_value = !t.requires_grad && base->op != Op::Assign && is_float(root->dtype);
  return is_value && root->device ? leaves.below(root) : UOp();
}

// Gradients draw the numbers of a dropout anew. The state that they are drawn of is about to be
// overwritten; its few words are copied where a history reads them and nothing else that is lost.
void Realization::keep_states(const detail::Leaves& leaves, size_t first, const Buffers& assigned) {
  Buffers states;
  for (const Tensor& s : states_) add_assigned_buffers(uop(s).get(), states);
  const auto is_state = [&](const ir::Node* n) { return states.count(n) > 0; };
  const auto is_lost = [&](const ir::Node* n) { return assigned.count(n) && !is_state(n); };
  Buffers read;
  for (size_t i = first; i < roots_.size() && !states.empty(); i++) {
    if (!leaf_below(*impls_[i], roots_[i], leaves) || reads_any(roots_[i], is_lost)) continue;
    reads_any(roots_[i], [&](const ir::Node* n) {
      if (is_state(n)) read.insert(n);
      return false;
    });
  }
  for (const Tensor& s : std::vector<Tensor>(states_)) {
    UOp state = uop(s)->src(0);
    while (state->op == Op::Reshape) state = state->src(0);
    if (!read.count(state.get())) continue;
    const UOp copy = ir::make(Op::Contiguous, state->dtype, {state});
    kept_states_.emplace(state, copy);
    states_.push_back(detail::derive(s, copy));
    add(*states_.back().impl());
  }
}

// Memory, through which gradients flow as through what it was computed by.
UOp Realization::with_history(const TensorImpl& t, const UOp& root, const UOp& memory,
                              const detail::Leaves& leaves, const Buffers& assigned) const {
  const UOp leaf = detail::buffer_of(memory) ? leaf_below(t, root, leaves) : UOp();
  if (!leaf) return memory;
  const UOp computed = kept_states_.empty() ? root : ir::substitute(root, kept_states_);
  const auto overwritten = [&](const ir::Node* n) { return assigned.count(n) > 0; };
  return !assigned.empty() && reads_any(computed, overwritten)
             ? ir::with_lost_history(memory, leaf)
             : ir::with_history(memory, computed, leaf);
}

void Realization::run() {
  if (impls_.empty()) return;
  const size_t asked = impls_.size();  // behind them are those that are computed before it is too late
  states_ = detail::pending_generator_states();
  for (const Tensor& s : states_) add(*s.impl());
  const Found found = found_in(roots_);
  const Buffers& assigned = found.assigned;
  roots_have_history_ = found.has_history;
  if (!assigned.empty())
    add_old_versions([&](const ir::Node* n) { return assigned.count(n) > 0; }, nullptr);
  const size_t first_with_history = is_grad_enabled() ? 0 : asked;
  std::optional<detail::Leaves> leaves;
  if (first_with_history < roots_.size() && !engine::Capture::current()) leaves.emplace();
  if (leaves) keep_states(*leaves, first_with_history, assigned);
  detail::PartRoots parts;
  for (const auto& t : impls_) parts.add(t->uop, t->device);
  std::vector<UOp> sinks;
  for (const UOp& sink : parts.roots())
    sinks.push_back(ir::is_dense(sink->shape) ? sink : side_by_side(sink));
  // An old version that is read from now on would not be kept.
  if (assigned.empty()) alone_.reset();
  std::vector<std::optional<engine::Extremes>> known;
  for (const UOp& root : roots_) known.push_back(detail::known_extremes(root));
  std::vector<Ref<engine::Buffer>> buffers;
  sinks = as_memory(std::move(sinks));
  if (!sinks.empty()) buffers = engine::realize(sinks, detail::bound_variables());
  for (auto& [state, copy] : kept_states_) {
    const auto root = std::ranges::find(roots_, copy);
    copy = parts.memory(size_t(root - roots_.begin()), buffers);
  }
  ir::UOpMap<UOp> map;
  for (size_t i = 0; i < roots_.size(); i++) {
    UOp memory = parts.memory(i, buffers);
    if (const Ref<engine::Buffer> b = detail::buffer_of(memory)) tell_known(*b, known[i]);
    if (leaves && i >= first_with_history)
      memory = with_history(*impls_[i], roots_[i], memory, *leaves, assigned);
    if (roots_[i]->device)
      map.emplace(roots_[i], std::move(memory));
    else
      numbers_[roots_[i]][impls_[i]->device] = std::move(memory);
  }
  if (!alone_) alone_.emplace();
  substitute_everywhere(map);
  if (!states_.empty()) detail::generators_realized();
}

}  // namespace

// It may be asked to move elsewhere between the two, for an assignment to what shares its memory.
Ref<engine::Buffer> detail::memory_of(const Tensor& t) {
  Tensor wanted = readable(t);
  for (;;) {
    if (const Ref<engine::Buffer> b = buffer_of(wanted.realize())) return b;
  }
}

void detail::wait_for(const std::vector<Tensor>& tensors) {
  Tensor::realize(tensors);
  for (const Tensor& t : tensors) {
    const Ref<engine::Buffer> b = memory_of(t);
    b->span();  // its last use comes after what is read into it
    b->on().queue().wait(b->uses().last());
    b->verify();
  }
}

namespace {
thread_local ir::VariableValues variables_of_thread;
}
const ir::VariableValues& detail::bound_variables() { return variables_of_thread; }
detail::BoundVariables::BoundVariables(ir::VariableValues values)
    : before_(std::exchange(variables_of_thread, std::move(values))) {}
detail::BoundVariables::~BoundVariables() { variables_of_thread = std::move(before_); }

UOp detail::assign_target(const Tensor& t) {
  UOp base = uop(t);
  while (base->op == Op::Reshape || base->op == Op::Detach) base = base->src(0);
  // In another shape what devices hold may be parts of no axis.
  if (base->op == Op::Shards && base->shape == uop(t)->shape) return base;
  if (base->op == Op::Assign && ir::is_group(*base->device) && !(base->shape == uop(t)->shape))
    return {};
  if (base->op != Op::Buffer && base->op != Op::Assign) return {};
  return ir::reshape(base, uop(t)->shape);
}

// What is mapped becomes memory of the tensor's own. What was computed has nothing to do with what is
// written.
void detail::make_writable(const char* what, Tensor& t) {
  {
    UOp before;  // goes when others may build
    const ReplaceGuard alone;
    before = t.impl()->uop;
    if (ir::history_of(*before)) t.impl()->uop = before->src(0);
  }
  UOp base = uop(t);
  while (base->op == Op::Assign) base = base->src(0);
  if (base->op == Op::Shards) return;  // memory of their own, always
  const Ref<engine::Buffer> b = buffer_of(base);
  if (b && b->mapped()) {
    {
      const ReplaceGuard alone;
      t.impl()->uop = ir::make(Op::Contiguous, t.dtype(), {t.impl()->uop});
    }
    t.realize();
  } else if (b && b->read_only()) {
    fail<InvalidArgument>(
        "{}: the memory was given as read-only: assign to a copy, (x + 0).realize()", what);
  }
}

std::vector<Tensor> detail::pending_assigns() {
  std::vector<Tensor> out;
  const BuildGuard section;
  for_each_live([&](TensorImpl& t) {
    if (t.uop->op == Op::Assign && t.assigned_by == std::this_thread::get_id())
      out.emplace_back(&t);
  });
  std::sort(out.begin(), out.end(),
            [](const Tensor& a, const Tensor& b) { return uop(a)->serial < uop(b)->serial; });
  return out;
}

void Tensor::realize(const std::vector<Tensor>& tensors) {
  std::vector<Ref<engine::Buffer>> memory;
  for (const Tensor& t : tensors)
    if (Ref<engine::Buffer> b = detail::buffer_of(uop(t))) memory.push_back(std::move(b));
  engine::read_contents(memory);
  Realization realization;
  for (const Tensor& t : tensors) realization.add(*t.impl());
  realization.run();
}

Tensor& Tensor::realize() {
  if (!is_realized()) realize(std::vector<Tensor>{*this});
  return *this;
}

Tensor Tensor::contiguous() const {
  if (realized(uop(*this))) return *this;
  const UOp here = detail::placed(uop(*this), device());
  const bool is_new = !(here == uop(*this));
  return detail::derive(*this, is_new ? here : ir::make(Op::Contiguous, dtype(), {here}));
}
Tensor Tensor::clone() const {
  if (!realized(uop(*this))) return contiguous();
  return detail::derive(*this, ir::make(Op::Contiguous, dtype(), {uop(*this)}));
}
Tensor Tensor::detach() const {
  const detail::BuildGuard section;
  return detail::view_of(*this, ir::make(Op::Detach, dtype(), {uop(*this)}),
                         detail::Movement::Kind::Detach, ir::Arg());
}

Tensor Tensor::to(const std::string& name) const {
  const std::string target = engine::canonical_device(name);
  if (target == device()) return *this;
  if (!uop(*this)->device) return detail::wrap(uop(*this), target);
  return detail::wrap(ir::make(Op::Copy, dtype(), {uop(*this)}, ir::Placement{{target}}),
                      target);
}

Tensor& Tensor::assign(const Tensor& value) {
  detail::require_no_gradient("assign", *this,
                              "compute with a new tensor, or hold a NoGradGuard to write it");
  detail::store(*this, value);
  return *this;
}

void detail::require_no_gradient(const char* what, const Tensor& t, const char* instead) {
  if (t.requires_grad() && is_grad_enabled())
    fail<InvalidArgument>(
        "{}: the tensor has requires_grad, whose gradient would be that of what it no longer "
        "holds: {}",
        what, instead);
  if (is_grad_enabled()) require_no_gradient_of_viewed(what, t, instead);
}

namespace {

void assign_to_memory(Tensor& to, const Tensor& value, const ir::Arg& part) {
  if (!detail::assign_target(to)) to.realize();
  detail::make_writable("assign", to);
  const UOp target = detail::assign_target(to);
  UOp before;  // goes when others may build
  const detail::ReplaceGuard alone;
  if (uop(value) == uop(to)) return;
  const UOp stored = detail::placed(uop(value), to.device());
  before = std::exchange(to.impl()->uop, ir::make(Op::Assign, to.dtype(), {target, stored}, part));
  to.impl()->assigned_by = std::this_thread::get_id();
}

}  // namespace

void detail::store(Tensor& to, const Tensor& value) {
  if (!same(value.sizes(), to.sizes()))
    fail<ShapeError>("assign: value {} for a tensor of {}", text(value.sizes()), text(to.sizes()));
  if (value.dtype() != to.dtype())
    fail<InvalidArgument>("assign: value is {}, tensor is {}: cast() it", name(value.dtype()),
                          name(to.dtype()));
  if (value.device() != to.device())
    fail<InvalidArgument>("assign: value is on {}, tensor on {}: shard_like() or to() moves it",
                          value.device(), to.device());
  if (is_view(to)) return put_in_place("assign", to, value);
  require_numbers("assign", to.sizes());
  assign_to_memory(to, value, {});
}

void detail::store_part(Tensor& to, const ir::Pairs& part, const Tensor& value) {
  assign_to_memory(to, value, part);
}

// What the captured calls do not depend on is the same at every replay.
void detail::require_host_read(const char* what, const Tensor& t) {
  const engine::Capture* capture = engine::Capture::current();
  if (!capture || !capture->bytes().vary(*memory_of(t))) return;
  fail<InvalidArgument>(
      "{}: a Jit's function reads a value that depends on its arguments or on state, and replays "
      "would go on with the one of the capture: compute with the tensor instead (where() chooses "
      "by a value), or return it and read it outside",
      what);
}

void detail::require_host_write(const char* what, const Tensor& t) {
  const engine::Capture* capture = engine::Capture::current();
  if (!capture) return;
  const engine::Buffer& b = *memory_of(t);
  if (!capture->bytes().was_there_before(b) && !capture->bytes().touched(b)) return;
  fail<InvalidArgument>(
      "{}: a Jit's function writes from host memory, which replays would not repeat: give what is "
      "written as an argument and assign() it, or write outside of the function",
      what);
}

void* Tensor::data_ptr() const {
  detail::require_host_read("data_ptr", *this);
  if (ir::is_group(device()))
    fail<InvalidArgument>("data_ptr: the tensor is on {}: to(\"CPU\") it, or copy_to() host memory",
                          device());
  engine::Device& on = *engine::Device::get(device());
  if (!hcq::reaches_host(on.hcq()))
    fail<InvalidArgument>("data_ptr: the tensor is on {}: to(\"CPU\") it, or copy_to() host memory",
                          device());
  const Ref<engine::Buffer> b = detail::memory_of(*this);
  b->known_integers().close();
  std::byte* const at = b->span().host();
  on.queue().wait(b->uses().last());
  b->verify();
  on.hcq().allocator().collect();
  return at;
}

void Tensor::copy_to(void* dst, size_t size) const {
  const size_t wanted = size_t(numel()) * size_bytes(dtype());
  if (size != wanted)
    fail<InvalidArgument>("copy_to: {} bytes given, the tensor has {}", size, wanted);
  detail::require_host_read("copy_to", *this);
  detail::memory_of(*this)->copyout(dst);
}

void Tensor::copy_from(const void* src, size_t size) {
  const size_t wanted = size_t(numel()) * size_bytes(dtype());
  if (size != wanted)
    fail<InvalidArgument>("copy_from: {} bytes given, the tensor has {}", size, wanted);
  if (detail::is_view(*this)) return detail::copy_into_view(*this, src, size);
  realize();
  detail::require_host_write("copy_from", *this);
  detail::make_writable("copy_from", *this);
  {
    Realization realization;
    const auto is_own = [&](const ir::Node* n) {
      return reads_any(impl_->uop, [n](const ir::Node* own) { return own == n; });
    };
    realization.add_old_versions(is_own, impl());
    realization.run();
  }
  if (ir::is_group(device())) return detail::write_shards(*this, src);
  const Ref<engine::Buffer> b = detail::buffer_of(*this);
  b->copyin(src);
  detail::note_host_values(*b, src);
}

double Tensor::item() const {
  if (numel() != 1)
    fail<ShapeError>("item: the tensor {} has {} elements, not 1", detail::text(sizes()), numel());
  detail::require_host_read("item", *this);
  std::byte memory[8];
  detail::memory_of(*this)->copyout(memory);
  return load_scalar(dtype(), memory).as_double();
}

}  // namespace tuff
