#include "devices/amd/order_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kLine = 64, kLaneBytes = 4, kGroupBytes = 128, kCodeBytes = 64,
                   kDescriptorBytes = 64, kArgumentBytes = 20, kSizeBytes = 12;
constexpr uint32_t kSomeTime = ~0u;
constexpr uint32_t kPgmLo = 0x20c, kNumThreadX = 0x207, kUserData = 0x240;

}  // namespace

Packet decode(QueueKind kind, bool ring, std::span<const uint32_t> dwords) {
  static const Dialect dialect = Dialect::of("gfx1100");
  if (kind == QueueKind::Sdma) return disassemble_sdma(dwords, dialect)[0];
  return (ring ? disassemble_aql(dwords) : disassemble_pm4(dwords, dialect))[0];
}

void OpSet::add(uint32_t op) {
  if (op / 64 >= bits_.size()) bits_.resize(op / 64 + 1);
  bits_[op / 64] |= 1ull << op % 64;
}

void OpSet::join(const OpSet& other) {
  if (bits_.size() < other.bits_.size()) bits_.resize(other.bits_.size());
  for (size_t i = 0; i < other.bits_.size(); ++i) bits_[i] |= other.bits_[i];
}

// ---- one run through the steps: what each operation knows to have ended when it begins

class OrderModel::Run {
 public:
  // `told`: steps are new, operations get their numbers and accesses.
  Run(const OrderModel& model, OrderModel* told, const Mutation* mutation)
      : m_(model), told_(told), mutation_(mutation) {}

  bool take(const Step& s);  // false: it waits
  uint32_t next_op() const { return next_; }
  bool rung(uint32_t submission) const { return rung_.count(submission); }

  // What has ended before something: as far as its queue, or the host, was told; and in fact, since
  // the host has waited until nothing moved any more, which tells the queues nothing.
  struct Known {
    OpSet told, past;
    void add(uint32_t op) { told.add(op), past.add(op); }
    void join(const Known& o) { told.join(o.told), past.join(o.past); }
  };
  struct Fate {
    Known before;
    bool flush = false;                      // of the HDP
    std::vector<std::string> actions;        // on caches
    bool work = false;                       // accesses memory
    std::map<uint32_t, uint32_t> registers;  // of a launch
    bool does(const char* action) const {
      return std::find(actions.begin(), actions.end(), action) != actions.end();
    }
  };
  std::vector<Fate> fates;  // by operation
  size_t interrupts = 0, stores = 0;

 private:
  struct State {
    Known known;                      // to have ended
    Known kernels, copies, releases;  // all that were begun
    std::map<uint32_t, uint32_t> registers;
  };
  struct Store {
    uint32_t value;
    Known known;
  };

  State& state(uint32_t q) {
    if (q >= states_.size()) states_.resize(q + 1);
    return states_[q];
  }
  uint32_t work(int gpu, uint32_t queue, const Known& before) {
    const uint32_t id = op(gpu, queue, before);
    fates[id].work = true;
    return id;
  }
  uint32_t op(int gpu, uint32_t queue, const Known& before) {
    if (told_) told_->ops_.push_back({gpu, queue});
    fates.resize(std::max<size_t>(fates.size(), next_ + 1));
    fates[next_].before = before;
    return next_++;
  }
  void store(uint64_t address, Store store) {
    stores_[address].push_back(std::move(store));
    ++stores;
  }
  std::optional<Packet> left_of(const Unit& u, QueueKind kind) const;
  const Store* stored(uint64_t address, uint32_t value) const;

