#include "devices/amd/scene.h"

#include <fmt/format.h>

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kBlock = 0x7f0000000000, kTimestamps = 0x7f1000000000, kMailbox = 0x7f2000000008,
                   kScratch = 0x7f4000000000;
constexpr uint32_t kEvent = 5;

KernelCode kernel_of(const Generation& g, uint32_t i) {
  KernelCode k;
  k.entry = 0x7f5000000000 + i * 0x10100;
  k.descriptor = 0x7f6000000000 + i * 64;
  k.rsrc1 = 0x60af0000 + i;
  k.rsrc2 = 0x9e + i * 0x8000;
  k.rsrc3 = i;
  k.properties = kKernargSegmentPtr;
  if (g.can_wave32 && i % 3 != 2) k.properties |= kWave32;
  if (!g.architected_scratch) k.properties |= kPrivateSegmentBuffer;
  if (!g.architected_scratch && i % 2) k.properties |= kFlatScratchInit | kPrivateSegmentSize;
  k.private_bytes = i % 2 ? 16 : 0;
  k.group_bytes = i * 512;
  k.local = {uint16_t(32 << i % 3), uint16_t(1 + i), 1};
  return k;
}

}  // namespace

Scene::Scene(const Generation& g, QueueKind k, uint32_t n)
    : generation(g), kind(k), xccs(n), dialect(Dialect::of(std::string(g.name))) {
  block.address = kBlock;
  block.size_bytes = 1ull << 36;
  for (uint64_t i = 0; i < 3; ++i) signals.emplace_back(0x7f7000000000 + i * 64);
  for (uint32_t i = 0; i < 4; ++i) programs.emplace_back("k" + std::to_string(i), kernel_of(g, i));
  scratch.address = kScratch;
  scratch.size = scratch_size(g,
                              {.simd_count = 64 * n,
                               .simd_per_cu = 2,
                               .max_waves_per_simd = 16,
                               .array_count = 4 * n,
                               .simd_arrays_per_engine = 2,
                               .max_slots_scratch_cu = 32,
                               .xccs = n},
                              16);
}

EncodeInput Scene::input() const {
  EncodeInput in{generation, binding, list, {}, {}, 0, 1};
  in.completion = {&signals[0], kMailbox, kEvent};
  in.scratch = scratch;
  in.timestamps = kTimestamps;
  in.xccs = xccs;
  return in;
}

Encoded Scene::encode() const {
  switch (kind) {
    case QueueKind::Pm4: return encode_pm4(input());
    case QueueKind::Aql: return encode_aql(input());
    case QueueKind::Sdma: return encode_sdma(input());
  }
  return {};
}

std::vector<uint64_t> Scene::values(const Encoded& encoded) const {
  std::vector<const SignalEpoch*> epochs;
  for (const SignalWord& w : encoded.words)
    epochs.push_back(&dynamic_cast<const TestSignal*>(w.signal)->epoch);
  const SubmissionValues given{slots, timeline_value, ib_address};
  EXPECT_EQ(needs_rebase(encoded, given, epochs), nullptr);
  std::vector<uint64_t> out(encoded.value_count());
  fill_values(encoded, given, epochs, out);
  return out;
}

std::vector<uint32_t> Scene::packets(const Encoded& encoded) const {
  std::vector<uint32_t> out(encoded.packets.dwords.size());
  encoded.packets.write(values(encoded), out.data());
  return out;
}

std::vector<uint32_t> Scene::ib(const Encoded& encoded) const {
  std::vector<uint32_t> out(encoded.ib.dwords.size());
  encoded.ib.write(values(encoded), out.data());
  return out;
}

void Scene::sample() {
  list.slot_count = 2;
  list.timestamp_count = 2;
  slots = {41, 42};
  const bool kernels = kind != QueueKind::Sdma;
  add(hcq::WaitCmd{&signals[1], 0});
  add(hcq::TimestampCmd{0});
  if (kernels) {
    add(hcq::DispatchCmd{&programs[0], span(0x1000, 64), {5, 6, 7}, {}});
    add(hcq::DispatchCmd{&programs[0], span(0x1100, 64), {5, 6, 8}, {}});
    add(hcq::BarrierCmd{});
    add(hcq::DispatchCmd{&programs[1], span(0x1200, 64), {1, 2, 3}, {}});
    if (kind == QueueKind::Pm4) {
      add(hcq::DispatchCmd{&programs[2], span(0x1300, 64), {}, span(0x1340, 12)});
    }
  }
  add(hcq::BarrierCmd{});
  add(hcq::CopyCmd{span(0x100000, 1 << 23), span(0x4000000, 1 << 23)});
  add(hcq::TimestampCmd{1});
  add(hcq::SignalCmd{&signals[2], 1});
}

