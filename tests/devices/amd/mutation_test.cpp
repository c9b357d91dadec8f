// Takes away, one by one, every packet and every bit that orders memory from what the encoders
// emit, and runs it on emulated GPUs. Each deletion is found, by a finding, a wrong value or a
// hang, where the scene needs what was taken by its data flow (order_model), and nowhere else. In
// the written scenes each kind of deletion is found at least once, or is argued for here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <functional>

#include "devices/amd/mutation_bench.h"
#include "devices/amd/random_scene.h"
#include "emu/llvm_tools.h"

namespace tuff::devices::amd {
namespace {

using Memory = Bench::Memory;
using List = Bench::List;

// Orders in which a scene runs: those that show a deletion may be rare.
constexpr uint64_t kSeeds = 3, kSeedsOfNeeded = 1500;
constexpr uint64_t kRandomScenes = 20;  // of each kind of queue

struct SceneRow {
  std::string name;
  QueueKind kind;
  uint32_t gpus;
  std::function<bool(Bench& b, QueueKind kind)> run;  // whether all values were right
};

// ---- scenes. Each runs its lists at least twice, so that caches hold what was there before.

// Kernel after kernel, whose results the host reads; arguments and inputs change in between.
bool producer_consumer(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &dst = b.vram(), &args = b.system();
  auto& q = b.queue(kind);
  auto &add = b.program(code, "add"), &twice = b.program(code, "twice");
  List list;
  list.run(add, args.span());
  list.barrier();
  list.run(twice, args.span(128));
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 3; ++round) {
    src.set(5, 100 * round);
    b.arguments(args, 0, mid, src, round);
    b.arguments(args, 128, dst, mid, 7 * round);
    if (!b.finished(q, b.submit(prepared))) return false;
    if (dst.word(5) != 2 * (100 * round + round) + 7 * round) return false;
  }
  return true;
}

// Two submissions in a row over the same intermediate, nobody waits in between.
bool pipelined(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &args = b.system();
  Memory* dst[] = {&b.vram(), &b.vram()};
  auto& q = b.queue(kind);
  auto &add = b.program(code, "add"), &twice = b.program(code, "twice");
  for (uint32_t i = 0; i < 64; ++i) src.set(i, i);
  uint64_t end = 0;
  for (uint32_t k = 0; k < 2; ++k) {
    b.arguments(args, k * 256, mid, src, 10 * k);
    b.arguments(args, k * 256 + 128, *dst[k], mid, 0);
    List list;
    list.run(add, args.span(k * 256), 2);
    list.barrier();
    list.run(twice, args.span(k * 256 + 128), 2);
    end = b.submit(b.encode(q, list));
  }
  return b.finished(q, end) && dst[0]->word(40) == 80 && dst[1]->word(40) == 100;
}

// What a kernel wrote is read through the scalar cache, which has it from before.
bool scalar_consumer(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &args = b.system();
  Memory &dst = b.vram(), &last = b.vram();
  auto& q = b.queue(kind);
  auto &add = b.program(code, "add"), &scalar = b.program(code, "scalar");
  b.arguments(args, 0, mid, src, 1);
  b.arguments(args, 128, dst, mid, 2);
  b.arguments(args, 256, mid, src, 3);
  b.arguments(args, 384, last, mid, 4);
  List list;
  list.run(add, args.span());
  list.barrier();
  list.run(scalar, args.span(128));
  list.barrier();
  list.run(add, args.span(256));
  list.barrier();
  list.run(scalar, args.span(384));
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 0; round < 2; ++round) {
    src.set(0, 50 + round);
    if (!b.finished(q, b.submit(prepared)) || dst.word(3) != 53 + round) return false;
    if (last.word(3) != 57 + round || mid.word(3) != 3) return false;
  }
  return true;
}