  bool packet(uint32_t q, const Packet& p);
  bool ring_packet(uint32_t q, const Packet& p);
  bool sdma_packet(uint32_t q, const Packet& p);
  bool wait(uint32_t q, const Packet& p);
  void idle(State& s) {
    s.known.join(s.kernels);
    s.known.join(s.copies);
    s.known.join(s.releases);
  }
  void caches(uint32_t q, std::vector<std::string> actions) {
    const uint32_t id = op(gpu(q), q, state(q).known);
    fates[id].actions = std::move(actions);
    state(q).known.add(id);
  }
  void flush_hdp(uint32_t q) {
    const uint32_t id = op(gpu(q), q, state(q).known);
    fates[id].flush = true;
    state(q).known.add(id);
  }
  void release(uint32_t q, const Packet& p);
  void copy(uint32_t q, const Packet& p);
  void launch(uint32_t q, const Packet& p);
  uint32_t launch(uint32_t q);
  void touch_all(uint32_t op, uint64_t entry, uint64_t args, std::optional<uint64_t> bytes);
  uint64_t entry_of(uint64_t descriptor) const {
    for (const Kernel& k : m_.kernels_) {
      if (k.code.descriptor == descriptor) return k.code.entry;
    }
    return 0;
  }
  void read(uint32_t q, uint64_t address, uint64_t bytes);
  int gpu(uint32_t q) const { return int(m_.queues_[q].gpu); }

  const OrderModel& m_;
  OrderModel* told_;
  const Mutation* mutation_;
  std::vector<State> states_;
  std::map<uint64_t, std::vector<Store>> stores_;
  Known host_;
  std::map<uint32_t, Known> rung_;  // by submission
  uint32_t next_ = 0;
};

std::optional<Packet> OrderModel::Run::left_of(const Unit& u, QueueKind kind) const {
  if (!mutation_ || mutation_->list != u.list) return decode(kind, u.ring, u.dwords);
  const bool jump_gone =
      mutation_->ring && !mutation_->clear && u.jump && *u.jump == mutation_->unit;
  if (jump_gone) return std::nullopt;
  if (mutation_->ring != u.ring || mutation_->unit != u.unit) return decode(kind, u.ring, u.dwords);
  if (!mutation_->clear) return std::nullopt;
  std::vector<uint32_t> dwords = u.dwords;
  dwords[mutation_->dword] &= ~mutation_->clear;
  return decode(kind, u.ring, dwords);
}

// The first store that a wait for `value` would take for enough.
const OrderModel::Run::Store* OrderModel::Run::stored(uint64_t address, uint32_t value) const {
  static const Store nothing{};  // what signals begin with
  if (value == 0) return &nothing;
  const auto found = stores_.find(address);
  if (found == stores_.end()) return nullptr;
  for (const Store& s : found->second) {
    if (s.value >= value) return &s;
  }
  return nullptr;
}

bool OrderModel::Run::take(const Step& s) {
  next_ = s.first_op;
  switch (s.kind) {
    case Step::Kind::Ring: rung_[s.submission] = host_; return true;
    case Step::Kind::Begin: {
      state(m_.submissions_[s.submission].queue).known.join(rung_[s.submission]);
      return true;
    }
    case Step::Kind::Packet: {
      const Submission& sub = m_.submissions_[s.submission];
      const QueueKind kind = m_.queues_[sub.queue].kind;
      const std::optional<Packet> p = left_of(sub.units[s.unit], kind);
      if (!p) return true;
      if (sub.units[s.unit].ring) return ring_packet(sub.queue, *p);
      return kind == QueueKind::Sdma ? sdma_packet(sub.queue, *p) : packet(sub.queue, *p);
    }
    case Step::Kind::HostAccess: {
      host_.add(work(-1, 0, host_));
      return true;
    }
    case Step::Kind::Raise: stores_[s.address].push_back({s.value, host_}); return true;
    case Step::Kind::Wait: {
      const Store* store = stored(s.address, s.value);
      if (store) host_.join(store->known);
      return store;
    }
    case Step::Kind::StandStill: {
      for (uint32_t i = 0; i < next_; ++i) host_.past.add(i);
      return true;
    }
  }
  return true;
}

bool OrderModel::Run::wait(uint32_t q, const Packet& p) {
  const Store* store = stored(p["address"], uint32_t(p["reference"]));
  if (store) state(q).known.join(store->known);
  return store;
}

