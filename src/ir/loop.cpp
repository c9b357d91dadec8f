#include "ir/loop.h"

#include <algorithm>

#include "ir/batch.h"
#include "ir/extents.h"
#include "ir/gradient.h"
#include "ir/rule.h"
#include "ir/symbolic.h"
#include "ir/text.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

// Where any device binds a buffer (minStorageBufferOffsetAlignment is 256 at most: Vulkan's
// required limits).
constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t count, DType t) {
  const int64_t unit = kAlignment / int64_t(size_bytes(t));
  return (count + unit - 1) / unit * unit;
}

Shape with_rows(const Dim& rows, const Shape& shape) {
  Shape out{rows};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}
UOp zeros(DType t, const Shape& shape) {
  return expand(reshape(constant(t, 0), Shape(shape.size(), Dim(1))), shape);
}
// On the device, where it is made of constants and counters alone.
UOp placed(const UOp& x, const std::string& device) {
  return x->device ? x : make(Op::Contiguous, x->dtype, {x}, Placement{{device}});
}

LoopLayout layout(std::span<const UOp> states) {
  LoopLayout out;
  for (const UOp& s : states) {
    out.offsets.push_back(out.row);
    out.row += aligned(element_count(s->shape), s->dtype);
  }
  return out;
}

// States side by side, each (rows, its shape), as a loop has them: (rows, elements).
UOp packed(std::span<const UOp> values, const LoopLayout& at, int64_t rows) {
  UOp out = zeros(values[0]->dtype, {Dim(rows), Dim(at.row)});
  for (size_t k = 0; k < values.size(); k++) {
    const Dim begin(at.offsets[k]), n = count_of(std::span(values[k]->shape).subspan(1));
    const UOp flat = reshape(values[k], {Dim(rows), n});
    out = put(out, {{Dim(0), Dim(rows)}, {begin, begin + n}}, flat);
  }
  return out;
}

// State k of `rows` rows: (rows, shape).
UOp unpacked(const UOp& all, const LoopLayout& at, size_t k, const Shape& shape, const Dim& first,
             const Dim& rows) {
  const Dim begin(at.offsets[k]), n = count_of(shape);
  return reshape(shrink(all, {{first, first + rows}, {begin, begin + n}}),
                 with_rows(rows, shape));
}

const LoopArg& arg_of(const Node& loop) { return loop.get<LoopArg>(); }
// Where row `steps` is.
Dim row_after_all(const LoopArg& arg) {
  if (arg.steps.max() < arg.rows) return arg.steps;
  return Dim(simplify(floormod(arg.steps.uop(), arg.rows)));
}
const Shape& state_shape(const Node& loop, size_t k) {
  return arg_of(loop).body->places[k]->shape;
}
UOp states_of(const UOp& all, const UOp& like, size_t k, const Dim& first, const Dim& rows) {
  return unpacked(all, layout_of(*like), k, state_shape(*like, k), first, rows);
}
// Of `all`, which is as a loop's result: what its steps read, and what they store.
UOp read_by_steps(const UOp& all, const UOp& like, size_t k) {
  return states_of(all, like, k, arg_of(*like).reverse, arg_of(*like).steps);
}
UOp stored_by_steps(const UOp& all, const UOp& like, size_t k) {
  return states_of(all, like, k, !arg_of(*like).reverse, arg_of(*like).steps);
}

// Takes a body apart into what depends on states, what is computed for all rows at once, and what
// is the same in every step.
class BodyMaker {
 public:
  explicit BodyMaker(const LoopSpec& spec) : spec_(spec) {
    for (const UOp& s : spec.states) depends_[s.get()] = kState;
    for (size_t i = 0; i < spec.rows.size(); i++) {
      depends_[spec.rows[i].get()] = kRow;
      add_sequence(spec.rows[i], spec.sequences[i]);
      given_.emplace(spec.rows[i], spec.sequences[i]);
    }
    for (const Node* n : toposort(spec.next)) {
      uint8_t& d = depends_[n];
      if (d) continue;
      for (const UOp& s : n->src()) d |= depends_.at(s.get());
      if (n->op == Op::Assign && d)
        fail<Unsupported>("scan: memory is written with what differs by step: return it instead");
    }
  }