// Copies before and behind kernels on the same queue.
bool copies(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &dst = b.vram(), &out = b.vram();
  Memory& args = b.system();
  auto& q = b.queue(kind);
  auto& add = b.program(code, "add");
  b.arguments(args, 0, dst, mid, 4);
  List list;
  list.copy(mid.span(), src.span());
  list.barrier();
  list.run(add, args.span());
  list.barrier();
  list.copy(out.span(), dst.span());
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 2; ++round) {
    src.set(7, 10 * round);
    if (!b.finished(q, b.submit(prepared)) || out.word(7) != 10 * round + 4) return false;
  }
  return true;
}

// A barrier in front of a copy is for the kernel behind it as well.
bool copy_between(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &dst = b.vram(), &args = b.system();
  Memory &from = b.vram(), &to = b.vram(), &last = b.vram();
  auto& q = b.queue(kind);
  auto &add = b.program(code, "add"), &scalar = b.program(code, "scalar");
  b.arguments(args, 0, mid, src, 4);
  b.arguments(args, 128, dst, mid, 5);
  b.arguments(args, 256, last, mid, 6);
  List list;
  list.run(add, args.span());
  list.barrier();
  list.copy(to.span(), from.span());
  list.run(add, args.span(128));
  list.barrier();
  list.copy(from.span(), dst.span());
  list.run(scalar, args.span(256));
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 2; ++round) {
    src.set(0, round);
    if (!b.finished(q, b.submit(prepared)) || dst.word(0) != round + 9) return false;
    if (from.word(0) != round + 9 || last.word(3) != round + 10) return false;
    if (to.word(0) != (round == 1 ? 0 : round + 8)) return false;
  }
  return true;
}

// Kernels of a list without barriers, the last of another shape and with other registers.
bool several_kernels(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &args = b.system();
  Memory* dst[] = {&b.vram(), &b.vram(), &b.vram()};
  auto& q = b.queue(kind);
  auto &add = b.program(code, "add"), &twice = b.program(code, "twice");
  auto& narrow = b.program(code, "add");
  narrow.kernel.local = {16, 1, 1};
  for (uint32_t i = 0; i < 64; ++i) src.set(i, i);
  for (uint32_t k = 0; k < 3; ++k) b.arguments(args, 128 * k, *dst[k], src, k);
  List list;
  list.run(add, args.span(), 2);
  list.run(twice, args.span(128), 2);
  list.run(narrow, args.span(256), 1);
  const auto prepared = b.encode(q, list);
  return b.finished(q, b.submit(prepared)) && dst[0]->word(40) == 40 && dst[1]->word(40) == 81 &&
         dst[2]->word(15) == 17 && dst[2]->word(16) == 0;
}

// The host has something to say in the middle of a list: it changes an input, then raises a signal.
bool wait_within(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &dst = b.vram(), &args = b.system();
  auto& q = b.queue(kind);
  auto& add = b.program(code, "add");
  auto &go = b.signal(), &done = b.signal();
  Memory& other = b.vram();
  b.arguments(args, 0, mid, src, 1);
  b.arguments(args, 128, dst, src, 1);
  b.arguments(args, 256, other, mid, 2);
  List list;
  list.commands.slot_count = 2;
  list.run(add, args.span());
  list.raise(done, 1);
  list.wait(go, 0);
  list.run(add, args.span(128));
  list.barrier();
  list.run(add, args.span(256));
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 2; ++round) {
    src.set(9, 20 * round);
    const uint64_t end = b.submit(prepared, {round, round});
    b.stand_still();  // not past the wait
    if (!b.reached(done, round) || mid.word(9) != 20 * round + 1) return false;
    src.set(9, 30 * round);
    b.raise(go, round);
    if (!b.finished(q, end) || dst.word(9) != 30 * round + 1) return false;
    if (other.word(9) != 20 * round + 3) return false;
  }
  return true;
}

