// The linear floor's half of the reference interpreter: every op for all invocations of a workgroup
// and all lanes before the next op. In that lock-step a Barrier needs no work; what needs one and
// has none is found by who touched an element of workgroup memory since the last.
#include "ir/interpret.h"

#include <algorithm>

#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

using LaneMask = uint32_t;  // bit i: the value exists once per value of the i-th lane range

bool is_lane(const Node& n) {
  return n.op == Op::Range && ir::is_lane(n.get<RangeArg>().kind);
}

// The lane ranges of a list. Instances of a mask are numbered in mixed radix, the lowest bit
// fastest.
class LaneRanges {
 public:
  LaneMask add(const Node& range) {
    TUFF_CHECK(sizes_.size() < 32, "more than 32 lane ranges in a kernel");
    TUFF_CHECK(range.src(0)->is_const(), "a lane range of symbolic size");
    sizes_.push_back(range.src(0)->const_int());
    return LaneMask{1} << (sizes_.size() - 1);
  }
  size_t count(LaneMask mask) const {
    size_t n = 1;
    for (size_t bit = 0; bit < sizes_.size(); bit++) n *= mask >> bit & 1 ? size_t(sizes_[bit]) : 1;
    return n;
  }
  // The instance of `to` with the lane values that `instance` of `from` has; lanes of `to` alone
  // are 0.
  size_t project(LaneMask from, size_t instance, LaneMask to) const {
    size_t out = 0, stride = 1;
    for (size_t bit = 0; bit < sizes_.size(); bit++) {
      const size_t size = size_t(sizes_[bit]);
      size_t digit = 0;
      if (from >> bit & 1) {
        digit = instance % size;
        instance /= size;
      }
      if (to >> bit & 1) {
        out += digit * stride;
        stride *= size;
      }
    }
    return out;
  }

 private:
  std::vector<int64_t> sizes_;
};

// An op of the list, ready to run: sources by position, and per instance the instance of each
// source.
struct PlannedOp {
  const Node* node;
  LaneMask mask = 0;
  size_t instances = 1;
  size_t loop_end = 0;      // of a serial Range: the position of its End
  std::vector<size_t> src;  // positions, Afters looked through
  std::vector<std::vector<size_t>> src_instance;
};

// The list, analysed once for all workgroups.
class Plan {
 public:
  explicit Plan(std::span<const UOp> list) {
    for (size_t i = 0; i < list.size(); i++) {
      position_.emplace(list[i].get(), i);
      steps.push_back(step_of(*list[i]));
    }
    for (size_t i = 0; i < steps.size(); i++) {
      if (steps[i].node->op == Op::End) steps[position(steps[i].node->src(0))].loop_end = i;
    }
  }
  size_t position(const UOp& u) const {
    const auto it = position_.find(without_after(u.get()));
    TUFF_CHECK(it != position_.end(), "{} is used before it stands in the list", name(u->op));
    return it->second;
  }

  std::vector<PlannedOp> steps;
  LaneRanges lanes;

 private:
  LaneMask mask_of(const Node& n, const std::vector<size_t>& src) {
    if (is_lane(n)) return lanes.add(n);
    if (n.op == Op::Range || n.op == Op::End || n.op == Op::Barrier || n.op == Op::Sink) return 0;
    LaneMask mask = 0;
    for (size_t s : src) mask |= steps[s].mask;
    // The instances of a Reduce or a Dot are its results; those it folds are walked by it.
    const size_t folded = n.op == Op::Reduce ? 1 : n.op == Op::Dot ? 3 : src.size();
    for (size_t s = folded; s < src.size(); s++) mask &= ~steps[src[s]].mask;
    return mask;
  }
  PlannedOp step_of(const Node& n) {
    PlannedOp s{&n};
    if (n.op == Op::After || n.op == Op::End || n.op == Op::Barrier || n.op == Op::Sink) return s;
    for (const UOp& u : n.src()) s.src.push_back(position(u));
    s.mask = mask_of(n, s.src);
    s.instances = lanes.count(s.mask);
    for (size_t src : s.src) {
      std::vector<size_t>& map = s.src_instance.emplace_back();
      for (size_t i = 0; i < s.instances; i++)
        map.push_back(lanes.project(s.mask, i, steps[src].mask));
    }
    return s;
  }

  std::unordered_map<const Node*, size_t> position_;
};