void Scene::random(SplitMix64& r, int commands) {
  list.slot_count = 8;
  list.timestamp_count = 4;
  // Each signal stands somewhere around a multiple of 2^31, on whichever side.
  for (TestSignal& s : signals) {
    const uint64_t base = r.below(5u) * SignalEpoch::kStep;
    s.slot = base / SignalEpoch::kStep << 32;
  }
  const auto above = [&](uint64_t base) { return base + r.below(SignalEpoch::kSpan); };
  timeline_value = above(signals[0].epoch.base());
  // Slots 0 and 1 are values of signals 1 and 2, the others addresses and counts.
  slots = {above(signals[1].epoch.base()), above(signals[2].epoch.base())};
  for (int i = 2; i < 5; ++i) slots.push_back(1 + r.below(1000u));
  for (int i = 5; i < 8; ++i) slots.push_back(kBlock + r.below(1ull << 34) / 16 * 16);
  for (int i = 0; i < commands; ++i) {
    const uint32_t which = 1 + r.below(2u);
    switch (r.below(7u)) {
      case 0: add(hcq::WaitCmd{&signals[which], which - 1}); break;
      case 1: add(hcq::SignalCmd{&signals[which], which - 1}); break;
      case 2: add(hcq::TimestampCmd{r.below(4u)}); break;
      case 3: add(hcq::BarrierCmd{}); break;
      case 4: {
        const uint64_t sizes[] = {0, 1, 4096, 1u << 22, (1u << 22) + 1, 0x3ffffc1, 3ull << 30};
        const uint64_t size = sizes[r.below(7u)];
        add(hcq::CopyCmd{span(r.below(1ull << 30), size), span(r.below(1ull << 33), size)});
        break;
      }
      default: {
        if (kind == QueueKind::Sdma) break;
        hcq::DispatchCmd d{&programs[r.below(4u)], span(r.below(1u << 20) * 16, 64), {}, {}};
        for (uint32_t& count : d.groups) count = r.below(20u) ? 1 + r.below(500u) : 0;
        if (kind == QueueKind::Pm4 && r.below(4u) == 0) d.indirect = span(r.below(999u) * 4, 12);
        for (int32_t& slot : d.group_slots)
          slot = r.below(3u) || d.indirect ? -1 : 2 + int32_t(r.below(3u));
        add(d);
      }
    }
  }
}

void Scene::take_handles(hcq::CommandBody& body, const Scene& other) {
  const auto signal = [&](hcq::Signal*& s) {
    for (size_t i = 0; i < signals.size(); ++i) {
      if (s == &other.signals[i]) s = &signals[i];
    }
  };
  if (auto* w = std::get_if<hcq::WaitCmd>(&body)) signal(w->signal);
  if (auto* s = std::get_if<hcq::SignalCmd>(&body)) signal(s->signal);
  auto* d = std::get_if<hcq::DispatchCmd>(&body);
  for (size_t i = 0; d && i < programs.size(); ++i) {
    if (d->program == &other.programs[i]) d->program = &programs[i];
  }
}

void Scene::take_with_values(const Scene& other) {
  list = other.list;
  slots = other.slots;
  timeline_value = other.timeline_value;
  ib_address = other.ib_address;
  for (size_t i = 0; i < signals.size(); ++i) signals[i].slot = other.signals[i].slot;
  for (hcq::Command& c : list.commands) {
    take_handles(c.body, other);
    auto* d = std::get_if<hcq::DispatchCmd>(&c.body);
    for (size_t axis = 0; d && axis < 3; ++axis) {
      int32_t& slot = d->group_slots[axis];
      if (slot >= 0) d->groups[axis] = uint32_t(slots[size_t(slot)]);
      slot = -1;
    }
  }
}

// ---- what was asked for

std::string Scene::word(const hcq::Signal* signal, uint64_t value) const {
  const auto* s = dynamic_cast<const TestSignal*>(signal);
  const uint64_t base = (s->slot >> 32) * (1ull << 30);
  return fmt::format("{:#x} {}", s->address, value > base ? value - base : 0);
}

