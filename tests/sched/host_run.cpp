#include "sched/host_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "graph/kept_rows.h"
#include "graph/scalar_eval.h"
#include "graph/walk.h"

namespace tuff::sched::testing {

using namespace graph;

namespace {

Scalar identity(Op op, DType t) {
  if (op == Op::Add) return Scalar::of_int(t, 0);
  if (op == Op::Mul) return Scalar::of_int(t, 1);
  if (is_float(t)) return Scalar::of_double(t, -INFINITY);
  if (t == DType::Bool || is_unsigned(t)) return Scalar::of_int(t, 0);
  return Scalar::of_int(t, int64_t(uint64_t(-1) << (row(t).storage_bits - 1)));
}

Scalar meaning(const Node& n, std::span<const Scalar> src) {
  const int64_t* word = std::get_if<int64_t>(&n.arg);
  return eval_scalar(n.op, n.dtype, src, word ? *word : 0);
}

// One kernel: every End's ranges outermost first, every value recomputed at each step. What is
// loaded is what was there before the kernel: it stores where it has loaded already, or where it
// never does.
class KernelRun {
 public:
  KernelRun(const Schedule& s, const Call& call, std::vector<std::byte*> memory)
      : s_(s), call_(call), memory_(std::move(memory)) {}

  void run() {
    for (uint32_t a = 0; a < call_.output_count; a++) {
      const BufferSlot& b = s_.buffers[call_.args[a]];
      before_.emplace_back(memory_[a], memory_[a] + b.size_bytes());
    }
    const UOp direct = without_kept_rows(call_.ast);
    for (const UOp& end : direct->src()) loop(end, 1);
  }

 private:
  using Memo = std::unordered_map<const Node*, Scalar>;

  void loop(const UOp& end, size_t k) {
    if (k == end->src_count) {
      Memo memo;
      const UOp& store = end->src(0);
      const Scalar v = eval(store->src(1).get(), memo);
      if (std::byte* p = address(store->src(0).get(), memo, true)) store_scalar(v, p);
      return;
    }
    const Node* r = end->src(k).get();
    Memo memo;
    const int64_t size = eval(r->src(0).get(), memo).as_int();
    for (int64_t i = 0; i < size; i++) {
      ranges_[r] = i;
      loop(end, k + 1);
    }
    ranges_.erase(r);
  }

  std::byte* address(const Node* index, Memo& memo, bool write) {
    if (index->src_count > 2 && !eval(index->src(2).get(), memo).as_bool()) return nullptr;
    const ParamArg& p = index->src(0)->get<ParamArg>();
    TUFF_CHECK(size_t(p.slot) < call_.args.size(), "param {} has no argument", p.slot);
    const BufferSlot& slot = s_.buffers[call_.args[p.slot]];
    TUFF_CHECK(!write || uint32_t(p.slot) < call_.output_count, "store to input {}", p.slot);
    TUFF_CHECK(slot.dtype == index->dtype && slot.count == p.count,
               "param {} does not fit its buffer", p.slot);
    const int64_t offset = eval(index->src(1).get(), memo).as_int();
    TUFF_CHECK(offset >= 0 && offset < slot.count, "offset {} outside buffer of {}", offset,
               slot.count);
    std::byte* from =
        !write && uint32_t(p.slot) < call_.output_count ? before_[p.slot].data() : memory_[p.slot];
    return from + offset * int64_t(size_bytes(slot.dtype));
  }

  Scalar eval(const Node* n, Memo& memo) {
    if (n->is_const()) return n->get<Scalar>();
    if (n->op == Op::Range) {
      TUFF_CHECK(ranges_.count(n), "range r{} is not open", n->get<RangeArg>().id);
      return Scalar::of_int(DType::Index, ranges_.at(n));
    }
    if (auto it = memo.find(n); it != memo.end()) return it->second;
    const Scalar v = compute(n, memo);
    memo.emplace(n, v);
    return v;
  }

  Scalar compute(const Node* n, Memo& memo) {
    if (n->op == Op::Load) {
      const std::byte* p = address(n->src(0).get(), memo, false);
      return p ? load_scalar(n->dtype, p) : Scalar::of_int(n->dtype, 0);
    }
    if (n->op == Op::Reduce) {
      Scalar acc = identity(n->get<ReduceArg>().op, n->dtype);
      fold(n, 1, outside(n, memo), acc);
      return acc;
    }
    std::vector<Scalar> src;
    for (const UOp& u : n->src()) src.push_back(eval(u.get(), memo));
    return meaning(*n, src);
  }