// One kernel, whose arguments alone change.
bool patched_arguments(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &dst = b.vram(), &args = b.system();
  auto& q = b.queue(kind);
  List list;
  list.run(b.program(code, "add"), args.span());
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 2; ++round) {
    b.arguments(args, 0, dst, src, round);
    if (!b.finished(q, b.submit(prepared)) || dst.word(2) != round) return false;
  }
  return true;
}

// Puts set2's code where set's is; both have as many bytes.
void replace_code(Bench& b, Memory& code, uint64_t set) {
  const uint64_t set2 = b.program(code, "set2").kernel.entry;
  code.touched_by_host(set - code.block.address, 256, true);
  std::memcpy(code.block.host + (set - code.block.address),
              code.block.host + (set2 - code.block.address), 256);
}

// While a list waits the host changes what comes behind: arguments and code. What was written
// before is not released by a signal.
bool changed_meanwhile(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &dst = b.vram(), &out = b.vram();
  Memory &args = b.system(), &early = b.vram();
  auto &add = b.program(code, "add"), &set = b.program(code, "set");
  auto& q = b.queue(kind);
  auto& go = b.signal();
  b.arguments(args, 0, mid, src, 1);
  List list;
  list.commands.slot_count = 1;
  list.run(add, args.span());
  list.run(set, args.span(256));
  list.wait(go, 0);
  list.barrier();
  list.run(add, args.span(128));
  list.run(set, args.span(256));
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 2; ++round) {
    src.set(6, 50 * round);
    b.arguments(args, 128, dst, mid, 0);
    b.arguments(args, 256, early, src, 40);
    const uint64_t end = b.submit(prepared, {round});
    b.stand_still();  // not past the wait
    b.arguments(args, 128, dst, mid, round);
    b.arguments(args, 256, out, src, 60);
    if (round == 2) replace_code(b, code, set.kernel.entry);
    b.raise(go, round);
    if (!b.finished(q, end) || dst.word(6) != 50 * round + 1 + round) return false;
    if (out.word(0) != 59 + round || early.word(6) != 40) return false;
  }
  return true;
}

// A copy queue begins and ends while a compute queue has results that are in the L2 alone.
bool copy_beside(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &mid = b.vram(), &dst = b.vram(), &args = b.system();
  Memory &from = b.system(), &to = b.vram();
  auto& add = b.program(code, "add");
  auto &q = b.queue(kind), &s = b.queue(QueueKind::Sdma);
  auto& go = b.signal();
  src.set(6, 30);
  from.set(6, 8);
  b.arguments(args, 0, mid, src, 1);
  b.arguments(args, 128, dst, mid, 2);
  List list, copy;
  list.commands.slot_count = 1;
  list.run(add, args.span());
  list.barrier();
  list.wait(go, 0);
  list.run(add, args.span(128));
  copy.copy(to.span(), from.span());
  const uint64_t end = b.submit(b.encode(q, list), {1});
  b.stand_still();  // not past the wait
  if (!b.finished(s, b.submit(b.encode(s, copy)))) return false;
  b.raise(go, 1);
  return b.finished(q, end) && dst.word(6) == 33 && to.word(6) == 8;
}

// A copy queue brings inputs and fetches results of a compute queue.
bool copy_queue(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &staging = b.system(), &src = b.vram(), &dst = b.vram();
  Memory &back = b.system(), &args = b.system();
  auto &q = b.queue(kind), &s = b.queue(QueueKind::Sdma);
  auto& add = b.program(code, "add");
  auto &filled = b.signal(), &computed = b.signal();
  b.arguments(args, 0, dst, src, 6);
  List fill, compute, fetch;
  for (List* list : {&fill, &compute, &fetch}) list->commands.slot_count = 1;
  fill.copy(src.span(), staging.span());
  fill.raise(filled, 0);
  compute.wait(filled, 0);
  compute.run(add, args.span());
  compute.raise(computed, 0);
  fetch.wait(computed, 0);
  fetch.copy(back.span(), dst.span());
  const auto f = b.encode(s, fill), c = b.encode(q, compute), r = b.encode(s, fetch);
  for (uint32_t round = 1; round <= 3; ++round) {
    staging.set(3, 11 * round);
    b.submit(c, {round});
    b.submit(f, {round});
    const uint64_t end = b.submit(r, {round});
    if (!b.finished(s, end) || back.word(3) != 11 * round + 6) return false;
    if (!b.finished(q, q.value)) return false;
  }
  return true;
}

