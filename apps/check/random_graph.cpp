#include "check/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <unordered_set>

#include "check/expectation.h"
#include "check/random_values.h"
#include "check/suite.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/walk.h"

namespace tuff::check {

using namespace ir;

namespace {

constexpr int64_t kExtents[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 11, 13, 16, 17, 31, 32, 37, 64};
constexpr int kPool = 24;
constexpr double kLargestFloat = 1 << 20, kLargestNarrow = 2000;
constexpr double kVague = 0.02;  // a relative error from which on an element counts as unknown

// The ops of a group whose result is of a dtype like its operands', or a Bool: those of `often`,
// which may name one twice, and what else ops.def has.
template <class Group>
std::vector<Op> drawn(OpFlag flag, DTypeRule rule, Group group, std::vector<Op> often) {
  for (size_t i = 0; i < op_rows().size(); i++) {
    const Op op = Op(i);
    const bool fits = has_flag(op, flag) && (row(op).floors & kFloorTensor) && row(op).rule == rule;
    if (fits && group(op) && std::ranges::find(often, op) == often.end()) often.push_back(op);
  }
  return often;
}

IntVec all_axes(const Shape& s) {
  IntVec axes(s.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}
bool is_constant(const Shape& s) {
  return std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_const(); });
}

class Builder {
 public:
  Builder(uint64_t seed, const GraphOptions& options)
      : options_(options), random_(seed), expected_(bindings_) {
    case_.seed = seed;
    if (options_.dtypes.empty())
      options_.dtypes.assign(memory_dtypes().begin(), memory_dtypes().end());
    // Most graphs are small; now and then one is large enough for splits, tiles and many groups.
    const int size = pick(40);
    max_elements_ = size == 0 ? 40000 : size < 4 ? 4000 : 400;
    special_ = pick(12) == 0;
  }

  GraphCase build() {
    const int leaves = 2 + pick(3);
    for (int i = 0; i < leaves; i++) keep(random_buffer());
    if (options_.symbolic && pick(6) == 0) symbolic();
    const int steps = max_elements_ > 400 ? 2 + pick(8) : 3 + pick(kPool);
    for (int i = 0; i < steps; i++) keep(next());
    choose_sinks();
    return std::move(case_);
  }

 private:
  int pick(int64_t n) { return int(random_() % uint64_t(n)); }
  bool maybe(int one_in) { return pick(one_in) == 0; }
  template <class List>
  auto& one_of(List& list) {
    return list[size_t(pick(int64_t(std::size(list))))];
  }
  // Nodes made lately are twice as likely: graphs become deep.
  const UOp& any() {
    const UOp& x = any_of_all();
    return variable_ && is_constant(x->shape) ? any_of_all() : x;  // twice for a symbolic one
  }
  const UOp& any_of_all() {
    const size_t n = pool_.size();
    return pool_[maybe(2) ? size_t(pick(int64_t(n))) : n - 1 - size_t(pick(int64_t((n + 2) / 3)))];
  }
  DType any_dtype() { return one_of(options_.dtypes); }
  bool has(DType t) const {
    return std::find(options_.dtypes.begin(), options_.dtypes.end(), t) != options_.dtypes.end();
  }
  // A node of a dtype that `legal` accepts, by a cast if need be; empty if there is no such dtype.
  template <class Legal>
  UOp any_of(Legal legal) {
    for (int tries = 0; tries < 4; tries++) {
      const UOp x = any();
      if (legal(x->dtype)) return x;
    }
    std::vector<DType> fitting;
    std::copy_if(options_.dtypes.begin(), options_.dtypes.end(), std::back_inserter(fitting),
                 legal);
    return fitting.empty() ? UOp() : cast(any(), one_of(fitting));
  }

