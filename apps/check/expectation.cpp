#include "check/expectation.h"

#include <algorithm>
#include <optional>

#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/walk.h"

namespace tuff::check {

using namespace ir;

const HostArray& Expectation::value(const UOp& u) { return values_.value(u); }

const std::vector<double>& Expectation::errors(const UOp& u) {
  if (const auto it = errors_.find(u.get()); it != errors_.end()) return it->second;
  values_.value(u);  // keeps the nodes alive, too
  const auto is_new = [&](const Node* n) { return !errors_.count(n); };
  for (const Node* n : toposort_gated(std::span<const UOp>(&u, 1), is_new)) {
    if (!errors_.count(n)) errors_.emplace(n, evaluate(*n));
  }
  return errors_.at(u.get());
}

std::vector<double> Expectation::evaluate(const Node& n) {
  switch (n.op) {
    case Op::Reshape:
    case Op::Contiguous:
    case Op::Detach:
    case Op::Mark:
    case Op::Again:
    case Op::Copy: return source(n, 0);
    case Op::Assign: return assigned(n);
    case Op::Scatter: return scattered(n);
    case Op::Loop: return looped(n);
    case Op::Reduce: return reduced(n);
    default: break;
  }
  const HostArray& a = array(n);
  std::vector<double> out(size_t(a.count()), 0);
  if (n.src_count == 0) {
    for (size_t i = 0; i < out.size(); i++) out[i] = leaf_error(a.at(int64_t(i)));
    return out;
  }
  if (!is_movement(n.op)) return elementwise(n);
  const std::vector<int64_t> from = values_.source_elements(n);
  for (size_t i = 0; i < from.size(); i++)
    out[i] = from[i] >= 0 ? source(n, 0)[size_t(from[i])] : 0;
  return out;
}

std::vector<double> Expectation::assigned(const Node& n) {
  if (!assigned_part(n)) return source(n, 1);
  std::vector<double> out = source(n, 0);
  const std::vector<int64_t> to = values_.assigned_elements(n);
  for (size_t i = 0; i < to.size(); i++) out[size_t(to[i])] = source(n, 1)[i];
  return out;
}

// What comes to an element is a reduction of its own, of what it was first.
std::vector<double> Expectation::scattered(const Node& n) {
  const Op op = n.get<ScatterArg>().op;
  const HostArray &a = array(n), &target = values_.value(n.src(0)), &x = values_.value(n.src(1));
  std::vector<double> out = source(n, 0);
  const bool known = std::ranges::all_of(source(n, 2), [](double error) { return error == 0; });
  if (!known) return std::vector<double>(out.size(), kUnknownError);
  std::vector<std::optional<ReduceError>> reductions(out.size());
  const std::vector<int64_t> to = values_.scattered_elements(n);
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] < 0) continue;
    const auto at = size_t(to[i]);
    const double error = source(n, 1)[i];
    if (op == Op::Assign) {
      out[at] = error;
      continue;
    }
    if (!reductions[at]) {
      reductions[at].emplace(op, n.dtype);
      reductions[at]->add({target.at(to[i]), out[at]});
    }
    reductions[at]->add({x.at(int64_t(i)), error});
  }
  for (size_t i = 0; i < out.size(); i++)
    if (reductions[i]) out[i] = reductions[i]->of(a.at(int64_t(i)));
  return out;
}

std::vector<double> Expectation::looped(const Node& n) {
  const LoopBody& body = *n.get<LoopArg>().body;
  const std::vector<UOp> next = values_alone(body.next);
  const size_t states = next.size();
  std::vector<double> out(size_t(array(n).count()), 0);
  const std::vector<double>& initial = source(n, 0);
  const int64_t first_row = values_.extent(ir::first_row(n));
  std::ranges::copy(initial, out.begin() + first_row * ptrdiff_t(initial.size()));
  for (const LoopStep& step : steps_of(n)) {
    if (values_.extent(step.runs) == 0) continue;
    Expectation of_step(bindings_);
    for (size_t p = 0; p < body.places.size(); p++) {
      const UOp& place = body.places[p];
      const bool state = p < states;
      const HostArray& from = state ? array(n) : values_.value(n.src(p - states + 1));
      const auto first = (state ? out : source(n, p - states + 1)).begin() + step.reads[p];
      of_step.values_.put_part(place, from, step.reads[p]);
      const int64_t count = of_step.values_.value(place).count();
      of_step.errors_.emplace(place.get(), std::vector<double>(first, first + count));
    }
    for (size_t k = 0; k < states; k++)
      std::ranges::copy(of_step.errors(next[k]), out.begin() + step.stores[k]);
  }
  return out;
}

std::vector<double> Expectation::elementwise(const Node& n) {
  const HostArray& a = array(n);
  std::vector<const HostArray*> src;
  for (const UOp& u : n.src()) src.push_back(&values_.value(u));
  std::vector<Bounded> in(n.src_count);
  std::vector<double> out(size_t(a.count()));
  for (size_t i = 0; i < out.size(); i++) {
    for (size_t k = 0; k < in.size(); k++) {
      const size_t at = src[k]->shape.empty() ? 0 : i;
      in[k] = {src[k]->at(int64_t(at)), source(n, k)[at]};
    }
    out[i] = alu_error(n, in, a.at(int64_t(i)));
  }
  return out;
}

std::vector<double> Expectation::reduced(const Node& n) {
  const HostArray &a = array(n), &x = values_.value(n.src(0));
  std::vector<ReduceError> reductions(size_t(a.count()), {n.get<ReduceArg>().op, n.dtype});
  const std::vector<int64_t> to = values_.reduced_elements(n);
  for (size_t i = 0; i < to.size(); i++)
    reductions[size_t(to[i])].add({x.at(int64_t(i)), source(n, 0)[i]});
  std::vector<double> out;
  for (size_t i = 0; i < reductions.size(); i++) out.push_back(reductions[i].of(a.at(int64_t(i))));
  return out;
}

std::string Expectation::difference(const UOp& u, std::span<const std::byte> got) {
  const std::vector<double>& error = errors(u);
  const HostArray& want = value(u);
  const size_t size = size_bytes(want.dtype);
  IntVec index(want.shape.size(), 0);
  for (size_t i = 0; i < error.size(); i++) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); d++) place = place * u->shape[d].max() + index[d];
    if (size_t(place + 1) * size > got.size())
      return fmt::format("{} bytes, element {} lies beyond them", got.size(), place);
    const Scalar v = load_scalar(want.dtype, got.data() + size_t(place) * size);
    const Bounded w{want.at(int64_t(i)), error[i]};
    if (!agrees(v, w)) {
      const std::string wanted = is_float(want.dtype) ? fmt::format("{} (allowed error {:.3g})",
                                                                    w.value.as_double(), w.error)
                                                      : fmt::format("{}", w.value.as_int());
      const std::string is =
          is_float(want.dtype) ? fmt::format("{}", v.as_double()) : fmt::format("{}", v.as_int());
      return fmt::format("element [{}] is {} where {} was expected", fmt::join(index, ", "), is,
                         wanted);
    }
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < want.shape[d]) break;
      index[d] = 0;
    }
  }
  return {};
}

}  // namespace tuff::check