std::string Scene::asked_pm4_dispatch(const TestProgram& p, uint64_t args) const {
  const KernelCode& k = p.kernel;
  std::vector<uint64_t> user;
  if (k.properties & 1) {
    const uint32_t stride = k.properties & 0x400 ? 2 : 3;
    user = {kScratch & 0xffffffff, kScratch >> 32 | 1u << 31, scratch.size.size_bytes,
            0x21814fac | stride << 21};
  }
  user.insert(user.end(), {args & 0xffffffff, args >> 32});
  if (k.properties & 0x20) user.insert(user.end(), {kScratch & 0xffffffff, kScratch >> 32});
  if (k.properties & 0x40) user.push_back(scratch.size.bytes_per_lane);
  const uint64_t base = dialect.gfx == 10 ? 0 : kScratch;
  return fmt::format(
      "launch {:#x} {:#x} {:#x} {:#x} tmpring {:#x} scratch {:#x} local {}x{}x{} "
      "user {:#x} wave32 {}",
      k.entry, k.rsrc1, k.rsrc2, k.rsrc3, scratch.size.tmpring, base, k.local[0], k.local[1],
      k.local[2], fmt::join(user, " "), k.properties >> 10 & 1);
}

std::string Scene::asked_dispatch(const hcq::DispatchCmd& d) const {
  const auto& p = dynamic_cast<const TestProgram&>(*d.program);
  const uint64_t args = d.args.address();
  std::array<uint64_t, 3> groups{};
  for (size_t axis = 0; axis < 3; ++axis) {
    const int32_t slot = d.group_slots[axis];
    groups[axis] = slot < 0 ? d.groups[axis] : slots[size_t(slot)];
  }
  if (d.indirect) {
    return asked_pm4_dispatch(p, args) + fmt::format(" groups from {:#x}", d.indirect.address());
  }
  if (groups[0] * groups[1] * groups[2] == 0) return "";
  if (kind == QueueKind::Pm4) {
    return asked_pm4_dispatch(p, args) +
           fmt::format(" groups {}x{}x{}", groups[0], groups[1], groups[2]);
  }
  const KernelCode& k = p.kernel;
  for (int axis = 0; axis < 3; ++axis) groups[axis] *= k.local[axis];
  return fmt::format("launch {:#x} local {}x{}x{} items {}x{}x{} private {} group {} args {:#x}",
                     k.descriptor, k.local[0], k.local[1], k.local[2], groups[0], groups[1],
                     groups[2], k.private_bytes, k.group_bytes, args);
}

std::vector<std::string> Scene::asked() const {
  std::vector<std::string> out;
  bool idle = true, device = true, system = true;
  const bool gcr = dialect.gfx >= 10;
  const std::string once = kind == QueueKind::Aql && xccs > 1 ? " on xccs 1" : "";
  const auto settle = [&] {
    if (kind == QueueKind::Aql) {
      if (system) out.push_back("flush hdp" + once);
      if (idle || device || system) out.push_back(system ? "barrier system" : "barrier agent");
    } else {
      if (idle) out.push_back("idle");
      if (system) out.push_back("flush hdp");
      const bool sdma = kind == QueueKind::Sdma;
      if (sdma ? system && gcr : device || system)
        out.push_back(system ? "acquire system" : "acquire device");
    }
    idle = device = system = false;
  };
  const auto release = [&](const std::string& what) {
    if (kind == QueueKind::Sdma && gcr) out.push_back("write back");
    out.push_back("signal " + what + once);
  };
  for (uint32_t i = 0; i < list.commands.size(); ++i) {
    const hcq::CommandBody& body = list.commands[i].body;
    if (const auto* w = std::get_if<hcq::WaitCmd>(&body)) {
      out.push_back("wait " + word(w->signal, slots[w->value_slot]));
      system = true;
    } else if (const auto* s = std::get_if<hcq::SignalCmd>(&body)) {
      release(word(s->signal, slots[s->value_slot]));
    } else if (const auto* t = std::get_if<hcq::TimestampCmd>(&body)) {
      out.push_back(fmt::format("time {:#x}", kTimestamps + t->index * 32) + once);
    } else if (std::holds_alternative<hcq::BarrierCmd>(body)) {
      idle = device = true;
    } else if (const auto* c = std::get_if<hcq::CopyCmd>(&body)) {
      if (c->src.size_bytes == 0) continue;
      settle();
      out.push_back(fmt::format("copy {:#x} to {:#x} {}", c->src.address(),
                                c->dst.address(), c->src.size_bytes) +
                    once);
    } else if (const auto* d = std::get_if<hcq::DispatchCmd>(&body)) {
      const std::string line = asked_dispatch(*d);
      if (line.empty()) continue;
      settle();
      out.push_back(line);
    }
  }
  release(word(&signals[0], timeline_value));
  out.push_back(fmt::format("interrupt {:#x} {}", kMailbox, kEvent) + once);
  return out;
}