  // ---- leaves ----------------------------------------------------------------------------------
  Shape random_shape() {
    Shape s;
    int64_t count = 1;
    const int rank = pick(12) == 0 ? 0 : 1 + pick(4);
    for (int i = 0; i < rank; i++) {
      int64_t d = maybe(40) ? 0 : one_of(kExtents);
      if (max_elements_ > 400 && maybe(3)) d = 1 + pick(max_elements_);
      if (count * d > max_elements_) d = 1;
      count *= std::max<int64_t>(d, 1);
      s.push_back(Dim(d));
    }
    return s;
  }
  UOp random_buffer() {
    const Shape shape = random_shape();
    GraphInput in{make_ref<Storage>(options_.device, any_dtype(), element_count(shape)), {}};
    in.bytes = random_values(in.storage->dtype, in.storage->count, special_, random_);
    const UOp x = reshape(buffer(in.storage), shape);
    case_.inputs.push_back(std::move(in));
    std::vector<std::byte>& bytes = case_.inputs.back().bytes;
    bindings_.storages[storage_id(x.get())] = bytes;
    versions_.push_back(x);
    return x;
  }
  UOp scalar(DType t) {
    if (!is_float(t)) return constant(Scalar::of_int(t, pick(9) - (is_signed(t) ? 4 : 0)));
    return constant(t, (pick(33) - 16) / 4.0);
  }
  UOp leaf() {
    switch (pick(6)) {
      case 0: return random_buffer();
      case 1: return scalar(any_dtype());
      case 2: return iota(Dim(1 + pick(40)), integer_dtype());
      case 3: return variable_ ? cast(variable_, integer_dtype()) : iota(Dim(7), integer_dtype());
      default: {
        const UOp& x = any();
        return expand(reshape(scalar(any_dtype()), Shape(x->shape.size(), Dim(1))), x->shape);
      }
    }
  }
  DType integer_dtype() {
    for (int i = 0; i < 8; i++) {
      if (const DType t = any_dtype(); is_int(t)) return t;
    }
    return DType::I32;
  }
  // A part of symbolic length of something that is there.
  void symbolic() {
    for (const UOp& x : std::vector<UOp>(pool_)) {
      for (size_t axis = 0; axis < x->shape.size() && !variable_; axis++) {
        const int64_t extent = x->shape[axis].max();
        if (extent < 2) continue;
        const std::string name = fmt::format("n{}", case_.seed);  // graphs run side by side
        const int64_t least = maybe(4) ? 0 : 1;
        variable_ = variable(name, least, extent);
        case_.variables[name] = bindings_.variables[name] = least + pick(extent + 1 - least);
        Pairs part;
        for (const Dim& d : x->shape) part.push_back({Dim(0), d});
        part[axis].b = Dim(variable_);
        keep(shrink(x, part));
      }
    }
  }

  // ---- one step --------------------------------------------------------------------------------
  // What a step may make, and how often.
  UOp next() {
    struct Choice {
      int weight;
      UOp (*make)(Builder& b);
    };
    static constexpr Choice choices[] = {
        {12, [](Builder& b) { return b.unary(); }},
        {20, [](Builder& b) { return b.binary(); }},
        {4, [](Builder& b) { return b.compare(); }},
        {4, [](Builder& b) { return b.choice(); }},
        {4, [](Builder& b) { return cast(b.any(), b.any_dtype()); }},
        {2, [](Builder& b) { return b.reinterpreted(); }},
        {1, [](Builder& b) { return b.threefry(); }},
        {9, [](Builder& b) { return b.reduction(); }},
        {6, [](Builder& b) { return b.reshaped(b.any()); }},
        {5, [](Builder& b) { return b.permuted(b.any()); }},
        {5, [](Builder& b) { return b.expanded(b.any()); }},
        {6, [](Builder& b) { return b.padded(b.any()); }},
        {6, [](Builder& b) { return b.shrunk(b.any()); }},
        {4, [](Builder& b) { return b.flipped(b.any()); }},
        {4, [](Builder& b) { return b.leaf(); }},
        {3, [](Builder& b) { return b.placed_copy(b.any()); }},
        {6, [](Builder& b) { return b.options_.assigns ? b.assigned() : UOp(); }},
        {2, [](Builder& b) { return b.gathered(); }},
        {2, [](Builder& b) { return b.scattered(); }},
        {2, [](Builder& b) { return b.options_.loops ? b.looped() : UOp(); }},
        {3, [](Builder& b) { return b.product(); }},
        {3, [](Builder& b) { return b.less_row_base(); }},
    };
    int total = 0;
    for (const Choice& c : choices) total += c.weight;
    int left = pick(total);
    size_t i = 0;
    while (left >= choices[i].weight) left -= choices[i++].weight;
    return choices[i].make(*this);
  }