  UOp run() {
    split();
    auto body = make_ref<LoopBody>();
    std::vector<UOp> src{initial_states()};
    const std::vector<UOp> needed = substitute(spec_.next, replaced_);
    std::unordered_map<const Node*, bool> used;
    for (const Node* n : toposort(needed)) used[n] = true;
    UOpMap<UOp> canonical;
    int32_t number = 0;
    const auto add_place = [&](const UOp& place, const Shape& shape) {
      const UOp own = body_place(number++, place->dtype, shape, spec_.device);
      body->places.push_back(own);
      return own;
    };
    for (const UOp& s : spec_.states) canonical[s] = add_place(s, s->shape);
    for (const auto& [place, sequence] : sequences_) {
      if (!used.contains(place.get())) continue;
      body->sequences++;
      src.push_back(sequence);
      const UOp row = add_place(place, {sequence->shape.at(1)});
      const Dim n = count_of(place->shape);
      canonical[place] = reshape(row->shape[0] == n ? row : shrink(row, {{Dim(0), n}}), place->shape);
    }
    for (const auto& [place, value] : constants_) {
      src.push_back(value);
      canonical[place] = add_place(place, place->shape);
    }
    body->next = substitute(needed, canonical);
    return make(Op::Loop, DType::Void, src, LoopArg{body, spec_.steps, spec_.reverse});
  }

 private:
  enum : uint8_t { kState = 1, kRow = 2 };

  // Rows begin where any device may bind a buffer.
  void add_sequence(const UOp& place, const UOp& sequence) {
    const Dim n = count_of(place->shape), padded = aligned(n.max(), place->dtype);
    UOp flat = reshape(sequence, {spec_.steps, n});
    if (!(padded == n)) flat = pad(flat, {{Dim(0), Dim(0)}, {Dim(0), padded - n}});
    sequences_.emplace_back(place, placed(flat, spec_.device));
  }

  UOp initial_states() const {
    std::vector<UOp> rows;
    for (const UOp& x : spec_.initial) rows.push_back(reshape(x, with_rows(1, x->shape)));
    const LoopLayout at = layout(spec_.states);
    return placed(reshape(packed(rows, at, 1), {Dim(at.row)}), spec_.device);
  }

  // From the results down, to where a value need not be computed in each step.
  void split() {
    std::unordered_map<const Node*, bool> seen;
    std::vector<const Node*> work;
    for (const UOp& u : spec_.next) work.push_back(u.get());
    while (!work.empty()) {
      const Node* n = work.back();
      work.pop_back();
      if (!seen.emplace(n, true).second) continue;
      const uint8_t d = depends_.at(n);
      if (!d && !n->device) continue;
      if (n->op == Op::Rule) {  // whose gradients are made of places of its own
        const RuleParts parts = parts_of(*n);
        for (const auto* list : {&parts.values, &parts.arguments})
          for (const UOp& u : *list) work.push_back(u.get());
      } else if (!d && !is_movement(n->op) && n->op != Op::Sink && !stays(*n)) {
        take_out(n);
      } else if (d == kRow && spec_.ahead && is_for_all_rows(*n)) {
        compute_ahead(n);
      } else if (!(d && n->src_count == 1 && is_place(n))) {
        for (const UOp& s : n->src()) work.push_back(s.get());
      }
    }
  }
  // What is computed element by element, as numbers of packed ones are: each step does so where
  // memory is to be saved. What is in memory already, and sums, are outside in any case.
  bool stays(const Node& n) const { return !spec_.ahead && is_alu(n.op); }
  // States of an inner loop for so many rows would vary.
  bool is_for_all_rows(const Node& n) const {
    return n.op == Op::Reduce || n.op == Op::Scatter ||
           (n.op == Op::Loop && spec_.steps.is_const());
  }
  bool is_place(const Node* n) const {
    const auto is_n = [n](const UOp& p) { return p.get() == n; };
    return std::ranges::any_of(spec_.states, is_n) || std::ranges::any_of(spec_.rows, is_n);
  }
  // In memory without gaps between rows, as places have it.
  void take_out(const Node* n) {
    const UOp value(n);
    const Dim all = count_of(n->shape);
    const UOp flat = all.is_const() ? value : reshape(value, {all});
    const UOp place = place_like(flat);
    constants_.emplace_back(place, flat);
    replaced_[value] = reshape(place, n->shape);
  }
  void compute_ahead(const Node* n) {
    const UOp one(n), place = place_of(n->dtype, n->shape, spec_.device);
    add_sequence(place, batched(std::span(&one, 1), spec_.steps, given_)[0]);
    replaced_[one] = place;
  }

