#include "devices/amd/random_scene.h"

#include <algorithm>
#include <array>

#include "base/split_mix.h"

namespace tuff::devices::amd {
namespace {

using Memory = Bench::Memory;

constexpr uint32_t kWords = 32, kBuffers = 5, kRounds = 2, kMaxOperations = 12, kArgumentStep = 128;

enum class What : uint8_t { Add, Twice, Scalar, Set, Copy };
constexpr const char* kKernels[] = {"add", "twice", "scalar", "set"};

struct Operation {
  uint32_t queue = 0;
  What what = What::Copy;
  uint32_t dst = 0, src = 0, k = 0;
  bool begins_list = false;
  bool barrier = false;         // in front of it
  std::vector<uint32_t> waits;  // for these operations, of other queues
  bool raises = false;          // its queue's signal, to its own number + 1
  bool reads() const { return what != What::Set; }
  bool touches(uint32_t buffer) const { return dst == buffer || (reads() && src == buffer); }
};

using Values = std::array<std::array<uint32_t, kWords>, kBuffers>;

void carry_out(const Operation& o, Values& v) {
  const std::array<uint32_t, kWords> src = v[o.src];
  for (uint32_t i = 0; i < kWords; ++i) {
    switch (o.what) {
      case What::Add: v[o.dst][i] = src[i] + o.k; break;
      case What::Twice: v[o.dst][i] = 2 * src[i] + o.k; break;
      case What::Scalar: v[o.dst][i] = src[0] + o.k; break;
      case What::Set: v[o.dst][i] = o.k; break;
      case What::Copy: v[o.dst][i] = src[i]; break;
    }
  }
}

class RandomScene {
 public:
  RandomScene(Bench& b, QueueKind compute, uint32_t gpus, uint64_t seed) : b_(b), random_(seed) {
    for (uint32_t g = 0; g < gpus; ++g) add_queue(compute, g);
    add_queue(QueueKind::Sdma, random_.below(gpus));
    for (uint32_t i = 0; i < kBuffers; ++i) {
      const bool system = random_.below(5u) == 0;
      buffers_.push_back(system ? &b_.system() : &b_.vram(random_.below(gpus)));
    }
    arguments_ = &b_.system(kMaxOperations * kArgumentStep);
    draw();
    order();
  }

  bool run() {
    encode();
    for (uint32_t round = 1; round <= kRounds; ++round) {
      if (!run(round)) return false;
    }
    return true;
  }

 private:
  struct QueueState {
    Bench::Queue* queue;
    std::array<TestProgram*, 4> programs{};
    TestSignal* signal;
  };
  struct Cut {  // a list: operations of one queue
    uint32_t queue;
    std::vector<uint32_t> operations;
    Bench::Prepared prepared;
  };

  void add_queue(QueueKind kind, uint32_t gpu) {
    QueueState q;
    q.queue = &b_.queue(kind, gpu);
    q.signal = &b_.signal();
    if (kind != QueueKind::Sdma) {
      Memory& code = b_.code(gpu);
      for (size_t i = 0; i < 4; ++i) q.programs[i] = &b_.program(code, kKernels[i]);
    }
    queues_.push_back(q);
  }

  // What is overwritten has been read before and is another value, so that each operation shows.
  void draw() {
    const uint32_t n = 4 + random_.below(kMaxOperations - 3);
    std::array<bool, kBuffers> unread{};
    Values values = first_values(1);
    for (uint32_t i = 0; i < n; ++i) {
      Operation o;
      o.queue = random_.below(uint32_t(queues_.size()));
      const bool copies = queues_[o.queue].queue->kind == QueueKind::Sdma;
      o.what = copies ? What::Copy : What(random_.below(5u));
      o.dst = 1 + random_.below(kBuffers - 1);  // the first is the host's alone
      do {
        o.src = random_.below(kBuffers);
      } while (o.src == o.dst);
      o.k = 1 + random_.below(1000u);
      o.begins_list = random_.below(3u) == 0;
      Values after = values;
      carry_out(o, after);
      if (unread[o.dst] || after == values) continue;
      values = after;
      if (o.reads()) unread[o.src] = false;
      unread[o.dst] = true;
      operations_.push_back(o);
    }
  }