  UOp unary() {
    if (maybe(4)) {
      const UOp x = any_of([](DType t) { return t != DType::Bool; });
      return x ? alu(Op::Neg, {x}) : UOp();
    }
    UOp x = any_of([](DType t) { return is_float(t); });
    if (!x) return {};
    static const std::vector<Op> functions = drawn(kUnary, DTypeRule::Same, takes_floats, {});
    const Op op = one_of(functions);
    const Domain domain = domains_of(op).first;
    // Most of the time a positive argument, as users take care to have.
    if ((domain == Domain::Positive || domain == Domain::Divisor) && !maybe(8))
      x = alu(Op::Add, {alu(Op::Mul, {x, x}), constant(x->dtype, 0.5)});
    return alu(op, {x});
  }
  UOp binary() {
    static const std::vector<Op> floats = drawn(
        kBinary, DTypeRule::Same, takes_floats,
        {Op::Add, Op::Sub, Op::Mul, Op::Add, Op::Max, Op::Max, Op::Div});
    static const std::vector<Op> ints = drawn(
        kBinary, DTypeRule::Same, takes_integers,
        {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Max, Op::And, Op::Or, Op::Xor, Op::IDiv,
         Op::IMod});
    static const std::vector<Op> bools = drawn(kBinary, DTypeRule::Same, takes_bools,
                                               {Op::Add, Op::Sub, Op::Mul, Op::Max});
    const UOp x = any();
    const Op op = is_float(x->dtype)        ? one_of(floats)
                  : x->dtype == DType::Bool ? one_of(bools)
                                            : one_of(ints);
    UOp y = operand(x);
    if (op == Op::Shl || op == Op::Shr)
      y = alu(Op::And, {y, constant(Scalar::of_int(x->dtype, row(x->dtype).storage_bits - 1))});
    return maybe(2) || op == Op::Shl || op == Op::Shr ? alu(op, {x, y}) : alu(op, {y, x});
  }
  // An operand of x's dtype and shape, or a scalar.
  UOp operand(const UOp& x) {
    if (maybe(6)) return scalar(x->dtype);
    return fitted(cast(any(), x->dtype), x->shape);
  }
  UOp compare() {
    static const std::vector<Op> comparisons =
        drawn(kBinary, DTypeRule::Bool, [](Op) { return true; }, {});
    const UOp& x = any();
    return alu(one_of(comparisons), {x, operand(x)});
  }
  UOp choice() {
    const UOp x = any();
    const UOp c = any()->dtype == DType::Bool ? any() : compare();
    const UOp condition = c->dtype == DType::Bool ? c : compare();
    return where(fitted(condition, x->shape), x, operand(x));
  }
  UOp reinterpreted() {
    const UOp x = any();
    std::vector<DType> same;
    for (DType t : options_.dtypes) {
      if (row(t).storage_bits == row(x->dtype).storage_bits && t != DType::Bool && t != x->dtype)
        same.push_back(t);
    }
    return same.empty() || x->dtype == DType::Bool ? UOp() : bitcast(x, one_of(same));
  }
  UOp threefry() {
    if (!has(DType::U32)) return {};
    const UOp x = cast(any(), DType::U32);
    return make(Op::Threefry, DType::U32, {x, operand(x), scalar(DType::U32), operand(x)},
                int64_t(pick(2)));
  }