  const LoopSpec& spec_;
  std::unordered_map<const Node*, uint8_t> depends_;
  std::vector<std::pair<UOp, UOp>> sequences_, constants_;  // place, value
  UOpMap<UOp> given_, replaced_;
};

}  // namespace

UOp loop(const LoopSpec& spec) { return BodyMaker(spec).run(); }

LoopLayout layout_of(const Node& loop) {
  const LoopBody& body = *arg_of(loop).body;
  return layout(std::span(body.places).first(body.next.size()));
}
std::span<const UOp> sequences_of(const Node& loop) {
  return loop.src().subspan(1, arg_of(loop).body->sequences);
}
std::span<const UOp> constants_of(const Node& loop) {
  return loop.src().subspan(1 + arg_of(loop).body->sequences);
}
Dim first_row(const Node& loop) {
  const LoopArg& arg = arg_of(loop);
  return arg.reverse ? row_after_all(arg) : Dim(0);
}
Dim last_row(const Node& loop) {
  const LoopArg& arg = arg_of(loop);
  return arg.reverse ? Dim(0) : row_after_all(arg);
}
UOp with_last_states(const UOp& loop) {
  LoopArg arg = arg_of(*loop);
  arg.rows = 2;
  return make(Op::Loop, DType::Void, loop->src(), arg);
}

std::vector<LoopStep> steps_of(const Node& loop) {
  const LoopArg& arg = arg_of(loop);
  const LoopBody& body = *arg.body;
  const LoopLayout at = layout_of(loop);
  std::vector<LoopStep> out;
  const int64_t most = arg.steps.max();
  for (int64_t i = 0; i < most; i++) {
    const int64_t t = arg.reverse ? most - 1 - i : i;
    LoopStep step;
    if (!arg.steps.is_const())
      step.runs = Dim(simplify(
          where(lt(index_const(t), arg.steps.uop()), index_const(1), index_const(0))));
    for (const int64_t offset : at.offsets) {
      step.reads.push_back((t + arg.reverse) % arg.rows * at.row + offset);
      step.stores.push_back((t + !arg.reverse) % arg.rows * at.row + offset);
    }
    for (const UOp& s : sequences_of(loop)) step.reads.push_back(t * s->shape[1].value());
    step.reads.resize(body.places.size(), 0);
    out.push_back(std::move(step));
  }
  return out;
}

UOp states_before(const UOp& loop, size_t k) { return read_by_steps(loop, loop, k); }
UOp states_after(const UOp& loop, size_t k) { return stored_by_steps(loop, loop, k); }
UOp last_state(const UOp& loop, size_t k) {
  return reshape(states_of(loop, loop, k, last_row(*loop), 1), state_shape(*loop, k));
}

namespace {

// By node, whether it is made of any of the places.
std::unordered_map<const Node*, bool> made_of(std::span<const UOp> roots,
                                              std::span<const UOp> places) {
  std::unordered_map<const Node*, bool> out;
  for (const UOp& p : places) out[p.get()] = true;
  for (const Node* n : toposort(roots)) {
    bool& depends = out[n];
    for (const UOp& s : n->src()) depends = depends || out[s.get()];
  }
  return out;
}

bool is_sum(const Node* n) { return n->op == Op::Reduce && n->get<ReduceArg>().op == Op::Add; }

// What is left of a sum where all that reads it reads what is added to it: the sum's kernel adds
// that too, and no gradient asks for the sum itself.
class Terms {
 public:
  explicit Terms(std::span<const UOp> roots) {
    for (const Node* n : toposort(roots))
      for (const UOp& s : n->src()) users_[s.get()].push_back(n);
    for (const UOp& r : roots) users_[r.get()].push_back(nullptr);
  }
  const Node* with_all(const Node* sum) const {
    for (const Node* n = sum;;) {
      const std::vector<const Node*>& users = users_.at(n);
      if (users.size() != 1 || !users[0]) return n;
      const Node* u = users[0];
      const bool adds = u->op == Op::Add || u->op == Op::Sub || u->op == Op::Reshape;
      if (!adds || !(element_count(u->shape) == element_count(sum->shape))) return n;
      n = u;
    }
  }