// PM4.
bool OrderModel::Run::packet(uint32_t q, const Packet& p) {
  State& s = state(q);
  if (p.name == "EVENT_WRITE") {
    s.known.join(s.kernels);
  } else if (p.name == "WAIT_REG_MEM") {
    if (p["memory"]) return wait(q, p);
    flush_hdp(q);
  } else if (p.name == "ACQUIRE_MEM") {
    caches(q, p.caches);
  } else if (p.name == "RELEASE_MEM") {
    release(q, p);
  } else if (p.name == "DMA_DATA") {
    copy(q, p);
    if (p["sync"]) s.known.join(s.copies);
  } else if (p.name == "SET_SH_REG") {
    for (size_t i = 0; i < p.values.size(); ++i) {
      s.registers[uint32_t(p["first"] + i)] = p.values[i];
    }
  } else if (p.name == "DISPATCH_DIRECT" || p.name == "DISPATCH_INDIRECT") {
    launch(q, p);
  }
  return true;
}

// Everything but copies and polls comes after the copies before it.
bool OrderModel::Run::sdma_packet(uint32_t q, const Packet& p) {
  State& s = state(q);
  if (p.name == "POLL_REGMEM") return wait(q, p);
  if (p.name == "COPY_LINEAR") {
    copy(q, p);
    return true;
  }
  if (p.name == "HDP_FLUSH") {
    flush_hdp(q);
    return true;
  }
  s.known.join(s.copies);
  interrupts += p.name == "TRAP";
  if (p.name == "GCR") caches(q, p.caches);
  if (p.name == "TIMESTAMP_GET_GLOBAL") store(p["address"], {kSomeTime, s.known});
  if (p.name == "FENCE") store(p["address"], {uint32_t(p["value"]), s.known});
  return true;
}

bool OrderModel::Run::ring_packet(uint32_t q, const Packet& p) {
  State& s = state(q);
  if (p["barrier"]) idle(s);
  if (p.name == "BARRIER_AND") {
    if (p["acquire"] == 1) caches(q, {"GLK_INV", "GLV_INV", "GL1_INV"});
    if (p["acquire"] == 2) {
      caches(q, {"GLI_INV", "GLK_INV", "GLV_INV", "GL1_INV", "GL2_WB", "GL2_INV"});
    }
    if (p["release"] == 2) caches(q, {"GL2_WB"});
  } else if (p.name == "KERNEL_DISPATCH") {
    read(q, p["descriptor"], kDescriptorBytes);
    const uint32_t id = launch(q);
    if (told_) touch_all(id, entry_of(p["descriptor"]), p["args"], p["x"] * kLaneBytes);
  }
  return true;
}

// At the end of the pipe: after all kernels and releases before it, while the queue goes on.
void OrderModel::Run::release(uint32_t q, const Packet& p) {
  State& s = state(q);
  Known known = s.known;
  known.join(s.kernels);
  known.join(s.releases);
  const uint32_t id = op(gpu(q), q, known);
  fates[id].actions = p.caches;
  s.releases.add(id);
  known.add(id);
  interrupts += p["interrupt"] != 0;
  store(p["address"], {p["data"] == 1 ? uint32_t(p["value"]) : kSomeTime, known});
}

void OrderModel::Run::copy(uint32_t q, const Packet& p) {
  const uint32_t id = work(gpu(q), q, state(q).known);
  state(q).copies.add(id);
  if (!told_) return;
  told_->touch(id, Path::L2, false, p["src"], p["bytes"]);
  told_->touch(id, Path::L2, true, p["dst"], p["bytes"]);
}

// By the queue's engine, which waits for it.
void OrderModel::Run::read(uint32_t q, uint64_t address, uint64_t bytes) {
  const uint32_t id = work(gpu(q), q, state(q).known);
  state(q).known.add(id);
  if (told_) told_->touch(id, Path::L2, false, address, bytes);
}