  // ---- movement --------------------------------------------------------------------------------
  // y with another shape: by whatever movement and reduction gets it there.
  UOp fitted(const UOp& y, const Shape& shape) {
    if (y->shape == shape || y->shape.empty()) return y;
    const bool constant_shapes = is_constant(y->shape) && is_constant(shape);
    if (constant_shapes && element_count(y->shape) == element_count(shape))
      return reshape(y, shape);
    if (y->shape.size() == shape.size()) {
      if (constant_shapes && maybe(2)) return cut_or_padded(y, shape);
      IntVec axes;
      for (size_t i = 0; i < shape.size(); i++) {
        if (!(y->shape[i] == shape[i])) axes.push_back(int64_t(i));
      }
      return expand(reduce(maybe(2) ? Op::Add : Op::Max, y, axes), shape);
    }
    const UOp one = reduce(maybe(2) ? Op::Add : Op::Max, y, all_axes(y->shape));
    return expand(reshape(one, Shape(shape.size(), Dim(1))), shape);
  }
  UOp cut_or_padded(const UOp& y, const Shape& shape) {
    Pairs cut, more;
    for (size_t i = 0; i < shape.size(); i++) {
      const int64_t from = y->shape[i].value(), to = shape[i].value();
      const int64_t begin = from > to ? pick(from - to + 1) : 0;
      cut.push_back({Dim(begin), Dim(begin + std::min(from, to))});
      const int64_t before = from < to ? pick(to - from + 1) : 0;
      more.push_back({Dim(before), Dim(from < to ? to - from - before : 0)});
    }
    return pad(shrink(y, cut), more);
  }
  UOp reshaped(const UOp& x) {
    if (!is_constant(x->shape)) return with_ones(x);
    Shape s;
    int64_t rest = element_count(x->shape);
    for (int64_t f : {2, 3, 4, 5, 7}) {
      if (rest % f == 0 && rest > 0 && maybe(2)) {
        s.push_back(Dim(f));
        rest /= f;
      }
      if (maybe(6)) s.push_back(Dim(1));
    }
    std::shuffle(s.begin(), s.end(), random_);
    s.insert(s.begin() + pick(int64_t(s.size()) + 1), Dim(rest));
    return reshape(x, s);
  }
  // A symbolic shape: ones come and go; sometimes two axes become one.
  UOp with_ones(const UOp& x) {
    Shape s;
    for (const Dim& d : x->shape) {
      if (!(d == 1) || maybe(2)) s.push_back(d);
      if (maybe(4)) s.push_back(Dim(1));
    }
    if (s.size() > 1 && maybe(3)) {
      const size_t at = size_t(pick(int64_t(s.size()) - 1));
      s[at] = s[at] * s[at + 1];
      s.erase(s.begin() + std::ptrdiff_t(at) + 1);
    }
    return reshape(x, s);
  }
  UOp permuted(const UOp& x) {
    IntVec axes = all_axes(x->shape);
    std::shuffle(axes.begin(), axes.end(), random_);
    return permute(x, axes);
  }
  UOp expanded(const UOp& x) {
    Shape s = x->shape;
    const size_t at = size_t(pick(int64_t(s.size()) + 1));
    s.insert(s.begin() + std::ptrdiff_t(at), Dim(1));
    const UOp r = reshape(x, s);
    s[at] = Dim(maybe(30) ? 0 : 2 + pick(6));
    return expand(r, s);
  }
  UOp padded(const UOp& x) {
    Pairs p;
    for (size_t i = 0; i < x->shape.size(); i++)
      p.push_back({Dim(maybe(2) ? 0 : pick(4)), Dim(maybe(2) ? 0 : pick(4))});
    return pad(x, p);
  }
  UOp shrunk(const UOp& x) {
    Pairs p;
    for (const Dim& d : x->shape) {
      if (!d.is_const() || maybe(2)) {
        const bool may_lose_one = !d.is_const() && d.uop()->min > 0 && maybe(2);
        p.push_back({Dim(may_lose_one ? 1 : 0), d});
        continue;
      }
      const int64_t begin = pick(d.value() + 1);
      const int64_t size = maybe(20) ? 0 : 1 + pick(std::max<int64_t>(d.value() - begin, 1));
      p.push_back({Dim(begin), Dim(std::min(begin + size, d.value()))});
    }
    return shrink(x, p);
  }
  UOp flipped(const UOp& x) {
    IntVec axes;
    for (size_t i = 0; i < x->shape.size(); i++) {
      if (maybe(2)) axes.push_back(int64_t(i));
    }
    return flip(x, axes);
  }