  static bool conflict(const Operation& a, const Operation& b) {
    return b.touches(a.dst) || a.touches(b.dst);
  }

  // What each operation has to wait for.
  void order() {
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      Operation& o = operations_[i];
      for (uint32_t j = i; j-- > 0;) {
        Operation& before = operations_[j];
        if (!conflict(before, o)) continue;
        if (before.queue == o.queue) {
          o.barrier = true;
        } else {
          before.raises = true;
          o.waits.push_back(j);
        }
      }
    }
  }

  // Operations are in an order in which all waits hold, so that lists that are submitted by their
  // first operations need no later one to begin.
  void encode() {
    std::vector<std::optional<size_t>> open(queues_.size());
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& o = operations_[i];
      if (!open[o.queue] || o.begins_list) {
        open[o.queue] = cuts_.size();
        cuts_.push_back({o.queue, {}, {}});
      }
      cuts_[*open[o.queue]].operations.push_back(i);
    }
    for (Cut& cut : cuts_) {
      Bench::List list;
      list.commands.slot_count = uint32_t(operations_.size());  // slot i: operation i's value
      for (const uint32_t i : cut.operations) add(list, i);
      cut.prepared = b_.encode(*queues_[cut.queue].queue, list);
    }
  }

  void add(Bench::List& list, uint32_t i) {
    const Operation& o = operations_[i];
    const QueueState& q = queues_[o.queue];
    if (o.barrier) list.barrier();
    for (const uint32_t j : o.waits) list.wait(*queues_[operations_[j].queue].signal, j);
    if (o.what == What::Copy) {
      list.copy(buffers_[o.dst]->span(0, kWords * 4), buffers_[o.src]->span(0, kWords * 4));
    } else {
      list.run(*q.programs[size_t(o.what)], arguments_->span(i * kArgumentStep));
    }
    if (o.raises) list.raise(*q.signal, i);
  }

  // Of the host: no two are the same.
  static Values first_values(uint32_t round) {
    Values v;
    for (uint32_t k = 0; k < kBuffers; ++k) {
      for (uint32_t i = 0; i < kWords; ++i) v[k][i] = round * 10000 + k * 100 + i;
    }
    return v;
  }

  void prepare(uint32_t round) {
    for (uint32_t k = 0; k < kBuffers; ++k) {
      const auto writes = [&](const Operation& o) { return o.dst == k; };
      if (round > 1 && std::any_of(operations_.begin(), operations_.end(), writes)) continue;
      expected_[k] = first_values(round)[k];
      for (uint32_t i = 0; i < kWords; ++i) buffers_[k]->set(i, expected_[k][i]);
    }
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      Operation& o = operations_[i];
      o.k += 7 * round;
      if (o.what == What::Copy) continue;
      b_.arguments(*arguments_, i * kArgumentStep, *buffers_[o.dst], *buffers_[o.src], o.k);
    }
  }

  bool run(uint32_t round) {
    prepare(round);
    std::vector<uint64_t> slots;
    for (uint64_t i = 0; i < operations_.size(); ++i) slots.push_back(round * 100 + i);
    for (const Cut& cut : cuts_) b_.submit(cut.prepared, slots);
    for (const QueueState& q : queues_) {
      if (q.queue->value > 0 && !b_.finished(*q.queue, q.queue->value)) return false;
    }
    for (const Operation& o : operations_) carry_out(o, expected_);
    bool right = true;
    for (uint32_t k = 0; k < kBuffers; ++k) {
      for (uint32_t i = 0; i < kWords; ++i) right &= buffers_[k]->word(i) == expected_[k][i];
    }
    return right;
  }

  Bench& b_;
  SplitMix64 random_;
  std::vector<QueueState> queues_;
  std::vector<Memory*> buffers_;
  Memory* arguments_ = nullptr;
  std::vector<Operation> operations_;
  std::vector<Cut> cuts_;
  Values expected_{};
};

}  // namespace

bool run_random_scene(Bench& bench, QueueKind compute, uint32_t gpus, uint64_t seed) {
  return RandomScene(bench, compute, gpus, seed).run();
}

}  // namespace tuff::devices::amd