// Copies that depend on one another; the host fills VRAM by the bar and reads there.
bool copy_chain(Bench& b, QueueKind kind) {
  Memory &first = b.vram(), &second = b.vram(0, 1 << 18), &third = b.vram(0, 1 << 18);
  Memory& big = b.vram(0, 1 << 18);
  auto& q = b.queue(kind);
  List list;
  list.copy(second.span(0, 1 << 18), big.span(0, 1 << 18));
  list.barrier();
  list.copy(third.span(0, 1 << 18), second.span(0, 1 << 18));
  list.copy(first.span(), big.span());
  const auto prepared = b.encode(q, list);
  for (uint32_t round = 1; round <= 2; ++round) {
    big.set(5, round);
    big.set(60000, 2 * round);
    if (!b.finished(q, b.submit(prepared))) return false;
    if (third.word(60000) != 2 * round || first.word(5) != round) return false;
  }
  return true;
}

// Submissions of copies in a row, nobody waits in between.
bool copies_pipelined(Bench& b, QueueKind kind) {
  Memory &a = b.vram(0, 1 << 17), &mid = b.vram(0, 1 << 17), &out = b.vram(0, 1 << 17);
  auto& q = b.queue(kind);
  a.set(30000, 77);
  List in, on;
  in.copy(mid.span(0, 1 << 17), a.span(0, 1 << 17));
  on.copy(out.span(0, 1 << 17), mid.span(0, 1 << 17));
  b.submit(b.encode(q, in));
  return b.finished(q, b.submit(b.encode(q, on))) && out.word(30000) == 77;
}

// A kernel of one GPU reads what another GPU's wrote; then the first writes it again.
bool two_gpus(Bench& b, QueueKind kind) {
  Memory &code0 = b.code(0), &code1 = b.code(1), &src = b.vram(0), &x = b.vram(0);
  Memory &y = b.vram(1), &args = b.system();
  auto &q0 = b.queue(kind, 0), &q1 = b.queue(kind, 1);
  auto &add0 = b.program(code0, "add"), &add1 = b.program(code1, "add");
  auto &made = b.signal(), &used = b.signal();
  b.arguments(args, 0, x, src, 1);
  b.arguments(args, 128, y, x, 2);
  List make, use;
  make.commands.slot_count = use.commands.slot_count = 3;
  make.wait(used, 1);
  make.run(add0, args.span());
  make.raise(made, 0);
  make.wait(used, 2);  // nothing else brings x to memory before it is used
  use.wait(made, 0);
  use.run(add1, args.span(128));
  use.raise(used, 0);
  const auto m = b.encode(q0, make), u = b.encode(q1, use);
  for (uint32_t round = 1; round <= 3; ++round) {
    src.set(4, 9 * round);
    b.submit(m, {round, round - 1, round});
    const uint64_t end = b.submit(u, {round, 0, 0});
    if (!b.finished(q1, end) || y.word(4) != 9 * round + 3) return false;
    if (!b.finished(q0, q0.value)) return false;
  }
  return true;
}