  // ---- reductions, and what the tensor layer makes of them -------------------------------------
  UOp reduction() {
    const UOp x = any();
    IntVec axes;
    for (size_t i = 0; i < x->shape.size(); i++) {
      if (maybe(2)) axes.push_back(int64_t(i));
    }
    const Op op = maybe(6) ? Op::Mul : maybe(3) ? Op::Max : Op::Add;
    const UOp r = reduce(op, x, axes);
    return maybe(2) ? r : expand(r, x->shape);
  }
  // As Tensor::gather: a sum over where(counter == index, x, 0).
  UOp gathered() {
    const UOp x = any();
    if (x->shape.empty() || !x->shape[0].is_const() || x->shape[0] == 0 || !has(DType::I32))
      return {};
    const int64_t size = x->shape[0].value(), count = 1 + pick(5);
    UOp index = cast(any(), DType::I32);
    if (!is_constant(index->shape) || index->shape.empty()) return {};
    index = fitted(index, {Dim(count)});
    if (maybe(2)) index = alu(Op::And, {index, constant(Scalar::of_int(DType::I32, 7))});
    Shape whole{Dim(count)}, rows(x->shape.size() + 1, Dim(1)), numbers = rows, values = x->shape;
    whole.insert(whole.end(), x->shape.begin(), x->shape.end());
    rows[0] = Dim(count);
    numbers[1] = Dim(size);
    values.insert(values.begin(), Dim(1));
    const UOp hit = alu(Op::CmpEq, {expand(reshape(index, rows), whole),
                                    expand(reshape(iota(Dim(size), DType::I32), numbers), whole)});
    const UOp zero = constant(Scalar::of_int(x->dtype, 0));
    return reduce(Op::Add, where(hit, expand(reshape(x, values), whole), zero), {1});
  }
  // Rows, or elements each with an index of its own, put to x or combined with it.
  UOp scattered() {
    const UOp x = any(), given = any_of([](DType t) { return is_int(t); });
    if (!given || x->shape.empty() || given->shape.empty() || !has(DType::I32)) return {};
    if (!is_constant(x->shape) || !is_constant(given->shape)) return {};
    const int64_t axis = pick(int64_t(x->shape.size()));
    Shape shape = x->shape, along(shape.size(), Dim(1));
    shape[size_t(axis)] = along[size_t(axis)] = Dim(1 + pick(6));
    UOp index = fitted(cast(given, DType::I32), maybe(2) ? along : shape);
    if (!maybe(3)) index = alu(Op::And, {index, constant(Scalar::of_int(DType::I32, 3))});
    if (index->shape == along) index = expand(index, shape);
    const UOp value = fitted(cast(any(), x->dtype), shape);
    if (!(index->shape == shape) || !(value->shape == shape)) return {};
    const bool replaces = x->dtype == DType::Bool || maybe(2);
    const Op op = replaces ? Op::Assign : maybe(5) ? Op::Mul : Op::Add;
    return scatter(x, value, index, {op, axis});
  }
  // A few steps of a state, a row and something that stays, some with a reduction.
  UOp looped() {
    const UOp x = any();
    if (x->shape.empty() || x->dtype == DType::Bool || !is_constant(x->shape)) return {};
    const int64_t steps = 1 + pick(4);
    Shape rows = x->shape;
    rows.insert(rows.begin(), Dim(steps));
    const UOp sequence = fitted(cast(any(), x->dtype), rows), other = operand(x);
    if (!(sequence->shape == rows)) return {};
    LoopSpec spec{.initial = {x}, .sequences = {sequence}, .steps = steps, .reverse = maybe(2),
                  .device = options_.device};
    const UOp state = place_of(x->dtype, x->shape, options_.device),
              row = place_of(x->dtype, x->shape, options_.device);
    spec.states = {state};
    spec.rows = {row};
    const std::vector<int64_t> last{int64_t(x->shape.size()) - 1};
    const auto folded = [&](const UOp& u) { return expand(reduce(Op::Max, u, last), x->shape); };
    const UOp larger = alu(Op::Max, {maybe(2) ? flip(state, last) : state, row});
    spec.next = {maybe(2) ? alu(Op::Sub, {other, maybe(2) ? folded(larger) : larger})
                          : alu(Op::Max, {alu(Op::Sub, {folded(row), state}), other})};
    const UOp all = loop(spec);
    return maybe(2) ? last_state(all, 0) : states_after(all, 0);
  }
  // A matrix product of x with something of its rows' length.
  UOp product() {
    const UOp x = any();
    if (x->shape.empty() || x->dtype == DType::Bool || !is_constant(x->shape)) return {};
    const size_t rank = x->shape.size();
    const Dim inner = x->shape[rank - 1], columns(1 + pick(9));
    const UOp y = fitted(cast(any(), x->dtype), {columns, inner});
    if (y->shape.empty()) return {};
    Shape left = x->shape, right(rank + 1, Dim(1)), whole = x->shape;
    left.insert(left.end() - 1, Dim(1));
    whole.insert(whole.end() - 1, columns);
    right[rank - 1] = columns;
    right[rank] = inner;
    const UOp terms =
        alu(Op::Mul, {expand(reshape(x, left), whole), expand(reshape(y, right), whole)});
    return reduce(Op::Add, terms, {int64_t(rank)});
  }
  // x less its row's largest or sum, as softmax and norms begin.
  UOp less_row_base() {
    const UOp x = any();
    if (x->shape.empty() || x->dtype == DType::Bool) return {};
    const int64_t axis = pick(int64_t(x->shape.size()));
    const UOp base = reduce(maybe(2) ? Op::Max : Op::Add, x, {axis});
    const UOp y = alu(Op::Sub, {x, expand(base, x->shape)});
    if (!is_float(x->dtype) || maybe(2)) return y;
    const UOp e = alu(Op::Exp2, {y});
    return alu(Op::Div, {e, expand(reduce(Op::Add, e, {axis}), x->shape)});
  }