  // Every range that the value depends on has a value.
  bool is_open(const Node* m) const {
    std::set<const Node*> closed;
    for (const Node* n : toposort(UOp(m))) {
      if (n->op != Op::Reduce) continue;
      for (const UOp& r : n->src().subspan(1)) closed.insert(r.get());
    }
    for (const Node* n : toposort(UOp(m))) {
      if (n->op == Op::Range && !closed.count(n) && !ranges_.count(n)) return false;
    }
    return true;
  }
  // Reductions below one that are the same in each of its steps.
  Memo outside(const Node* n, Memo& memo) {
    Memo out;
    for (const Node* m : toposort(n->src(0))) {
      const auto ranges = n->src().subspan(1);
      const bool same =
          m->op == Op::Reduce && std::none_of(ranges.begin(), ranges.end(),
                                              [&](const UOp& r) { return depends_on(UOp(m), r); });
      if (same && is_open(m)) out.emplace(m, eval(m, memo));
    }
    return out;
  }

  void fold(const Node* n, size_t k, const Memo& same, Scalar& acc) {
    if (k == n->src_count) {
      Memo memo = same;
      const Scalar pair[2] = {acc, eval(n->src(0).get(), memo)};
      acc = eval_scalar(n->get<ReduceArg>().op, n->dtype, pair);
      return;
    }
    const Node* r = n->src(k).get();
    TUFF_CHECK(!ranges_.count(r), "range r{} is open twice", r->get<RangeArg>().id);
    const int64_t size = r->src(0)->const_int();
    for (int64_t i = 0; i < size; i++) {
      ranges_[r] = i;
      fold(n, k + 1, same, acc);
    }
    ranges_.erase(r);
  }