// Memory of a workgroup, and who touched its elements since the last barrier.
class WorkgroupMemory {
 public:
  void reserve(size_t count, size_t element_bytes) {
    bytes_.resize(count * element_bytes);
    touched_.resize(count);
  }
  std::span<std::byte> bytes() { return bytes_; }
  // `interval`: so many barriers before, and one.
  void touch(size_t element, size_t invocation, uint64_t interval, bool write) {
    Touch& t = touched_[element];
    const bool written = t.written == interval && t.writer != invocation;
    const bool read = t.read == interval && (t.several || t.reader != invocation);
    TUFF_CHECK(!written && !(write && read),
               "invocation {} {} element {} of workgroup memory, which another {} since the last "
               "barrier",
               invocation, write ? "writes" : "reads", element, written ? "wrote" : "read");
    if (write) {
      t.written = interval, t.writer = invocation;
      return;
    }
    t.several = t.read == interval && (t.several || t.reader != invocation);
    t.read = interval, t.reader = invocation;
  }

 private:
  struct Touch {
    uint64_t written = 0, read = 0;  // intervals
    size_t writer = 0, reader = 0;
    bool several = false;  // readers
  };
  std::vector<std::byte> bytes_;
  std::vector<Touch> touched_;
};

class Workgroup {
 public:
  Workgroup(const Plan& plan, LinearRun& run, std::array<uint32_t, 3> group)
      : plan_(plan),
        run_(run),
        group_(group),
        invocations_(size_t{run.local[0]} * run.local[1] * run.local[2]),
        lanes_(run.subgroup_size ? run.subgroup_size : invocations_),
        matrices_(plan.steps.size()),
        values_(plan.steps.size()),
        shared_(plan.steps.size()) {
    for (size_t i = 0; i < values_.size(); i++)
      values_[i].resize(invocations_ * plan.steps[i].instances);
    for (size_t i = 0; i < matrices_.size(); i++) {
      if (holds_matrix(*plan.steps[i].node))
        matrices_[i].resize(invocations_ / lanes_ * plan.steps[i].instances);
    }
  }
  void run() { run(0, plan_.steps.size()); }