// ---- what the packets do

namespace {

class Machine {
 public:
  explicit Machine(const Dialect& d) : d_(d) {}

  void run(const std::vector<Packet>& packets) {
    for (const Packet& p : packets) one(p);
  }
  std::vector<std::string> lines;

 private:
  void say(std::string line) { lines.push_back(line + once_); }
  void fault(const Packet& p) { say("BAD " + p.text()); }

  void one(const Packet& p) {
    if (p.name == "PRED_EXEC") {
      once_ = fmt::format(" on xccs {}", p["xccs"]);
      run(p.body);
      once_.clear();
    } else if (p.name == "EVENT_WRITE" || p.name == "NOP") {
      say("idle");
    } else if (p.name == "WAIT_REG_MEM" || p.name == "POLL_REGMEM") {
      wait(p);
    } else if (p.name == "HDP_FLUSH") {
      say("flush hdp");
    } else if (p.name == "ACQUIRE_MEM" || p.name == "GCR") {
      acquire(p);
    } else if (p.name == "RELEASE_MEM") {
      release(p);
    } else if (p.name == "FENCE") {
      fence(p);
    } else if (p.name == "TRAP") {
      if (lines.empty() || lines.back() != fmt::format("mailbox {}", p["context"])) return fault(p);
      lines.back() = fmt::format("interrupt {:#x} {}", kMailbox, p["context"]);
    } else if (p.name == "TIMESTAMP_GET_GLOBAL") {
      say(fmt::format("time {:#x}", p["address"]));
    } else if (p.name == "DMA_DATA" || p.name == "COPY_LINEAR") {
      copy(p);
    } else if (p.name == "SET_SH_REG") {
      for (size_t i = 0; i < p.values.size(); ++i) registers_[p["first"] + i] = p.values[i];
      if (p["first"] == 0x240) users_ = p.values.size();
    } else {
      launch(p);
    }
  }

  void wait(const Packet& p) {
    if (p["mask"] == 4 && p["reference"] == 4 && p["request"] == 0xe26 && p["done"] == 0xe27 &&
        p["function"] == 3) {
      return say("flush hdp");
    }
    if (p["function"] != 5 || p["mask"] != 0xffffffff) return fault(p);
    say(fmt::format("wait {:#x} {}", p["address"], p["reference"]));
  }

  void acquire(const Packet& p) {
    using Caches = std::vector<std::string>;
    const Caches& c = p.caches;
    if (p.name == "GCR") {
      if (c == Caches{"GL2_WB"}) return say("write back");
      return c == Caches{"GL2_INV", "GL2_WB"} ? say("acquire system") : fault(p);
    }
    if (p["base"] != 0 || p["size"] != 0xffffffffff) return fault(p);
    const Caches device =
        d_.gfx == 9 ? Caches{"TCL1", "SH_KCACHE"} : Caches{"GLK_INV", "GLV_INV", "GL1_INV"};
    const Caches system =
        d_.gfx == 9 ? Caches{"TC_WB", "TCL1", "TC", "SH_KCACHE", "SH_ICACHE"}
                    : Caches{"GLI_INV", "GLK_INV", "GLV_INV", "GL1_INV", "GL2_INV", "GL2_WB"};
    if (c == device) return say("acquire device");
    c == system ? say("acquire system") : fault(p);
  }

  void release(const Packet& p) {
    using Caches = std::vector<std::string>;
    const Caches back = d_.gfx == 9 ? Caches{"TC_WB", "TC_NC"} : Caches{"GL2_WB"};
    if (p["data"] == 3 && p["interrupt"] == 0) return say(fmt::format("time {:#x}", p["address"]));
    if (p["interrupt"] == 2 && p["value"] == p["context"] && p["data"] == 1)
      return say(fmt::format("interrupt {:#x} {}", p["address"], p["value"]));
    if (p["interrupt"] != 0 || p["data"] != 1 || p.caches != back) return fault(p);
    say(fmt::format("signal {:#x} {}", p["address"], p["value"]));
  }