  const Schedule& s_;
  const Call& call_;
  std::vector<std::byte*> memory_;
  std::vector<Bytes> before_;  // of outputs
  std::unordered_map<const Node*, int64_t> ranges_;
};

Values read(const BufferSlot& b, const std::byte* p) {
  Values out;
  for (int64_t i = 0; i < b.count; i++)
    out.push_back(load_scalar(b.dtype, p + i * int64_t(size_bytes(b.dtype))));
  return out;
}

}  // namespace

RunResult run_schedule(const Scheduled& scheduled, const Contents& contents) {
  const Schedule& s = *scheduled.schedule;
  std::vector<Bytes> arenas, own(s.buffers.size());
  for (const Arena& a : s.arenas) arenas.emplace_back(a.size_bytes, std::byte(0xcd));
  std::vector<std::byte*> at(s.buffers.size());
  for (size_t i = 0; i < s.buffers.size(); i++) {
    const BufferSlot& b = s.buffers[i];
    if (b.origin == BufferOrigin::Temp) {
      TUFF_CHECK(b.arena_offset + b.size_bytes() <= s.arenas[b.arena].size_bytes,
                 "slot {} is outside its arena", i);
      at[i] = arenas[b.arena].data() + b.arena_offset;
      continue;
    }
    own[i].assign(b.size_bytes(), std::byte(0xcd));
    at[i] = own[i].data();
    if (b.origin != BufferOrigin::Input) continue;
    const Values& v = contents.at(scheduled.inputs[b.index]->id);
    for (size_t k = 0; k < v.size(); k++) store_scalar(v[k], at[i] + k * size_bytes(b.dtype));
  }
  for (const Call& c : s.calls) {
    std::vector<std::byte*> memory;
    for (uint32_t a : c.args) memory.push_back(at[a]);
    if (c.kind == CallKind::Kernel) KernelRun(s, c, memory).run();
    if (c.kind == CallKind::Copy) {
      TUFF_CHECK(s.buffers[c.args[0]].size_bytes() == s.buffers[c.args[1]].size_bytes(),
                 "copy of different sizes");
      std::copy_n(memory[1], s.buffers[c.args[0]].size_bytes(), memory[0]);
    }
    if (c.kind == CallKind::View) at[c.args[0]] = memory[1] + c.byte_offset;
  }
  RunResult out;
  for (uint32_t slot : s.sink_slots) out.sinks.push_back(read(s.buffers[slot], at[slot]));
  for (size_t i = 0; i < s.buffers.size(); i++) {
    const BufferSlot& b = s.buffers[i];
    if (b.origin == BufferOrigin::Input)
      out.storages[scheduled.inputs[b.index]->id] = read(b, at[i]);
  }
  return out;
}

namespace {

// Multi-index of element i.
std::vector<int64_t> unravel(int64_t i, const Shape& s) {
  std::vector<int64_t> out(s.size());
  for (size_t k = s.size(); k-- > 0;) {
    out[k] = i % s[k].max();
    i /= s[k].max();
  }
  return out;
}
int64_t ravel(const std::vector<int64_t>& idx, const Shape& s) {
  int64_t i = 0;
  for (size_t k = 0; k < s.size(); k++) i = i * s[k].max() + idx[k];
  return i;
}

// Element of the source, or -1 in padding.
int64_t moved(const Node& n, int64_t i) {
  const Shape& from = n.src(0)->shape;
  std::vector<int64_t> idx = unravel(i, n.shape), out = idx;
  switch (n.op) {
    case Op::Reshape: return i;
    case Op::Permute:
      for (size_t k = 0; k < idx.size(); k++) out[n.get<IntVec>()[k]] = idx[k];
      break;
    case Op::Expand:
      for (size_t k = 0; k < idx.size(); k++) out[k] = from[k] == 1 ? 0 : idx[k];
      break;
    case Op::Pad:
      for (size_t k = 0; k < idx.size(); k++) {
        out[k] = idx[k] - n.get<Pairs>()[k].a.value();
        if (out[k] < 0 || out[k] >= from[k].value()) return -1;
      }
      break;
    case Op::Shrink:
      for (size_t k = 0; k < idx.size(); k++) out[k] = idx[k] + n.get<Pairs>()[k].a.value();
      break;
    case Op::Flip:
      for (int64_t a : n.get<IntVec>()) out[a] = from[a].value() - 1 - idx[a];
      break;
    default: TUFF_CHECK(false);
  }
  return ravel(out, from);
}

Values reduced(const Node& n, const Values& x) {
  const ReduceArg& arg = n.get<ReduceArg>();
  Values out(size_t(element_count(n.shape)), identity(arg.op, n.dtype));
  for (size_t i = 0; i < x.size(); i++) {
    std::vector<int64_t> idx = unravel(int64_t(i), n.src(0)->shape);
    for (int64_t a : arg.axes) idx[a] = 0;
    Scalar& acc = out[size_t(ravel(idx, n.shape))];
    const Scalar pair[2] = {acc, x[i]};
    acc = eval_scalar(arg.op, n.dtype, pair);
  }
  return out;
}

}  // namespace

const Values& TensorEvaluator::eval(const UOp& root) {
  for (const Node* n : toposort(root)) {
    if (!memo_.count(n)) memo_.emplace(n, compute(*n));
  }
  return memo_.at(root.get());
}

Values TensorEvaluator::compute(const Node& n) {
  auto src = [&](size_t k) -> const Values& { return memo_.at(n.src(k).get()); };
  if (n.op == Op::Const) return {n.get<Scalar>()};
  if (n.op == Op::Buffer) return contents_.at(n.get<Ref<Storage>>()->id);
  if (n.op == Op::Assign) return src(1);
  if (n.op == Op::Iota) {
    Values out;
    for (int64_t i = 0; i < element_count(n.shape); i++) out.push_back(Scalar::of_int(n.dtype, i));
    return out;
  }
  if (n.op == Op::Contiguous || n.op == Op::Detach || n.op == Op::Copy) return src(0);
  if (n.op == Op::Reduce) return reduced(n, src(0));
  Values out;
  const int64_t count = element_count(n.shape);
  for (int64_t i = 0; i < count; i++) {
    if (is_movement(n.op)) {
      const int64_t from = moved(n, i);
      out.push_back(from < 0 ? Scalar::of_int(n.dtype, 0) : src(0)[size_t(from)]);
      continue;
    }
    std::vector<Scalar> v;
    for (size_t k = 0; k < n.src_count; k++)
      v.push_back(src(k)[n.src(k)->shape.empty() ? 0 : size_t(i)]);
    out.push_back(meaning(n, v));
  }
  return out;
}

Contents random_contents(const Scheduled& s, uint32_t seed) {
  std::mt19937 rng(seed);
  Contents contents;
  for (const auto& in : s.inputs) {
    Values& v = contents[in->id];
    for (int64_t i = 0; i < in->count; i++)
      v.push_back(Scalar::of_double(in->dtype, double(int(rng() % 2001) - 1000) / 500));
  }
  return contents;
}

std::shared_ptr<const Schedule> expect_meaning(const std::vector<UOp>& sinks, double tolerance,
                                               const TargetOf& target_of) {
  const Scheduled s = schedule(sinks, target_of);
  const Contents contents = random_contents(s, 7);
  const RunResult got = run_schedule(s, contents);
  TensorEvaluator want(contents);
  for (size_t k = 0; k < sinks.size(); k++) {
    const Values& expected = want.eval(sinks[k]);
    EXPECT_EQ(got.sinks[k].size(), expected.size());
    for (size_t i = 0; i < expected.size(); i++) {
      const double e = expected[i].as_double();
      if (std::abs(got.sinks[k][i].as_double() - e) <= tolerance * (1 + std::abs(e))) continue;
      ADD_FAILURE() << "sink " << k << " element " << i << ": " << got.sinks[k][i].as_double()
                    << " for " << e << "\n"
                    << to_text(*s.schedule);
      break;
    }
  }
  return s.schedule;
}

const Target& host_target(const std::string&) {
  static const Target t = [] {
    Target x;
    x.device = "CPU";
    return x;
  }();
  return t;
}

UOp host_buffer(std::initializer_list<int64_t> extents, DType t, const std::string& device) {
  Shape shape;
  for (int64_t e : extents) shape.push_back(Dim(e));
  return reshape(buffer(make_ref<Storage>(device, t, element_count(shape))), shape);
}

int kernel_count(const Schedule& s) {
  return int(std::count_if(s.calls.begin(), s.calls.end(),
                           [](const Call& c) { return c.kind == CallKind::Kernel; }));
}

}  // namespace tuff::sched::testing