void OrderModel::Run::launch(uint32_t q, const Packet& p) {
  const bool indirect = p.name == "DISPATCH_INDIRECT";
  if (indirect) read(q, p["address"], kSizeBytes);
  const uint32_t id = launch(q);
  if (!told_) return;
  const auto& r = fates[id].registers;
  const auto pair = [&](uint32_t first) { return r.at(first) | uint64_t(r.at(first + 1)) << 32; };
  std::optional<uint64_t> bytes;  // unless the launch's size is read from memory
  if (!indirect) bytes = (p["x"] - 1) * kGroupBytes + r.at(kNumThreadX) * kLaneBytes;
  touch_all(id, pair(kPgmLo) << 8, pair(kUserData), bytes);
}

uint32_t OrderModel::Run::launch(uint32_t q) {
  const uint32_t id = work(gpu(q), q, state(q).known);
  state(q).kernels.add(id);
  fates[id].registers = state(q).registers;
  return id;
}

// Without `bytes` nobody knows how far it reaches: as far as its memory does.
void OrderModel::Run::touch_all(uint32_t id, uint64_t entry, uint64_t args,
                                std::optional<uint64_t> bytes) {
  const auto kernel = std::find_if(m_.kernels_.begin(), m_.kernels_.end(),
                                   [&](const Kernel& k) { return k.code.entry == entry; });
  TUFF_CHECK(kernel != m_.kernels_.end(), "no kernel at {:#x}", entry);
  const auto [dst, src] = m_.arguments_.at(args);
  const auto upto = [&](uint64_t address) {
    return bytes ? *bytes : std::prev(m_.memory_.upper_bound(address))->second.first - address;
  };
  told_->touch(id, Path::Code, false, entry, kCodeBytes);
  told_->touch(id, Path::Scalar, false, args, kArgumentBytes);
  if (kernel->source == Path::Scalar) told_->touch(id, Path::Scalar, false, src, kLaneBytes);
  if (kernel->source == Path::Vector) told_->touch(id, Path::Vector, false, src, upto(src));
  told_->touch(id, Path::L2, true, dst, upto(dst));
}

// ---- telling

OrderModel::OrderModel() : whole_(std::make_unique<Run>(*this, this, nullptr)) {}
OrderModel::~OrderModel() = default;

bool OrderModel::take(Step step) {
  step.first_op = whole_->next_op();
  if (!whole_->take(step)) return false;
  steps_.push_back(step);
  return true;
}

void OrderModel::add_memory(uint64_t address, size_t bytes, int home) {
  memory_[address] = {address + bytes, home};
}
void OrderModel::add_queue(QueueKind kind, uint32_t gpu) { queues_.push_back({kind, gpu, {}, 0}); }
void OrderModel::add_kernel(const KernelCode& code, std::optional<Path> source) {
  kernels_.push_back({code, source});
}
void OrderModel::set_arguments(uint64_t at, uint64_t dst, uint64_t src) {
  arguments_[at] = {dst, src};
}

void OrderModel::touch(uint32_t op, Path path, bool write, uint64_t address, uint64_t bytes) {
  for (uint64_t line = address / kLine; line <= (address + bytes - 1) / kLine; ++line) {
    std::vector<Access>& accesses = by_line_[line];
    const bool whole = line * kLine >= address && (line + 1) * kLine <= address + bytes;
    const Access a{op, path, write, whole};
    if (std::find(accesses.begin(), accesses.end(), a) == accesses.end()) accesses.push_back(a);
  }
}

// Accesses in a row are one operation.
void OrderModel::host_access(uint64_t address, size_t bytes, bool write) {
  if (host_accesses_ != write) take({.kind = Step::Kind::HostAccess});
  host_accesses_ = write;
  touch(whole_->next_op() - 1, Path::L2, write, address, bytes);
}

void OrderModel::host_raises(uint64_t address, uint32_t value) {
  host_accesses_.reset();
  take({.kind = Step::Kind::Raise, .address = address, .value = value});
}

void OrderModel::host_waits(uint64_t address, uint32_t value) {
  host_accesses_.reset();
  advance_all();
  const bool reached = take({.kind = Step::Kind::Wait, .address = address, .value = value});
  TUFF_CHECK(reached, "nobody stores {} at {:#x}", value, address);
}