 private:
  std::unordered_map<const Node*, std::vector<const Node*>> users_;
};

}  // namespace

UOp with_sums(const UOp& loop) {
  const LoopArg& arg = arg_of(*loop);
  const LoopBody& body = *arg.body;
  const auto states = ptrdiff_t(body.next.size());
  const auto by_state = made_of(body.next, std::span(body.places).first(size_t(states)));
  const Terms terms(body.next);
  auto more = make_ref<LoopBody>();
  more->next = body.next;
  more->sequences = body.sequences;
  std::vector<UOp> places;
  for (const Node* n : toposort(body.next)) {
    if (!by_state.at(n) || !is_sum(n) || n->dtype != loop->dtype) continue;
    const UOp kept(terms.with_all(n));
    if (!is_dense(kept->shape) || std::ranges::find(more->next, kept) != more->next.end()) continue;
    const auto number = int32_t(body.places.size() + places.size());
    places.push_back(body_place(number, kept->dtype, kept->shape, device_of(loop)));
    more->next.push_back(kept);
  }
  if (places.empty()) return loop;
  more->places = body.places;
  more->places.insert(more->places.begin() + states, places.begin(), places.end());
  const LoopLayout at = layout(std::span(more->places).first(more->next.size()));
  std::vector<UOp> src(loop->src().begin(), loop->src().end());
  src[0] = pad(src[0], {{Dim(0), Dim(at.row - layout_of(*loop).row)}});
  return make(Op::Loop, DType::Void, src, LoopArg{more, arg.steps, arg.reverse, arg.rows});
}

bool has_states_of(const Node& more, const Node& loop) {
  const LoopArg &a = arg_of(more), &b = arg_of(loop);
  const auto &many = a.body->next, &few = b.body->next;
  const UOp& initial = more.src(0);
  return a.steps == b.steps && a.reverse == b.reverse && a.rows == b.rows &&
         more.src_count == loop.src_count && many.size() > few.size() &&
         std::ranges::equal(std::span(many).first(few.size()), few) &&
         std::ranges::equal(std::span(a.body->places).first(few.size()),
                            std::span(b.body->places).first(few.size())) &&
         std::ranges::equal(std::span(a.body->places).subspan(many.size()),
                            std::span(b.body->places).subspan(few.size())) &&
         std::ranges::equal(more.src().subspan(1), loop.src().subspan(1)) &&
         initial->op == Op::Pad && initial->src(0) == loop.src(0);
}

LoopArg on_device(const LoopArg& arg, const std::string& device) {
  std::vector<UOp> nodes = arg.body->places;
  nodes.insert(nodes.end(), arg.body->next.begin(), arg.body->next.end());
  UOpMap<UOp> there;
  for (const Node* n : toposort(nodes)) {
    if (const auto* p = std::get_if<ParamArg>(&n->arg)) {
      there[UOp(n)] = param(p->slot, n->dtype, p->count, device);
    } else if (std::holds_alternative<Placement>(n->arg)) {
      const UOp source = substitute(n->src(0), there);
      there[UOp(n)] = make(n->op, n->dtype, {source}, Placement{{device}});
    }
  }
  nodes = substitute(nodes, there);
  auto body = make_ref<LoopBody>();
  const auto places = ptrdiff_t(arg.body->places.size());
  body->places.assign(nodes.begin(), nodes.begin() + places);
  body->next.assign(nodes.begin() + places, nodes.end());
  body->sequences = arg.body->sequences;
  return {body, arg.steps, arg.reverse, arg.rows};
}