  void fence(const Packet& p) {
    if (p["address"] == kMailbox) return say(fmt::format("mailbox {}", p["value"]));
    say(fmt::format("signal {:#x} {}", p["address"], p["value"]));
  }

  // Parts of one copy are joined again.
  void copy(const Packet& p) {
    const bool goes_on = copied_ && p["src"] == src_ + copied_ && p["dst"] == dst_ + copied_;
    if (goes_on) {
      lines.pop_back();
    } else {
      src_ = p["src"], dst_ = p["dst"], copied_ = 0;
    }
    copied_ += p["bytes"];
    say(fmt::format("copy {:#x} to {:#x} {}", src_, dst_, copied_));
    // The last part, and it alone, is waited for.
    if (p.name == "COPY_LINEAR" ? p["bytes"] < 1u << d_.copy_count_bits() : p["sync"] == 1)
      copied_ = 0;
  }

  // A list that relies on a register which it has not set is wrong, whatever the register holds.
  uint32_t get(uint64_t at) {
    const auto found = registers_.find(at);
    if (found == registers_.end()) say(fmt::format("BAD register {:#x} is not set", at));
    return found == registers_.end() ? 0 : found->second;
  }

  void launch(const Packet& p) {
    std::vector<uint32_t> user;
    for (size_t i = 0; i < users_; ++i) user.push_back(get(0x240 + i));
    const auto address = [&](uint32_t at) { return (get(at) | uint64_t(get(at + 1)) << 32) << 8; };
    for (uint32_t at : {0x204, 0x205, 0x206, 0x21b, 0x21c, 0x21d, 0x215}) {
      if (get(at) != 0) return fault(p);
    }
    const std::string line = fmt::format(
        "launch {:#x} {:#x} {:#x} {:#x} tmpring {:#x} scratch {:#x} local {}x{}x{} user {:#x} "
        "wave32 {}",
        address(0x20c), get(0x212), get(0x213), get(d_.rsrc3()), get(0x218),
        d_.gfx == 10 ? 0 : address(0x210), get(0x207), get(0x208), get(0x209), fmt::join(user, " "),
        p["wave32"]);
    if (p.name == "DISPATCH_INDIRECT") {
      say(line + fmt::format(" groups from {:#x}", p["address"]));
    } else {
      say(line + fmt::format(" groups {}x{}x{}", p["x"], p["y"], p["z"]));
    }
  }

  Dialect d_;
  std::string once_;
  std::map<uint64_t, uint32_t> registers_;
  size_t users_ = 0;
  uint64_t src_ = 0, dst_ = 0, copied_ = 0;
};

std::string aql_line(const Packet& p) {
  const uint64_t fences = p["acquire"] == p["release"] ? p["acquire"] : 99;
  if (p.name == "BARRIER_AND" && p["barrier"] == 1 && (fences == 1 || fences == 2))
    return fences == 2 ? "barrier system" : "barrier agent";
  if (p.name != "KERNEL_DISPATCH" || p["barrier"] || fences) return "BAD " + p.text();
  return fmt::format("launch {:#x} local {}x{}x{} items {}x{}x{} private {} group {} args {:#x}",
                     p["descriptor"], p["local_x"], p["local_y"], p["local_z"], p["x"], p["y"],
                     p["z"], p["private"], p["group"], p["args"]);
}

}  // namespace

std::vector<std::string> Scene::done(const Encoded& encoded) const {
  const std::vector<uint32_t> buffer = ib(encoded);
  Machine machine(dialect);
  if (kind == QueueKind::Pm4) machine.run(disassemble_pm4(buffer, dialect));
  if (kind == QueueKind::Sdma) machine.run(disassemble_sdma(buffer, dialect));
  if (kind != QueueKind::Aql) return machine.lines;
  uint64_t next = 0;  // of the buffer, which vendor packets use up from the front
  for (const Packet& p : disassemble_aql(packets(encoded))) {
    if (p.name != "PM4_IB") {
      machine.lines.push_back(aql_line(p));
      continue;
    }
    EXPECT_EQ(p["address"], ib_address + next * 4);
    EXPECT_EQ(p["barrier"] + p["acquire"] + p["release"], 5u);
    const auto part = std::span(buffer).subspan(next, p["dwords"]);
    machine.run(disassemble_pm4(part, dialect));
    next += p["dwords"];
  }
  EXPECT_EQ(next, buffer.size());
  return machine.lines;
}

}  // namespace tuff::devices::amd
