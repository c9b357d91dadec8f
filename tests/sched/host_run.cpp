#include "sched/host_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "ir/direct_run.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::sched::testing {

using namespace ir;
using ir::testing::run_direct;

namespace {

Scalar meaning(const Node& n, std::span<const Scalar> src) {
  const int64_t* word = std::get_if<int64_t>(&n.arg);
  return eval_scalar(n.op, n.dtype, src, word ? *word : 0);
}

// What is loaded is what was there before the kernel: it stores where it has loaded already, or
// where it never does. What is loaded after iterations in their order is what these have stored.
void run_kernel(const Schedule& s, const Call& call, const std::vector<std::byte*>& memory) {
  std::vector<Bytes> before;  // of outputs
  for (uint32_t a = 0; a < call.output_count; a++) {
    const BufferSlot& b = s.buffers[call.args[a]];
    before.emplace_back(memory[a], memory[a] + b.size_bytes());
  }
  run_direct(call.ast, [&](const Node& index, int64_t element, bool write) {
    const Node& memory_of = *without_after(index.src(0).get());
    const ParamArg& p = memory_of.get<ParamArg>();
    TUFF_CHECK(size_t(p.slot) < call.args.size(), "param {} has no argument", p.slot);
    const BufferSlot& slot = s.buffers[call.args[p.slot]];
    const bool is_output = uint32_t(p.slot) < call.output_count;
    TUFF_CHECK(!write || is_output, "store to input {}", p.slot);
    TUFF_CHECK(slot.dtype == index.dtype && slot.count == p.count,
               "param {} does not fit its buffer", p.slot);
    TUFF_CHECK(element >= 0 && element < slot.count, "offset {} outside buffer of {}", element,
               slot.count);
    const bool is_before = !write && is_output && &memory_of == index.src(0).get();
    std::byte* from = is_before ? before[p.slot].data() : memory[p.slot];
    return from + element * int64_t(size_bytes(slot.dtype));
  });
}

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
    if (c.kind == CallKind::Kernel) run_kernel(s, c, memory);
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
  Values out(size_t(element_count(n.shape)), reduce_identity(arg.op, n.dtype));
  for (size_t i = 0; i < x.size(); i++) {
    std::vector<int64_t> idx = unravel(int64_t(i), n.src(0)->shape);
    for (int64_t a : arg.axes) idx[a] = 0;
    Scalar& acc = out[size_t(ravel(idx, n.shape))];
    const Scalar pair[2] = {acc, x[i]};
    acc = eval_scalar(arg.op, n.dtype, pair);
  }
  return out;
}

Values assigned(const Node& n, const Values& target, const Values& value) {
  const Pairs* part = assigned_part(n);
  if (!part) return value;
  Values out = target;
  for (size_t i = 0; i < value.size(); i++) {
    std::vector<int64_t> idx = unravel(int64_t(i), n.src(1)->shape);
    for (size_t k = 0; k < idx.size(); k++) idx[k] += (*part)[k].a.value();
    out[size_t(ravel(idx, n.shape))] = value[i];
  }
  return out;
}

Values scattered(const Node& n, const Values& target, const Values& value, const Values& index) {
  const ScatterArg& arg = n.get<ScatterArg>();
  const auto axis = size_t(arg.axis);
  Values out = target;
  for (size_t i = 0; i < value.size(); i++) {
    std::vector<int64_t> at = unravel(int64_t(i), n.src(1)->shape);
    at[axis] = index[i].as_int();
    if (at[axis] < 0 || at[axis] >= n.shape[axis].max()) continue;
    Scalar& to = out[size_t(ravel(at, n.shape))];
    const Scalar pair[2] = {to, value[i]};
    to = arg.op == Op::Assign ? value[i] : eval_scalar(arg.op, n.dtype, pair);
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
  if (n.op == Op::Assign) return assigned(n, src(0), src(1));
  if (n.op == Op::Scatter) return scattered(n, src(0), src(1), src(2));
  if (n.op == Op::Iota) {
    Values out;
    for (int64_t i = 0; i < element_count(n.shape); i++) out.push_back(Scalar::of_int(n.dtype, i));
    return out;
  }
  if (n.op == Op::Contiguous || n.op == Op::Detach || n.op == Op::Copy || n.op == Op::Again)
    return src(0);
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