 private:
  void run(size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
      const PlannedOp& s = plan_.steps[i];
      if (s.node->op == Op::Range && !is_lane(*s.node)) {
        loop(i);
        i = s.loop_end;
        continue;
      }
      if (takes_matrix(*s.node)) {
        for (size_t g = 0; g < invocations_ / lanes_; g++) {
          for (size_t n = 0; n < s.instances; n++) execute_matrix(i, g, n);
        }
        continue;
      }
      if (is_alu(s.node->op)) {
        alu(i);
        continue;
      }
      for (size_t inv = 0; inv < invocations_; inv++) {
        for (size_t n = 0; n < s.instances; n++) execute(i, inv, n);
      }
    }
  }

  void loop(size_t i) {
    const PlannedOp& s = plan_.steps[i];
    TUFF_CHECK(s.loop_end > i, "a loop without an end");
    const int64_t trips = source(s, 0, 0, 0).as_int();
    for (size_t inv = 1; inv < invocations_; inv++) {
      TUFF_CHECK(source(s, 0, inv, 0).as_int() == trips,
                 "a loop's size differs between invocations");
    }
    for (int64_t trip = 0; trip < trips; trip++) {
      for (Scalar& v : values_[i]) v = Scalar::of_int(s.node->dtype, trip);
      run(i + 1, s.loop_end);
    }
  }

  Scalar& value(size_t at, size_t inv, size_t instance) {
    return values_[at][inv * plan_.steps[at].instances + instance];
  }
  const Scalar& source(const PlannedOp& s, size_t which, size_t inv, size_t instance) {
    const Scalar& v = value(s.src[which], inv, s.src_instance[which][instance]);
    check_computed(s, v);
    return v;
  }
  static void check_computed(const PlannedOp& s, const Scalar& v) {
    TUFF_CHECK(v.dtype != DType::Void, "{} reads a value that was never computed",
               name(s.node->op));
  }

  void execute(size_t i, size_t inv, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    const Node& u = *s.node;
    switch (u.op) {
      case Op::Const: value(i, inv, n) = u.get<Scalar>(); return;
      case Op::Range: value(i, inv, n) = Scalar::of_int(u.dtype, int64_t(n)); return;
      case Op::Variable: value(i, inv, n) = Scalar::of_int(u.dtype, variable(u)); return;
      case Op::Special:
        value(i, inv, n) = Scalar::of_int(u.dtype, coordinate(u.get<SpecialArg>(), inv));
        return;
      case Op::Register: value(i, inv, n) = Scalar{u.dtype, 0}; return;
      case Op::Shared:
        shared_[i].reserve(size_t(u.get<SharedArg>().count), size_bytes(u.dtype));
        return;
      case Op::Load: load(i, inv, n); return;
      case Op::Store: store(i, inv, n); return;
      case Op::Reduce: fold_lanes(i, inv, n); return;
      case Op::Dot: dot(i, inv, n); return;
      case Op::Shuffle: shuffle(i, inv, n); return;
      case Op::Param:
      case Op::Index:  // a place, no value: Load and Store look at it themselves
      case Op::After:
      case Op::Prefetch:
      case Op::Sink: return;
      case Op::Barrier: interval_ += inv == 0 && n == 0; return;
      default: TUFF_CHECK(false, "{} is not of the linear floor", name(u.op));
    }
  }

  int64_t variable(const Node& u) const {
    const auto it = run_.variables.find(u.get<VariableArg>().name);
    if (it == run_.variables.end())
      fail<InvalidArgument>("variable {} has no value bound to it", u.get<VariableArg>().name);
    return it->second;
  }
  int64_t coordinate(const SpecialArg& s, size_t inv) const {
    if (s.space == 'g') return group_[size_t(s.axis)];
    if (s.space == 's') return int64_t(s.axis == 0 ? inv % lanes_ : inv / lanes_);
    for (int8_t axis = 0; axis < s.axis; axis++) inv /= run_.local[size_t(axis)];
    return int64_t(inv % run_.local[size_t(s.axis)]);
  }

  // The element an Index names, or an empty span where its gate is closed.
  std::span<std::byte> place(size_t i, size_t inv, size_t n, bool write) {
    const PlannedOp& s = plan_.steps[i];
    if (s.src.size() > 2 && !source(s, 2, inv, n).as_bool()) return {};
    return element_of(s.src[0], source(s, 1, inv, n).as_int(), inv, write);
  }
  // An element of the memory that is step `of`.
  std::span<std::byte> element_of(size_t of, int64_t element, size_t inv, bool write) {
    const Node& memory = *plan_.steps[of].node;
    const size_t size = size_bytes(memory.dtype);
    std::span<std::byte> bytes;
    if (memory.op == Op::Shared) {
      bytes = shared_[of].bytes();
      TUFF_CHECK(element >= 0 && size_t(element + 1) * size <= bytes.size(),
                 "access out of bounds: element {} of {} bytes", element, bytes.size());
      shared_[of].touch(size_t(element), inv, interval_, write);
    } else {
      const ParamArg& p = memory.get<ParamArg>();
      TUFF_CHECK(size_t(p.slot) < run_.buffers.size(), "no buffer is bound to slot {}", p.slot);
      bytes = run_.buffers[size_t(p.slot)];
      TUFF_CHECK(element >= 0 && element < p.count,
                 "access out of bounds: element {} of slot {}, which has {}", element, p.slot,
                 p.count);
      if (run_.on_access) run_.on_access({p.slot, element, write, size});
    }
    TUFF_CHECK(element >= 0 && size_t(element + 1) * size <= bytes.size(),
               "access out of bounds: element {} of {} bytes", element, bytes.size());
    return bytes.subspan(size_t(element) * size, size);
  }
  void load(size_t i, size_t inv, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    const size_t from = s.src[0], at = s.src_instance[0][n];
    if (plan_.steps[from].node->op == Op::Register) {
      value(i, inv, n) = value(from, inv, at);
      return;
    }
    const std::span<std::byte> p = place(from, inv, at, false);
    value(i, inv, n) = p.empty() ? Scalar{s.node->dtype, 0} : load_scalar(s.node->dtype, p.data());
  }
  void store(size_t i, size_t inv, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    const Scalar v = source(s, 1, inv, n);
    const size_t to = s.src[0], at = s.src_instance[0][n];
    if (plan_.steps[to].node->op == Op::Register) {
      value(to, inv, at) = v;
      return;
    }
    const std::span<std::byte> p = place(to, inv, at, true);
    if (p.empty()) return;
    if (const auto* combined = std::get_if<ReduceArg>(&s.node->arg)) {
      const Scalar pair[2] = {load_scalar(v.dtype, p.data()), v};  // of a word, its float
      return store_scalar(eval_scalar(combined->op, v.dtype, pair), p.data());
    }
    if (s.src.size() < 3) return store_scalar(v, p.data());
    const uint64_t mask = source(s, 2, inv, n).bits, old = load_scalar(v.dtype, p.data()).bits;
    store_scalar({v.dtype, (old & ~mask) | (v.bits & mask)}, p.data());
  }
  void fold_lanes(size_t i, size_t inv, size_t n) {
    const PlannedOp &s = plan_.steps[i], &x = plan_.steps[s.src[0]];
    Scalar total;
    for (size_t at = 0; at < x.instances; at++) {
      if (plan_.lanes.project(x.mask, at, s.mask) != n) continue;
      const Scalar pair[2] = {total, value(s.src[0], inv, at)};
      total = total.dtype == DType::Void
                  ? pair[1]
                  : eval_scalar(s.node->get<ReduceArg>().op, s.node->dtype, pair);
    }
    value(i, inv, n) = total;
  }
  void dot(size_t i, size_t inv, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    LaneMask folded = 0;
    for (size_t r = 3; r < s.src.size(); r++) folded |= plan_.steps[s.src[r]].mask;
    const LaneMask all = s.mask | folded;
    Scalar total = source(s, 2, inv, n);
    for (size_t at = 0; at < plan_.lanes.count(all); at++) {
      if (plan_.lanes.project(all, at, s.mask) != n) continue;
      const auto factor = [&](size_t k) {
        return value(s.src[k], inv, plan_.lanes.project(all, at, plan_.steps[s.src[k]].mask));
      };
      const Scalar terms[3] = {factor(0), factor(1), total};
      total = eval_scalar(Op::MulAdd, s.node->dtype, terms);
    }
    value(i, inv, n) = total;
  }
  void shuffle(size_t i, size_t inv, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    const int64_t lane = source(s, 1, inv, n).as_int();
    TUFF_CHECK(lane >= 0 && size_t(lane) < lanes_, "lane {} of a subgroup of {}", lane, lanes_);
    value(i, inv, n) = source(s, 0, inv / lanes_ * lanes_ + size_t(lane), n);
  }
  void alu(size_t i) {
    struct Source {
      const Scalar* values;
      const size_t* instance;
      size_t instances;
    };
    const PlannedOp& s = plan_.steps[i];
    std::array<Source, 4> sources;
    for (size_t k = 0; k < s.src.size(); k++) {
      const size_t from = s.src[k];
      sources[k] = {values_[from].data(), s.src_instance[k].data(), plan_.steps[from].instances};
    }
    Scalar* out = values_[i].data();
    Scalar in[4];
    for (size_t inv = 0; inv < invocations_; inv++) {
      for (size_t n = 0; n < s.instances; n++) {
        for (size_t k = 0; k < s.src.size(); k++) {
          const Source& x = sources[k];
          in[k] = x.values[inv * x.instances + x.instance[n]];
          check_computed(s, in[k]);
        }
        *out++ = eval_scalar(s.node->op, s.node->dtype, {in, s.src.size()}, word_of(s.node->arg));
      }
    }
  }

  // ---- cooperative matrices: one for each subgroup, elements in rows ----
  using Matrix = std::vector<Scalar>;
  static bool holds_matrix(const Node& n) {
    return n.op == Op::Register ? std::holds_alternative<MatrixArg>(n.arg)
                                : matrix_of(&n) != nullptr;
  }
  static bool takes_matrix(const Node& n) {
    const bool moved = (n.op == Op::Load || n.op == Op::Store) && matrix_of(n.src(0).get());
    return moved || n.op == Op::MatrixFill || n.op == Op::MatrixLoad || n.op == Op::MatrixStore ||
           n.op == Op::MatrixMulAdd ||
           ((n.op == Op::Cast || n.op == Op::Mul) && matrix_of(&n));
  }
  Matrix& matrix(size_t at, size_t subgroup, size_t instance) {
    return matrices_[at][subgroup * plan_.steps[at].instances + instance];
  }
  const Matrix& matrix_source(const PlannedOp& s, size_t which, size_t subgroup, size_t n) {
    const Matrix& m = matrix(s.src[which], subgroup, s.src_instance[which][n]);
    TUFF_CHECK(!m.empty(), "{} reads a matrix that was never computed", name(s.node->op));
    return m;
  }
  void execute_matrix(size_t i, size_t g, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    const Node& u = *s.node;
    switch (u.op) {
      case Op::MatrixFill: {
        const MatrixArg& m = u.get<MatrixArg>();
        matrix(i, g, n) = Matrix(size_t(m.rows) * m.columns, source(s, 0, g * lanes_, n));
        return;
      }
      case Op::MatrixLoad:
        matrix(i, g, n).resize(size_t(u.get<MatrixArg>().rows) * u.get<MatrixArg>().columns);
        return move_matrix(s, g, n, matrix(i, g, n), false);
      case Op::MatrixStore: {
        Matrix stored = matrix_source(s, 1, g, n);
        return move_matrix(s, g, n, stored, true);
      }
      case Op::MatrixMulAdd: return multiply_add(i, g, n);
      case Op::Cast: {
        Matrix& out = matrix(i, g, n) = matrix_source(s, 0, g, n);
        for (Scalar& v : out) v = v.cast(u.dtype);
        return;
      }
      case Op::Mul: {
        Matrix product = matrix_source(s, 0, g, n);
        const Matrix& by = matrix_source(s, 1, g, n);
        for (size_t at = 0; at < product.size(); at++) {
          const Scalar terms[2] = {product[at], by[at]};
          product[at] = eval_scalar(Op::Mul, u.dtype, terms);
        }
        matrix(i, g, n) = std::move(product);
        return;
      }
      case Op::Load: matrix(i, g, n) = matrix_source(s, 0, g, n); return;
      default: matrix(s.src[0], g, s.src_instance[0][n]) = matrix_source(s, 1, g, n);
    }
  }
  // Between the memory that the first source names, in all lanes alike, and a matrix.
  void move_matrix(const PlannedOp& s, size_t g, size_t n, Matrix& matrix, bool write) {
    const MatrixArg& m = s.node->get<MatrixArg>();
    const PlannedOp& index = plan_.steps[s.src[0]];
    const size_t at = s.src_instance[0][n];
    const int64_t first = source(index, 1, g * lanes_, at).as_int();
    for (size_t lane = 1; lane < lanes_; lane++) {
      TUFF_CHECK(source(index, 1, g * lanes_ + lane, at).as_int() == first,
                 "{}: the lanes of a subgroup name different places", name(s.node->op));
    }
    for (int64_t r = 0; r < m.rows; r++) {
      for (int64_t c = 0; c < m.columns; c++) {
        const int64_t element = first + m.offset(r, c);
        const auto bytes = element_of(index.src[0], element, g * lanes_, write);
        Scalar& v = matrix[size_t(r * m.columns + c)];
        if (write) {
          store_scalar(v, bytes.data());
        } else {
          v = load_scalar(s.node->src(0)->dtype, bytes.data());
        }
      }
    }
  }
  void multiply_add(size_t i, size_t g, size_t n) {
    const PlannedOp& s = plan_.steps[i];
    const MatrixArg& m = s.node->get<MatrixArg>();
    const Matrix &a = matrix_source(s, 0, g, n), &b = matrix_source(s, 1, g, n);
    Matrix sum = matrix_source(s, 2, g, n);
    const size_t summed = a.size() / size_t(m.rows), columns = size_t(m.columns);
    for (size_t at = 0; at < sum.size(); at++) {
      for (size_t k = 0; k < summed; k++) {
        const Scalar terms[3] = {a[at / columns * summed + k].cast(s.node->dtype),
                                 b[k * columns + at % columns].cast(s.node->dtype), sum[at]};
        sum[at] = eval_scalar(Op::MulAdd, s.node->dtype, terms);
      }
    }
    matrix(i, g, n) = std::move(sum);
  }

  const Plan& plan_;
  LinearRun& run_;
  const std::array<uint32_t, 3> group_;
  const size_t invocations_, lanes_;
  std::vector<std::vector<Matrix>> matrices_;  // per step, subgroup, instance
  std::vector<std::vector<Scalar>> values_;    // per step, invocation, instance
  std::vector<WorkgroupMemory> shared_;        // per step that is one
  uint64_t interval_ = 1;                      // between barriers, from 1
};

}  // namespace

void interpret_linear(std::span<const UOp> list, LinearRun& run) {
  const Plan plan(list);
  for (uint32_t z = 0; z < run.groups[2]; z++) {
    for (uint32_t y = 0; y < run.groups[1]; y++) {
      for (uint32_t x = 0; x < run.groups[0]; x++) Workgroup(plan, run, {x, y, z}).run();
    }
  }
}

}  // namespace tuff::ir
