// Loops over sequences: layers of tuff/recurrent.h as RNN, GRU and LSTM, where they are built again
// by the functions of their steps; others as Scan, whose body is the step's graph.
#include <algorithm>
#include <functional>

#include <tuff/scan.h>

#include "ir/extents.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/walk.h"
#include "nn/recurrent_steps.h"
#include "onnx/exporter.h"
#include "tensor/impl.h"

namespace tuff::onnx {
namespace {

using ir::Dim;
using ir::LoopArg;
using ir::LoopBody;
using ir::Op;
using ir::Shape;
using ir::UOp;
using Given = std::span<const Exported>;

const LoopArg& arg_of(const UOp& loop) { return loop->get<LoopArg>(); }
const LoopBody& body_of(const UOp& loop) { return *arg_of(loop).body; }
size_t state_count(const UOp& loop) { return body_of(loop).next.size(); }
const Shape& state_shape(const UOp& loop, size_t k) { return body_of(loop).places[k]->shape; }

Shape with_front(const Dim& n, const Shape& shape) {
  Shape out{n};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

// States lie side by side in a vector, put there one after the other.
UOp initial_state(const UOp& loop, size_t k) {
  const ir::LoopLayout at = ir::layout_of(*loop);
  const Shape& shape = state_shape(loop, k);
  UOp all = loop->src(0);
  while (all->op == Op::Reshape) all = all->src(0);
  for (size_t i = state_count(loop); i-- > 0;) {
    const UOp part = all->op == Op::Where ? all->src(1) : UOp();
    const bool is_put = part && part->op == Op::Pad &&
                        part->get<ir::Pairs>().back().a == Dim(at.offsets[i]);
    if (!is_put) break;
    if (i == k) return ir::reshape(part->src(0), shape);
    all = all->src(2);
  }
  const Dim begin(at.offsets[k]);
  return ir::reshape(ir::shrink(loop->src(0), {{begin, begin + ir::count_of(shape)}}),
                     shape);
}

// A sequence (steps, elements of a row), without what is behind rows.
UOp sequence(const UOp& loop, size_t i) {
  const UOp all = ir::sequences_of(*loop)[i];
  const bool is_padded = all->op == Op::Pad && all->get<ir::Pairs>()[1].a == 0;
  return is_padded ? all->src(0) : all;
}

// ---- as Scan

// A step's graph of places of its own, so that one loop may stand in another's body.
Inner step_of(const UOp& loop, Given constants) {
  const LoopBody& body = body_of(loop);
  ir::UOpMap<UOp> own;
  Inner g;
  for (size_t i = 0; i < body.places.size(); i++) {
    const UOp& place = body.places[i];
    const size_t row = i - state_count(loop);
    if (i >= state_count(loop) + body.sequences) {
      const UOp stand_in = ir::place_like(place);
      g.around.emplace_back(stand_in, constants[g.around.size()]);
      own.emplace(place, stand_in);
      continue;
    }
    const UOp whole = i < state_count(loop) ? place : sequence(loop, row);
    const Shape shape = i < state_count(loop) ? place->shape : Shape{whole->shape[1]};
    const UOp given = ir::place_of(place->dtype, shape, ir::device_of(loop));
    g.inputs.push_back(given);
    const UOp read = shape == place->shape ? place : ir::shrink(place, {{Dim(0), shape[0]}});
    own.emplace(read, given);
  }
  g.outputs = ir::substitute(body.next, own);
  const std::vector<UOp> again = g.outputs;
  g.outputs.insert(g.outputs.end(), again.begin(), again.end());  // and each is kept
  return g;
}

// Initial states, sequences, constants.
std::vector<UOp> needed_by_scan(const UOp& loop) {
  std::vector<UOp> out;
  for (size_t k = 0; k < state_count(loop); k++) out.push_back(initial_state(loop, k));
  for (size_t i = 0; i < body_of(loop).sequences; i++) out.push_back(sequence(loop, i));
  for (const UOp& c : ir::constants_of(*loop)) out.push_back(c);
  return out;
}

// For each state the name of the last one, then those of all steps.
std::vector<std::string> scanned(Exporter& e, const UOp& loop, Given from) {
  const size_t inputs = state_count(loop) + body_of(loop).sequences;
  const std::vector<UOp> needed = needed_by_scan(loop);
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs; i++) names.push_back(e.exact(from[i], needed[i]->shape));
  io::onnx::Attribute body;
  body.name = "body", body.kind = io::onnx::Attribute::Kind::Graph;
  body.graphs = {e.inner(step_of(loop, from.subspan(inputs)))};
  const auto sequences = int64_t(body_of(loop).sequences);
  AttributeList attributes{std::move(body), attribute("num_scan_inputs", sequences)};
  if (arg_of(loop).reverse) {
    attributes.push_back(attribute("scan_input_directions",
                                   std::vector<int64_t>(size_t(sequences), 1)));
    attributes.push_back(attribute("scan_output_directions",
                                   std::vector<int64_t>(state_count(loop), 1)));
  }
  return e.nodes("Scan", std::move(names), std::move(attributes), 2 * state_count(loop));
}

Exporter::Plan scan_plan(Exporter& e, const UOp& loop) {
  return {needed_by_scan(loop), [&e, loop](Given from) {
            std::vector<std::string> names = scanned(e, loop, from);
            return Exported{names[0], {}, {}, std::move(names)};
          }};
}

// ---- as a layer

struct Kind {
  const char* op;
  int64_t gates;
  size_t states;
  std::vector<int64_t> order;  // of the gates in ONNX: which of ours
  std::function<Tensors(const Tensor& gates, const Tensors& h, const Tensor& w, const Tensor& b)>
      step;
  AttributeList attributes = {};
};

io::onnx::Attribute activations(const char* name) {
  io::onnx::Attribute a;
  a.name = "activations", a.kind = io::onnx::Attribute::Kind::Strings, a.strings = {name};
  return a;
}

const std::vector<Kind>& kinds() {
  const auto rnn = [](const char* how) {
    return [how](const Tensor& g, const Tensors& h, const Tensor& w, const Tensor& b) {
      return Tensors{nn::rnn_step(g, h[0], w, b, how)};
    };
  };
  static const std::vector<Kind> all{
      {"LSTM", 4, 2, {0, 3, 1, 2},
       [](const Tensor& g, const Tensors& s, const Tensor& w, const Tensor& b) {
         const auto [h, c] = nn::lstm_step(g, s[0], s[1], w, b);
         return Tensors{h, c};
       }},
      {"GRU", 3, 1, {1, 0, 2},
       [](const Tensor& g, const Tensors& s, const Tensor& w, const Tensor& b) {
         return Tensors{nn::gru_step(g, s[0], w, b)};
       },
       {attribute("linear_before_reset", int64_t{1})}},
      {"RNN", 1, 1, {0}, rnn("tanh")},
      {"RNN", 1, 1, {0}, rnn("relu"), {activations("Relu")}},
  };
  return all;
}

// x.linear(weight, bias) of x (time, batch, in); bias is null where there is none.
struct Projection {
  UOp x, weight, bias;
};

std::optional<Projection> projection_of(Exporter& e, const UOp& gates) {
  const auto wrapped = [&](const UOp& u) { return detail::wrap(u, ir::device_of(gates)); };
  Projection p;
  UOp product = gates;
  const Dim outputs = gates->shape[2];
  if (gates->op == Op::Add) {
    product = gates->src(0);
    p.bias = narrow(gates->src(1));
    if (!unit_map(p.bias->shape, {outputs})) return std::nullopt;
    p.bias = ir::reshape(p.bias, {outputs});
  }
  while (ir::is_movement(product->op)) product = product->src(0);
  if (product->op != Op::Reduce || product->src(0)->op != Op::Mul) return std::nullopt;
  const UOp both[2] = {narrow(product->src(0)->src(0)), narrow(product->src(0)->src(1))};
  for (const size_t i : {0, 1}) {
    const int64_t n = ir::element_count(both[1 - i]->shape);
    if (n % outputs.value() != 0) continue;
    const Dim inputs(n / outputs.value());
    const Shape of_x{gates->shape[0], gates->shape[1], inputs};
    if (ir::element_count(both[i]->shape) != ir::element_count(of_x)) continue;
    p.x = ir::reshape(both[i], of_x);
    p.weight = ir::reshape(both[1 - i], {outputs, inputs});
    const Tensor bias = p.bias ? wrapped(p.bias) : Tensor();
    if (e.is(wrapped(p.x).linear(wrapped(p.weight), bias), gates)) return p;
  }
  return std::nullopt;
}

struct Layer {
  const Kind* kind;
  Projection given;
  UOp weight, bias;  // of the states
  std::vector<UOp> initial;
};

UOp loop_below(const Tensor& state) {
  UOp u = detail::uop(state);
  while (u->op != Op::Loop && u->src_count > 0) u = u->src(0);
  return u;
}

// Whether a step of these weights, repeated, is the loop.
bool is_layer(Exporter& e, const Layer& l, const UOp& gates, const UOp& loop) {
  // States may be zeros, which lie on no device.
  const auto wrapped = [&](const UOp& u) { return detail::wrap(u, ir::device_of(loop)); };
  Tensors initial;
  for (const UOp& s : l.initial) initial.push_back(wrapped(s));
  const Tensor w = wrapped(l.weight), b = l.bias ? wrapped(l.bias) : Tensor();
  const Scanned again = scan(
      [&](const Tensors& states, const Tensors& rows) {
        return Scanned{l.kind->step(rows[0], states, w, b), {}};
      },
      initial, {wrapped(gates)}, {.reverse = arg_of(loop).reverse});
  return e.plain(loop_below(again.states[0])) == loop;
}

std::optional<Layer> layer_of(Exporter& e, const UOp& loop) {
  if (body_of(loop).sequences != 1 || loop->dtype != DType::F32) return std::nullopt;
  const auto constants = ir::constants_of(*loop);
  const Shape& shape = state_shape(loop, 0);
  if (shape.size() != 2 || constants.empty() || constants.size() > 2) return std::nullopt;
  if (!shape[1].is_const()) return std::nullopt;
  const Dim& batch = shape[0];
  const int64_t hidden = shape[1].value();
  const UOp rows = sequence(loop, 0);
  for (const Kind& kind : kinds()) {
    const int64_t width = kind.gates * hidden;
    if (kind.states != state_count(loop) || !(rows->shape[1] == batch * Dim(width)))
      continue;
    const UOp gates = ir::reshape(rows, {rows->shape[0], batch, Dim(width)});
    Layer l{.kind = &kind, .given = {}, .weight = {}, .bias = {}, .initial = {}};
    for (size_t k = 0; k < kind.states; k++) l.initial.push_back(initial_state(loop, k));
    for (size_t i = 0; i < constants.size(); i++) {
      const UOp other = constants.size() == 2 ? constants[1 - i] : UOp();
      if (ir::element_count(constants[i]->shape) != width * hidden ||
          (other && ir::element_count(other->shape) != width))
        continue;
      l.weight = ir::reshape(constants[i], {Dim(width), Dim(hidden)});
      l.bias = other ? ir::reshape(other, {Dim(width)}) : UOp();
      if (!is_layer(e, l, gates, loop)) continue;
      const auto given = projection_of(e, gates);
      if (!given || bool(given->bias) != bool(l.bias)) return std::nullopt;
      l.given = *given;
      return l;
    }
  }
  return std::nullopt;
}

bool is_zero(const UOp& u) {
  const Scalar* v = constant_of(u.get());
  return v && !v->as_bool();
}

// Rows of gates in ONNX's order, behind an axis of directions.
std::string ordered(Exporter& e, const Kind& kind, const Exported& value, const Shape& shape) {
  const std::string given = e.exact(value, shape);
  Shape apart = shape, one = with_front(Dim(1), shape);
  apart[0] = Dim(shape[0].value() / kind.gates);
  apart = with_front(Dim(kind.gates), apart);
  if (kind.gates == 1) return e.reshaped(given, shape, one);
  const std::string gates = e.reshaped(given, shape, apart);
  const std::string moved =
      e.node("Gather", {gates, e.integers(kind.order)}, {attribute("axis", int64_t{0})});
  return e.reshaped(moved, apart, one);
}

// Outputs (time, 1, batch, hidden) and last states (1, batch, hidden) as those of a Scan, which
// have no axis of directions. Cells of all steps there are none.
std::vector<std::string> without_directions(Exporter& e, const std::vector<std::string>& made,
                                            const UOp& loop) {
  const Shape& shape = state_shape(loop, 0);
  const Dim& steps = arg_of(loop).steps;
  std::vector<std::string> out;
  for (size_t k = 0; k < state_count(loop); k++)
    out.push_back(e.reshaped(made[1 + k], with_front(Dim(1), shape), shape));
  out.push_back(e.reshaped(made[0], with_front(steps, with_front(Dim(1), shape)),
                           with_front(steps, shape)));
  out.resize(2 * state_count(loop));
  return out;
}

Exporter::Plan layer_plan(Exporter& e, const Layer& l, const UOp& loop) {
  std::vector<UOp> needed{l.given.x, l.given.weight, l.weight};
  if (l.bias) needed.insert(needed.end(), {l.given.bias, l.bias});
  needed.insert(needed.end(), l.initial.begin(), l.initial.end());
  return {needed, [&e, l, loop, needed](Given from) {
            const auto weight = [&](size_t i) {
              return ordered(e, *l.kind, from[i], needed[i]->shape);
            };
            std::vector<std::string> names{e.exact(from[0], needed[0]->shape), weight(1), weight(2),
                                           "", ""};
            if (l.bias)
              names[3] = e.node("Concat", {weight(3), weight(4)}, {attribute("axis", int64_t{1})});
            for (size_t k = 0; k < l.initial.size(); k++) {
              const Shape& shape = l.initial[k]->shape;
              const Exported& value = from[from.size() - l.initial.size() + k];
              if (!std::ranges::all_of(l.initial, is_zero))
                names.push_back(
                    e.reshaped(e.exact(value, shape), shape, with_front(Dim(1), shape)));
            }
            while (names.back().empty()) names.pop_back();
            AttributeList attributes = l.kind->attributes;
            attributes.push_back(attribute("hidden_size", l.initial[0]->shape[1].value()));
            if (arg_of(loop).reverse)
              attributes.push_back(attribute("direction", std::string("reverse")));
            const std::vector<std::string> made =
                e.nodes(l.kind->op, std::move(names), std::move(attributes), 1 + l.kind->states);
            return Exported{made[0], {}, {}, without_directions(e, made, loop)};
          }};
}

// ---- what is read of a loop's states

struct Read {
  UOp loop;
  size_t state;
  Dim begin, end;  // of rows
};

std::optional<Read> read_of(const UOp& u) {
  if (u->op != Op::Shrink || u->src(0)->op != Op::Loop) return std::nullopt;
  const UOp& loop = u->src(0);
  const auto& pairs = u->get<ir::Pairs>();
  const ir::LoopLayout at = ir::layout_of(*loop);
  for (size_t k = 0; k < at.offsets.size(); k++) {
    const Dim begin(at.offsets[k]);
    if (pairs[1].a == begin && pairs[1].b == begin + ir::count_of(state_shape(loop, k)) &&
        arg_of(loop).rows == arg_of(loop).steps.max() + 1)
      return Read{loop, k, pairs[0].a, pairs[0].b};
  }
  return std::nullopt;
}

// All states in the order of rows: the first one stands before or behind those after steps.
Exported rows_of(Exporter& e, const Read& r, const std::string& after, const Exported& initial,
                 const UOp& u) {
  const LoopArg& arg = arg_of(r.loop);
  const Dim n = u->shape[1];
  const Shape kept{arg.steps, n};
  const std::string steps =
      e.reshaped(after, with_front(arg.steps, state_shape(r.loop, r.state)), kept);
  const Dim first = arg.reverse ? 0 : 1;
  if (r.begin == first && r.end == first + arg.steps) return {steps, kept, kept};
  const Shape& shape = state_shape(r.loop, r.state);
  const std::string begin = e.reshaped(e.exact(initial, shape), shape, {Dim(1), n});
  const std::string all =
      arg.reverse ? e.node("Concat", {steps, begin}, {attribute("axis", int64_t{0})})
                  : e.node("Concat", {begin, steps}, {attribute("axis", int64_t{0})});
  return {e.node("Slice", {all, e.extent(r.begin), e.extent(r.end), e.integers({0})}),
          u->shape, u->shape};
}

Exporter::Plan read_plan(Exporter& e, const Read& r, const UOp& u) {
  const bool is_last = r.end == r.begin + Dim(1) && r.begin == ir::last_row(*r.loop);
  const bool is_missing = !is_last && r.state > 0 && layer_of(e, r.loop);  // a layer's cells
  std::vector<UOp> needed{r.loop, initial_state(r.loop, r.state)};
  if (is_missing) {
    needed = needed_by_scan(r.loop);
    needed.insert(needed.begin(), initial_state(r.loop, r.state));
  }
  return {needed, [&e, r, u, is_last, is_missing](Given from) {
            const std::vector<std::string> names =
                is_missing ? scanned(e, r.loop, from.subspan(1)) : from[0].more;
            const Shape& shape = state_shape(r.loop, r.state);
            if (is_last)
              return Exported{e.reshaped(names[r.state], shape, u->shape), u->shape, u->shape};
            const std::string& after = names[state_count(r.loop) + r.state];
            return rows_of(e, r, after, from[is_missing ? 0 : 1], u);
          }};
}

}  // namespace

std::optional<Exporter::Plan> loop_plan(Exporter& e, const UOp& u) {
  if (u->op == Op::Loop) {
    const auto layer = layer_of(e, u);
    return layer ? layer_plan(e, *layer, u) : scan_plan(e, u);
  }
  const auto read = read_of(u);
  return read ? std::optional(read_plan(e, *read, u)) : std::nullopt;
}

}  // namespace tuff::onnx