  // ---- memory ----------------------------------------------------------------------------------
  UOp placed_copy(const UOp& x) {
    const Placement here{{options_.device}};
    if (!x->device) return make(maybe(2) ? Op::Contiguous : Op::Copy, x->dtype, {x}, here);
    switch (pick(3)) {
      case 0: return make(Op::Contiguous, x->dtype, {x});
      case 1: return make(Op::Detach, x->dtype, {x});
      default: return make(Op::Copy, x->dtype, {x}, here);
    }
  }
  UOp assigned() {
    UOp& version = one_of(versions_);
    const UOp target = maybe(4) ? reshape(reshaped(version), version->shape) : version;
    const Arg part = maybe(2) ? Arg(random_part(version->shape)) : Arg();
    const Pairs* pairs = std::get_if<Pairs>(&part);
    const Shape shape = pairs ? shrink(version, *pairs)->shape : version->shape;
    UOp value = fitted(value_to_assign(version, pairs), shape);
    value = cast(value, version->dtype);
    if (maybe(2)) value = alu(Op::Add, {value, scalar(version->dtype)});
    if (maybe(4)) value = fitted(flipped(value), shape);
    if (!(value->shape == shape)) return {};
    if (!value->device)
      value = make(Op::Contiguous, value->dtype, {value}, Placement{{options_.device}});
    const UOp next = make(Op::Assign, version->dtype, {target, value}, part);
    if (!acceptable(next)) return {};
    version = next;
    return next;
  }
  // Memory often gets what was there before: in the same place, or in another.
  UOp value_to_assign(const UOp& version, const Pairs* part) {
    if (!maybe(3)) return any();
    return part && maybe(2) ? shrink(version, *part) : version;
  }
  // Some of each axis, from a number or the variable on.
  Pairs random_part(const Shape& shape) {
    Pairs p;
    bool varies = variable_ && maybe(2);
    for (const Dim& d : shape) {
      const int64_t room = d.value() - (varies ? variable_->max : 0);
      if (varies && room > 0) {
        p.push_back({Dim(variable_), Dim(variable_) + Dim(1 + pick(room))});
        varies = false;
        continue;
      }
      const int64_t begin = maybe(3) ? 0 : pick(d.value() + 1);
      const int64_t end = maybe(3) ? d.value() : begin + pick(d.value() - begin + 1);
      p.push_back({Dim(begin), Dim(end)});
    }
    return p;
  }