void OrderModel::host_sees_all_stand_still() {
  host_accesses_.reset();
  advance_all();
  take({.kind = Step::Kind::StandStill});
}

void OrderModel::submit(uint32_t queue, std::vector<Unit> units) {
  host_accesses_.reset();
  const uint32_t id = uint32_t(submissions_.size());
  submissions_.push_back({queue, std::move(units), 0});
  queues_[queue].submissions.push_back(id);
  take({.kind = Step::Kind::Ring, .submission = id});
}

// One packet, if it may go on.
bool OrderModel::advance(uint32_t queue) {
  Queue& q = queues_[queue];
  if (q.next == q.submissions.size()) return false;
  const uint32_t id = q.submissions[q.next];
  Submission& s = submissions_[id];
  if (s.next == 0) take({.kind = Step::Kind::Begin, .submission = id});
  if (!take({.kind = Step::Kind::Packet, .submission = id, .unit = s.next})) return false;
  if (++s.next == s.units.size()) ++q.next;
  return true;
}

void OrderModel::advance_all() {
  for (bool any = true; any;) {
    any = false;
    for (uint32_t q = 0; q < queues_.size(); ++q) {
      while (advance(q)) any = true;
    }
  }
}

void OrderModel::finish() {
  advance_all();
  std::set<Lines> lines;
  for (const auto& [line, accesses] : by_line_) {
    const auto memory = std::prev(memory_.upper_bound(line * kLine));
    lines.insert({memory->second.second, accesses});
  }
  lines_.assign(lines.begin(), lines.end());
}

// ---- judging

class OrderModel::Judge {
 public:
  Judge(const OrderModel& m, const Run& whole, const Run& run) : m_(m), whole_(whole), run_(run) {
    for (uint32_t i = 0; i < m.ops_.size(); ++i) {
      if (i < run.fates.size() && (run.fates[i].flush || !run.fates[i].actions.empty())) {
        caches_.push_back(i);
      }
    }
  }

  std::string unordered() const;  // conflicts that nothing orders, in the whole run
  std::string broken() const;
  std::vector<const char*> rules() const;

 private:
  bool same_order() const;
  bool comes(const Run& r, uint32_t a, uint32_t b) const {
    return gpu(b) < 0 ? r.fates[b].before.past.has(a) : r.fates[b].before.told.has(a);
  }
  bool before(uint32_t a, uint32_t b) const { return comes(run_, a, b); }
  bool past(uint32_t a, uint32_t b) const { return run_.fates[b].before.past.has(a); }
  int gpu(uint32_t op) const { return m_.ops_[op].gpu; }

  template <class Fn>
  bool between(uint32_t a, uint32_t b, Fn wanted) const {
    return std::any_of(caches_.begin(), caches_.end(),
                       [&](uint32_t c) { return past(a, c) && past(c, b) && wanted(c); });
  }
  bool acted(uint32_t a, uint32_t b, int gpu_of, const char* action) const {
    return between(a, b,
                   [&](uint32_t c) { return gpu(c) == gpu_of && run_.fates[c].does(action); });
  }
  bool front_invalidated(uint32_t a, const Access& b, bool told) const;
  std::string seen(const Lines& l, const Access& a, const Access& b) const;
  bool overwritten(const Lines& l, const Access& a, const Access& b) const;
  std::string kept_apart(const Lines& l, const Access& a, const Access& b) const;
  std::string stale_copy(const Lines& l, const Access& a, const Access& b) const;
  std::string lost() const;

  const OrderModel& m_;
  const Run &whole_, &run_;
  std::vector<uint32_t> caches_;
};