// As two_gpus, with a copy queue of the second that fetches from the first's memory.
bool peer_copy(Bench& b, QueueKind kind) {
  Memory &code = b.code(0), &src = b.vram(0), &x = b.vram(0), &y = b.vram(1), &args = b.system();
  Memory& z = b.vram(1);
  auto &q = b.queue(kind, 0), &s = b.queue(QueueKind::Sdma, 1);
  auto& add = b.program(code, "add");
  auto &made = b.signal(), &used = b.signal();
  b.arguments(args, 0, x, src, 1);
  List make, use;
  make.commands.slot_count = use.commands.slot_count = 3;
  make.wait(used, 1);
  make.run(add, args.span());
  make.raise(made, 0);
  make.wait(used, 2);  // nothing else brings x to memory before it is used
  use.wait(made, 0);
  use.copy(y.span(), x.span());
  use.raise(used, 0);
  use.barrier();
  use.copy(z.span(), y.span());
  const auto m = b.encode(q, make), u = b.encode(s, use);
  for (uint32_t round = 1; round <= 3; ++round) {
    src.set(4, 9 * round);
    b.submit(m, {round, round - 1, round});
    const uint64_t end = b.submit(u, {round, 0, 0});
    if (!b.finished(s, end) || y.word(4) != 9 * round + 1 || z.word(4) != y.word(4)) return false;
    if (!b.finished(q, q.value)) return false;
  }
  return true;
}

// Times before and behind work.
bool times(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &dst = b.vram(), &args = b.system();
  auto& q = b.queue(kind);
  src.set(0, 6);
  b.arguments(args, 0, dst, src, 1);
  List list;
  list.commands.timestamp_count = 2;
  list.add(hcq::TimestampCmd{0});
  if (kind == QueueKind::Sdma) {
    list.copy(dst.span(), src.span());
  } else {
    list.run(b.program(code, "add"), args.span());
  }
  list.add(hcq::TimestampCmd{1});
  const uint64_t end = b.submit(b.encode(q, list));
  if (!b.finished(q, end)) return false;
  const uint64_t begin = b.timestamp(q, 0), behind = b.timestamp(q, 1);
  return begin && behind >= begin && dst.word(0) == (kind == QueueKind::Sdma ? 6 : 7);
}

// Other code where code was.
bool new_code(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &dst = b.vram(), &args = b.system();
  auto& q = b.queue(kind);
  auto& set = b.program(code, "set");
  b.arguments(args, 0, dst, dst, 40);
  List list;
  list.run(set, args.span());
  const auto prepared = b.encode(q, list);
  if (!b.finished(q, b.submit(prepared)) || dst.word(1) != 40) return false;
  replace_code(b, code, set.kernel.entry);
  return b.finished(q, b.submit(prepared)) && dst.word(1) == 41;
}

// A launch size that a kernel has written.
bool indirect(Bench& b, QueueKind kind) {
  Memory &code = b.code(), &src = b.vram(), &dst = b.vram(), &args = b.system(), &size = b.vram();
  Memory& ones = b.vram();
  auto& q = b.queue(kind);
  auto& add = b.program(code, "add");
  for (uint32_t i = 0; i < 64; ++i) src.set(i, i + 1);
  for (uint32_t i = 0; i < 3; ++i) ones.set(i, i == 0 ? 1 : 0);
  b.arguments(args, 0, size, ones, 1);
  b.arguments(args, 128, dst, src, 1);
  List list;
  list.run(add, args.span());
  list.barrier();
  list.add(hcq::DispatchCmd{&add, args.span(128), {}, size.span(0, 12)});
  const auto prepared = b.encode(q, list);
  return b.finished(q, b.submit(prepared)) && dst.word(40) == 42;
}