namespace {

std::vector<UOp> places_like(std::span<const UOp> values) {
  std::vector<UOp> out;
  for (const UOp& v : values) out.push_back(place_like(v));
  return out;
}

// The body with places that are in no other: what is put into them may be made of the places of a
// body around it.
Ref<LoopBody> opened(const LoopBody& body) {
  auto out = make_ref<LoopBody>();
  out->sequences = body.sequences;
  out->places = places_like(body.places);
  UOpMap<UOp> own;
  for (size_t i = 0; i < body.places.size(); i++) own[body.places[i]] = out->places[i];
  out->next = substitute(body.next, own);
  return out;
}

// What steps add to gradients: of the body's results times `adjoints`, by each of its places; the
// constants stand for themselves, and places for `known` values.
std::vector<UOp> body_gradients(const LoopBody& body, const UOp& loop,
                                std::span<const UOp> adjoints, const UOpMap<UOp>& known) {
  UOp root;
  for (size_t k = 0; k < adjoints.size(); k++) {
    UOp sum = alu(Op::Mul, {body.next[k], adjoints[k]});
    IntVec axes(sum->shape.size());
    for (size_t i = 0; i < axes.size(); i++) axes[i] = int64_t(i);
    if (!axes.empty()) sum = reshape(reduce(Op::Add, sum, axes), {});
    root = root ? alu(Op::Add, {root, sum}) : sum;
  }
  std::vector<UOp> out = gradients(root, constant(root->dtype, 1), body.places);
  UOpMap<UOp> values;
  const size_t first = body.next.size() + body.sequences;
  for (size_t i = first; i < body.places.size(); i++)
    values[body.places[i]] = constants_of(*loop)[i - first];
  for (UOp& g : out)
    if (g) g = substitute(substitute(g, known), values);
  return out;
}

// (steps, ...) added up to (1, ...): where each step's is a sum, one sum of all that steps add up.
UOp summed_over_steps(const UOp& u) {
  const Shape& shape = u->shape;
  if (u->op == Op::Reduce && u->get<ReduceArg>().op == Op::Add) {
    IntVec axes = u->get<ReduceArg>().axes;
    if (std::ranges::find(axes, 0) == axes.end()) axes.insert(axes.begin(), 0);
    return reduce(Op::Add, u->src(0), axes);
  }
  if (u->op == Op::Permute && u->get<IntVec>()[0] == 0)
    return permute(summed_over_steps(u->src(0)), u->get<IntVec>());
  if (u->op == Op::Reshape && !u->src(0)->shape.empty() && u->src(0)->shape[0] == shape[0]) {
    Shape one = shape;
    one[0] = Dim(1);
    return reshape(summed_over_steps(u->src(0)), one);
  }
  return reduce(Op::Add, u, {0});
}

// What a step stores to add it up with weights, which wait for all steps to add it up with states.
std::vector<UOp> operands_of_sums(std::span<const UOp> next, std::span<const UOp> states) {
  const auto by_state = made_of(next, states);
  std::vector<UOp> out;
  for (const Node* n : toposort(next)) {
    if (!is_sum(n) || !by_state.at(n)) continue;
    const UOp& added = n->src(0);
    const auto factors = added->op == Op::Mul ? added->src() : n->src();
    for (UOp x : factors) {
      while (is_movement(x->op)) x = x->src(0);
      if (by_state.at(x.get()) && is_alu(x->op) && x->dtype == states[0]->dtype &&
          is_dense(x->shape) && std::ranges::find(out, x) == out.end())
        out.push_back(x);
    }
  }
  return out;
}

}  // namespace