// What came after `a` had ended, before `b`, on b's queue; L1 stands behind all three.
bool OrderModel::Judge::front_invalidated(uint32_t a, const Access& b, bool told) const {
  const uint32_t queue = m_.ops_[b.op].queue;
  const auto own = [&](const char* action) {
    return between(a, b.op, [&](uint32_t c) {
      return gpu(c) == gpu(b.op) && (!told || before(a, c)) && m_.ops_[c].queue == queue &&
             run_.fates[c].does(action);
    });
  };
  const char* action = b.path == Path::Vector   ? "GLV_INV"
                       : b.path == Path::Scalar ? "GLK_INV"
                                                : "GLI_INV";
  return b.path == Path::L2 || (own(action) && own("GL1_INV"));
}

// Caches of b's GPU that have a line from before `a`, which is of somebody else.
std::string OrderModel::Judge::stale_copy(const Lines& l, const Access& a, const Access& b) const {
  for (const Access& f : l.accesses) {
    if (f.write || gpu(f.op) != gpu(b.op) || past(a.op, f.op) || f.op == b.op) continue;
    if (past(b.op, f.op)) continue;
    if (l.home != kSystem && !acted(f.op, b.op, gpu(b.op), "GL2_INV")) return "L2";
    if (f.path != b.path || b.path == Path::L2) continue;
    if (b.path == Path::Code ? !acted(f.op, b.op, gpu(b.op), "GLI_INV")
                             : !front_invalidated(f.op, b, false)) {
      return "front";
    }
  }
  return {};
}

// Between the two nothing is left of a.
bool OrderModel::Judge::overwritten(const Lines& l, const Access& a, const Access& b) const {
  return std::any_of(l.accesses.begin(), l.accesses.end(), [&](const Access& w) {
    return w.write && w.whole && gpu(w.op) >= 0 && before(a.op, w.op) && before(w.op, b.op);
  });
}

// What a GPU writes back late would overwrite what another has written since.
std::string OrderModel::Judge::kept_apart(const Lines& l, const Access& a, const Access& b) const {
  if (gpu(a.op) == gpu(b.op) || gpu(a.op) < 0 || l.home == kSystem) return {};
  return acted(a.op, b.op, gpu(a.op), "GL2_WB") ? "" : "write-back";
}

std::string OrderModel::Judge::seen(const Lines& l, const Access& a, const Access& b) const {
  if (gpu(a.op) == gpu(b.op)) {
    return gpu(a.op) < 0 || front_invalidated(a.op, b, true) ? "" : "front";
  }
  const bool cached = l.home != kSystem;
  if (gpu(a.op) >= 0 && cached && !acted(a.op, b.op, gpu(a.op), "GL2_WB")) return "write-back";
  if (gpu(b.op) < 0) return {};
  const bool by_bar = gpu(a.op) < 0 && l.home == gpu(b.op);
  const auto flush = [&](uint32_t c) { return gpu(c) == gpu(b.op) && run_.fates[c].flush; };
  if (by_bar && !between(a.op, b.op, flush)) return "HDP";
  return stale_copy(l, a, b);
}

// Lines that an invalidation of the L2 drops before memory has them.
std::string OrderModel::Judge::lost() const {
  for (const uint32_t c : caches_) {
    if (!run_.fates[c].does("GL2_INV") || run_.fates[c].does("GL2_WB")) continue;
    for (const Lines& l : m_.lines_) {
      for (const Access& a : l.accesses) {
        if (!a.write || l.home == kSystem || gpu(a.op) != gpu(c) || past(c, a.op)) continue;
        if (!acted(a.op, c, gpu(c), "GL2_WB")) return fmt::format("lost lines: {} by {}", a.op, c);
      }
    }
  }
  return {};
}

std::string OrderModel::Judge::unordered() const {
  for (const Lines& l : m_.lines_) {
    for (const Access& a : l.accesses) {
      for (const Access& b : l.accesses) {
        if (b.op <= a.op || !(a.write || b.write)) continue;
        if (comes(whole_, a.op, b.op) || comes(whole_, b.op, a.op)) continue;
        return fmt::format("operations {} and {} are not ordered", a.op, b.op);
      }
    }
  }
  return {};
}