#define FOR_COMPUTE(scene, gpus) \
  {#scene, QueueKind::Pm4, gpus, scene}, { #scene " (AQL)", QueueKind::Aql, gpus, scene }

const std::vector<SceneRow> kScenes{
    FOR_COMPUTE(producer_consumer, 1),
    FOR_COMPUTE(pipelined, 1),
    FOR_COMPUTE(scalar_consumer, 1),
    FOR_COMPUTE(copies, 1),
    FOR_COMPUTE(copy_between, 1),
    FOR_COMPUTE(several_kernels, 1),
    FOR_COMPUTE(wait_within, 1),
    FOR_COMPUTE(patched_arguments, 1),
    FOR_COMPUTE(changed_meanwhile, 1),
    FOR_COMPUTE(copy_beside, 1),
    FOR_COMPUTE(copy_queue, 1),
    FOR_COMPUTE(two_gpus, 2),
    FOR_COMPUTE(peer_copy, 2),
    FOR_COMPUTE(times, 1),
    FOR_COMPUTE(new_code, 1),
    {"copy_chain", QueueKind::Pm4, 1, copy_chain},
    {"copy_chain (AQL)", QueueKind::Aql, 1, copy_chain},
    {"copy_chain (SDMA)", QueueKind::Sdma, 1, copy_chain},
    {"copies_pipelined", QueueKind::Pm4, 1, copies_pipelined},
    {"copies_pipelined (SDMA)", QueueKind::Sdma, 1, copies_pipelined},
    {"times (SDMA)", QueueKind::Sdma, 1, times},
    {"indirect", QueueKind::Pm4, 1, indirect},
};

std::vector<SceneRow> random_scenes() {
  std::vector<SceneRow> out;
  for (uint64_t seed = 1; seed <= kRandomScenes; ++seed) {
    for (const QueueKind kind : {QueueKind::Pm4, QueueKind::Aql}) {
      const uint32_t gpus = 1 + seed % 2;
      out.push_back(
          {fmt::format("random {}{}", seed, kind == QueueKind::Aql ? " (AQL)" : ""), kind, gpus,
           [gpus, seed](Bench& b, QueueKind k) { return run_random_scene(b, k, gpus, seed); }});
    }
  }
  return out;
}

struct Result {
  bool right = false;
  std::string text;   // findings and errors
  std::string wrong;  // by the model
  std::vector<Mutation> possible;
  std::vector<OrderModel::Verdict> verdicts;  // of each possible
  bool passed() const { return right && text.empty(); }
};

Result run(const SceneRow& row, uint64_t seed, const Mutation& mutation) {
  Bench b(row.gpus, seed, mutation);
  Result r;
  r.right = row.run(b, row.kind) && b.told_the_host();
  r.text = b.scene.findings_text();
  for (const std::string& error : b.scene.errors) r.text += error + "\n";
  return r;
}

Result run_whole(const SceneRow& row) {
  Bench b(row.gpus, 1, {});
  Result r;
  r.right = row.run(b, row.kind) && b.told_the_host();
  r.wrong = b.model.wrong();
  r.possible = b.possible;
  for (const Mutation& m : r.possible) r.verdicts.push_back(b.model.without(m));
  return r;
}

void run_without_a_finding(const SceneRow& row) {
  EXPECT_EQ(run_whole(row).wrong, "") << row.name;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Result r = run(row, seed, {});
    ASSERT_TRUE(r.passed()) << row.name << ", seed " << seed << (r.right ? "" : ": wrong values")
                            << "\n"
                            << r.text;
  }
}

TEST(AmdMutation, WholeListsRunWithoutAFinding) {
  for (const SceneRow& row : kScenes) run_without_a_finding(row);
  for (const SceneRow& row : random_scenes()) run_without_a_finding(row);
}

// What no scene needs of the encoders' output, and why it stands all the same.
const std::map<std::string, const char*> kNeverNeeded{
    {"AQL BARRIER_AND acquire=0x1 barrier=0x1: dword 0, bit 11",
     "release to the agent: L0 writes through, the L2 is the agent's; HSA asks for the fence"},
    {"AQL BARRIER_AND acquire=0x2 barrier=0x1: dword 0, bit 12",
     "release to the system: the acquire of the same packet writes back what it invalidates"},
    {"AQL BARRIER_AND acquire=0x2 barrier=0x1: dword 0, bit 8",
     "barrier bit: the PM4_IB in front of it, which flushes the HDP, has one"},
    {"AQL PM4_IB acquire=0x2 barrier=0x1: dword 0, bit 8",
     "barrier bit: releases come from the end of the pipe, which with one XCC is the only one; "
     "work behind it has a BARRIER_AND"},
    {"AQL PM4_IB acquire=0x2 barrier=0x1: dword 0, bit 10",
     "acquire: vendor packets' fences are written down nowhere; given, not relied upon"},
    {"AQL PM4_IB acquire=0x2 barrier=0x1: dword 0, bit 12",
     "release: vendor packets' fences are written down nowhere; given, not relied upon"},
    {"SDMA NOP, at the start",
     "every list ends with a FENCE, which waits for its copies; one dword, so that a list depends "
     "on no other's end"},
};