  // ---- what is kept ----------------------------------------------------------------------------
  void keep(const UOp& u) {
    if (!u || (u->op != Op::Assign && !acceptable(u))) return;
    if (element_count(u->shape) == 0 && !pool_.empty() && !maybe(3))
      return;  // they make more of their kind
    if (std::find(pool_.begin(), pool_.end(), u) == pool_.end()) pool_.push_back(u);
  }
  bool acceptable(const UOp& u) {
    if (u->shape.size() > 6 || element_count(u->shape) > max_elements_) return false;
    if (without_reshapes(u.get())->op == Op::Buffer) return true;
    for (const Node* n : toposort_gated(std::span<const UOp>(&u, 1),
                                        [&](const Node* x) { return !seen_.count(x); })) {
      if (element_count(n->shape) > 8 * max_elements_) return false;
    }
    const HostArray& value = expected_.value(u);
    const std::vector<double>& error = expected_.errors(u);
    const double largest = is_float8(u->dtype)         ? largest_value(u->dtype) / 4
                           : size_bytes(u->dtype) == 2 ? kLargestNarrow
                                                       : kLargestFloat;
    size_t vague = 0, wild = 0;
    for (size_t i = 0; i < error.size(); i++) {
      const double v = is_float(u->dtype) ? std::abs(value.at(int64_t(i)).as_double()) : 0;
      wild += !(v <= largest);
      vague += error[i] > kVague * (1 + v);
    }
    seen_.insert(u.get());
    return vague * 4 <= error.size() && (special_ || wild == 0);
  }

  // Every value that nothing else uses, the latest first, and the last version of what is assigned:
  // a version that is stored is a tensor of the user.
  void choose_sinks() {
    std::unordered_set<const Node*> used;
    for (const Node* n : toposort(pool_)) {
      for (const UOp& s : n->src()) used.insert(s.get());
    }
    const size_t limit = 1 + size_t(pick(5));
    for (size_t i = pool_.size(); i-- > 0 && case_.sinks.size() < limit;) {
      if (used.count(pool_[i].get()) && !maybe(12)) continue;
      add_sink(pool_[i]);
    }
    for (const UOp& v : versions_) {
      if (v->op == Op::Assign) add_sink(v);
    }
  }
  // As Tensor::realize asks: what knows no device is told, a view may be asked for as it is.
  void add_sink(const UOp& u) {
    UOp s = u;
    if (!u->device) {
      s = make(Op::Contiguous, u->dtype, {u}, Placement{{options_.device}});
    } else if (is_movement(u->op) && maybe(2)) {
      s = make(Op::Contiguous, u->dtype, {u});
    }
    if (std::find(case_.sinks.begin(), case_.sinks.end(), s) == case_.sinks.end())
      case_.sinks.push_back(s);
  }

  GraphOptions options_;
  std::mt19937_64 random_;
  int64_t max_elements_ = 400;
  bool special_ = false;  // infinities, NaNs and limits among the values
  Bindings bindings_;
  Expectation expected_;
  GraphCase case_;
  UOp variable_;
  std::vector<UOp> pool_, versions_;  // versions_: the last one of each buffer
  std::unordered_set<const Node*> seen_;
};

}  // namespace

GraphCase random_graph(uint64_t seed, const GraphOptions& options) {
  return with_used_inputs(Builder(seed, options).build());
}

}  // namespace tuff::check