// The adjoint of a state before a step is what the result's gradient says of it, and what the step
// made of it by its own adjoint: a loop the other way. All other gradients follow from the states
// and adjoints of all steps at once.
std::vector<UOp> loop_gradients(const UOp& given, const UOp& g) {
  const UOp u = with_sums(given);
  const LoopArg& arg = arg_of(*u);
  const Ref<LoopBody> own = opened(*arg.body);
  const LoopBody& body = *own;
  const size_t states = arg_of(*given).body->next.size(), all_states = body.next.size();
  const std::span<const UOp> places(body.places);
  const std::vector<UOp> adjoints = places_like(places.first(states));

  LoopSpec back{.states = adjoints, .steps = arg.steps, .reverse = !arg.reverse,
                .device = device_of(u)};
  UOpMap<UOp> known, of_all;  // of_all: for all steps
  const auto add_row = [&](const UOp& place, const UOp& sequence) {
    back.rows.push_back(place);
    back.sequences.push_back(sequence);
  };
  for (size_t k = states; k < all_states; k++) {
    const UOp sum = known[body.next[k]] = place_like(body.next[k]);
    add_row(sum, of_all[sum] = states_after(u, k));
  }
  const std::vector<UOp> of_places = body_gradients(body, u, adjoints, known);
  for (size_t k = 0; k < states; k++) {
    back.initial.push_back(
        reshape(states_of(g, given, k, last_row(*u), 1), places[k]->shape));
    const UOp seed = place_like(places[k]);
    add_row(seed, read_by_steps(g, given, k));
    back.next.push_back(of_places[k] ? alu(Op::Add, {seed, of_places[k]}) : seed);
    add_row(places[k], of_all[places[k]] = states_before(u, k));
  }
  for (size_t i = 0; i < body.sequences; i++) {
    const UOp& row = places[all_states + i];
    add_row(row, of_all[row] = sequences_of(*u)[i]);
  }
  const std::vector<UOp> operands = operands_of_sums(back.next, adjoints);
  for (const UOp& x : operands) {
    back.states.push_back(place_like(x));
    back.initial.push_back(zeros(x->dtype, x->shape));
    back.next.push_back(x);
  }
  const UOp all = loop(back);
  for (size_t k = 0; k < states; k++) of_all[adjoints[k]] = states_before(all, k);
  for (size_t i = 0; i < operands.size(); i++)
    of_all[operands[i]] = states_after(all, states + i);

  std::vector<UOp> first;
  for (size_t k = 0; k < states; k++) first.push_back(states_of(all, all, k, first_row(*u), 1));
  const LoopLayout at = layout_of(*given);
  std::vector<UOp> out{reshape(packed(first, at, 1), {Dim(at.row)})};
  for (size_t p = all_states; p < places.size(); p++) {
    UOp of_steps = of_places[p];
    if (of_steps) of_steps = batched(std::span(&of_steps, 1), arg.steps, of_all)[0];
    if (of_steps && p >= all_states + body.sequences)
      of_steps = reshape(summed_over_steps(of_steps), places[p]->shape);
    out.push_back(of_steps);
  }
  return out;
}

UOp loop_batched(const UOp& u, const Dim& count, std::span<const UOp> sources) {
  const LoopArg& arg = arg_of(*u);
  const LoopBody& body = *arg.body;
  const size_t states = body.next.size();
  if (!count.is_const())
    fail<Unsupported>(
        "scan: a loop within what is computed for {} values at once, whose number varies, would "
        "have states that vary: compute its result in the step, as a state, or give it a number of "
        "values",
        expression(count.uop()));
  const auto varies = [](const UOp& place) { return is_symbolic(place->shape); };
  if (std::ranges::any_of(std::span(body.places).first(states + body.sequences), varies))
    fail<Unsupported>("scan: a loop whose states or rows vary is not made for {} values at once",
                      expression(count.uop()));
  const int64_t n = count.value();
  LoopSpec many{.steps = arg.steps, .reverse = arg.reverse, .device = device_of(u)};
  UOpMap<UOp> values;
  for (size_t p = 0; p < body.places.size(); p++) {
    const UOp& one = body.places[p];
    const Shape shape = with_rows(n, one->shape);
    if (p < states) {
      many.states.push_back(place_of(one->dtype, shape, many.device));
      many.initial.push_back(unpacked(sources[0], layout_of(*u), p, one->shape, 0, n));
      values[one] = many.states.back();
    } else if (p < states + body.sequences) {
      many.rows.push_back(place_of(one->dtype, shape, many.device));
      many.sequences.push_back(permute(sources[p - states + 1], {1, 0, 2}));
      values[one] = many.rows.back();
    } else {
      values[one] = sources[p - states + 1];
    }
  }
  many.next = batched(body.next, count, values);
  const UOp all = loop(many);
  std::vector<UOp> rows;  // of all steps and all values
  for (size_t k = 0; k < states; k++) {
    const Shape shape = body.places[k]->shape;
    const UOp steps = states_of(all, all, k, 0, arg.rows);
    IntVec axes{1, 0};
    for (size_t i = 0; i < shape.size(); i++) axes.push_back(int64_t(i) + 2);
    rows.push_back(reshape(permute(steps, axes), with_rows(n * arg.rows, shape)));
  }
  const LoopLayout at = layout_of(*u);
  return reshape(packed(rows, at, n * arg.rows), {Dim(n), Dim(arg.rows), Dim(at.row)});
}

}  // namespace tuff::ir