std::string OrderModel::Judge::broken() const {
  if (run_.interrupts != whole_.interrupts) return "interrupt";
  for (uint32_t i = 0; i < m_.ops_.size(); ++i) {
    if (run_.fates[i].work != whole_.fates[i].work) return fmt::format("work: {}", i);
    if (run_.fates[i].registers != whole_.fates[i].registers)
      return fmt::format("registers: {}", i);
  }
  for (const Lines& l : m_.lines_) {
    for (const Access& a : l.accesses) {
      for (const Access& b : l.accesses) {
        if (a.op == b.op || !(a.write || b.write) || !comes(whole_, a.op, b.op)) continue;
        if (!before(a.op, b.op)) return fmt::format("order: {} before {}", a.op, b.op);
        if (!a.write) continue;
        // What a GPU wrote itself its first caches may have still.
        if (gpu(a.op) != gpu(b.op) && overwritten(l, a, b)) continue;
        const std::string why = b.write ? kept_apart(l, a, b) : seen(l, a, b);
        if (!why.empty()) return fmt::format("{}: {} before {}", why, a.op, b.op);
      }
    }
  }
  return lost();
}

// Whether each piece of work begins behind the same ones.
bool OrderModel::Judge::same_order() const {
  for (uint32_t b = 0; b < m_.ops_.size(); ++b) {
    for (uint32_t a = 0; a < m_.ops_.size() && whole_.fates[b].work; ++a) {
      if (whole_.fates[a].work && comes(whole_, a, b) != comes(run_, a, b)) return false;
    }
  }
  return true;
}

std::vector<const char*> OrderModel::Judge::rules() const {
  bool invalidates = false, writes_back = false, flushes = false;
  for (uint32_t i = 0; i < m_.ops_.size(); ++i) {
    flushes |= whole_.fates[i].flush && !run_.fates[i].flush;
    for (const std::string& action : whole_.fates[i].actions) {
      if (!run_.fates[i].does(action.c_str()))
        (action == "GL2_WB" ? writes_back : invalidates) = true;
    }
  }
  std::vector<const char*> out;
  if (invalidates)
    out.push_back("no line that is read behind it may be stale in what it invalidates");
  if (writes_back)
    out.push_back("nobody outside reads what it writes back, or another does so first");
  if (flushes)
    out.push_back(
        "nothing that the host wrote through the bar is read behind it, or another flushes");
  if (run_.stores != whole_.stores) out.push_back("nobody waits for what it stores");
  if (!same_order()) out.push_back("what it puts in order shares no line, or reads alone");
  if (out.empty()) out.push_back("all work begins behind the same work without it");
  return out;
}

std::string OrderModel::wrong() const {
  const Judge judge(*this, *whole_, *whole_);
  const std::string race = judge.unordered();
  return race.empty() ? judge.broken() : race;
}

// Whoever waits in vain does so until others have gone on. False: for ever.
bool OrderModel::take_all(Run& run) const {
  std::vector<bool> taken(steps_.size());
  for (size_t left = steps_.size(), before = left + 1; left > 0 && left < before;) {
    before = left;
    std::set<int> waiting;  // queues; the host
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      const bool of_queue = s.kind == Step::Kind::Begin || s.kind == Step::Kind::Packet;
      const int who = of_queue ? int(submissions_[s.submission].queue) : -1;
      if (taken[i] || waiting.count(who)) continue;
      taken[i] = (!of_queue || run.rung(s.submission)) && run.take(s);
      if (!taken[i]) waiting.insert(who);
      left -= taken[i];
    }
    if (left == 0) return true;
  }
  return false;
}

OrderModel::Verdict OrderModel::without(const Mutation& mutation) const {
  Run run(*this, nullptr, &mutation);
  run.fates.resize(ops_.size());
  if (!take_all(run)) return {"somebody waits for ever", {}};
  const Judge judge(*this, *whole_, run);
  const std::string broken = judge.broken();
  return {broken, broken.empty() ? judge.rules() : std::vector<const char*>()};
}

}  // namespace tuff::devices::amd