// Of one rule of an encoder, or of one reason.
struct Tally {
  size_t tried = 0, found = 0;
};

class Trial {
 public:
  // Each deletion is found, or the model says why nobody misses it; and never both.
  void all_of(const SceneRow& row, bool order_alone = false) {
    const Result whole = run_whole(row);
    for (size_t i = 0; i < whole.possible.size(); ++i) {
      const Mutation& m = whole.possible[i];
      const OrderModel::Verdict& v = whole.verdicts[i];
      if (order_alone && !m.orders) continue;
      const bool needed = !v.broken.empty();
      const bool found = is_found(row, m, needed ? kSeedsOfNeeded : kSeeds);
      Tally& tally = kinds_[m.kind];
      ++tally.tried;
      tally.found += found;
      EXPECT_EQ(found, needed) << row.name << ", list " << m.list << ", unit " << m.unit << ", "
                               << m.kind << ": " << (needed ? v.broken : v.rules[0]);
      if (!needed) ++reasons_[reason(m, v)];
    }
  }

  void judge_kinds() const;
  void print() const;

 private:
  static bool is_found(const SceneRow& row, const Mutation& m, uint64_t seeds) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      if (!run(row, seed, m).passed()) return true;
    }
    return false;
  }
  static std::string reason(const Mutation& m, const OrderModel::Verdict& v) {
    if (kNeverNeeded.count(m.kind)) return "never needed, see above";
    return fmt::format("{}", fmt::join(v.rules, "; "));
  }

  std::map<std::string, Tally> kinds_;
  std::map<std::string, size_t> reasons_;
};

void Trial::judge_kinds() const {
  for (const auto& [kind, tally] : kinds_) {
    const auto argued = kNeverNeeded.find(kind);
    if (argued == kNeverNeeded.end()) {
      EXPECT_GT(tally.found, 0u) << kind << ": no scene misses it (" << tally.tried << " tried)";
    } else {
      EXPECT_EQ(tally.found, 0u) << kind << " is needed: take it from the table";
    }
  }
  for (const auto& [kind, why] : kNeverNeeded) EXPECT_TRUE(kinds_.count(kind)) << kind;
}

void Trial::print() const {
  size_t tried = 0, found = 0;
  for (const auto& [kind, tally] : kinds_) tried += tally.tried, found += tally.found;
  for (const auto& [kind, why] : kNeverNeeded) {
    std::printf("never needed: %s: %s\n", kind.c_str(), why);
  }
  std::printf("%zu kinds of deletions; %zu deletions, %zu found, not needed:\n", kinds_.size(),
              tried, found);
  for (const auto& [reason, count] : reasons_) std::printf("%6zu %s\n", count, reason.c_str());
}

TEST(AmdMutation, EveryDeletionIsFoundOrNotNeeded) {
  Trial trial;
  for (const SceneRow& row : kScenes) trial.all_of(row);
  trial.judge_kinds();
  trial.print();
}

TEST(AmdMutation, EveryDeletionOfRandomScenesIsFoundOrNotNeeded) {
  Trial trial;
  for (const SceneRow& row : random_scenes()) trial.all_of(row, true);
  trial.print();
}

}  // namespace
}  // namespace tuff::devices::amd
