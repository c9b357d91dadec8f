#include "devices/amd/mutation_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emu/llvm_tools.h"

namespace tuff::devices::amd {
namespace {

namespace emu_amd = emu::amd;

const std::vector<uint8_t>& kernels() {
  static const std::vector<uint8_t> file = emu::testing::assemble(emu_amd::scene_kernels());
  return file;
}

uint32_t end_of(const PacketStream& s, size_t unit) {
  return unit + 1 < s.units.size() ? s.units[unit + 1] : uint32_t(s.dwords.size());
}

// A packet's bits that order memory, by its dword.
struct OrderBits {
  uint32_t dword, first, last;
};

std::vector<OrderBits> order_bits(QueueKind kind, bool ring, uint32_t head) {
  if (kind == QueueKind::Sdma) {
    if ((head & 0xffff) == 0x111) return {{2, 16, 31}};  // GCR_USER
    return {};
  }
  if (ring) return {{0, 8, 12}};  // AQL's barrier bit and fences
  switch (head >> 8 & 0xff) {
    case 0x58: return {{7, 0, 15}};   // ACQUIRE_MEM
    case 0x49: return {{1, 12, 30}};  // RELEASE_MEM
    case 0x50: return {{1, 31, 31}};  // DMA_DATA's CP_SYNC
    default: return {};
  }
}

bool is_work(const Packet& p) {
  return p.name == "DISPATCH_DIRECT" || p.name == "DISPATCH_INDIRECT" || p.name == "DMA_DATA" ||
         p.name == "KERNEL_DISPATCH" || p.name == "COPY_LINEAR";
}

// How a kernel reads what its second argument points to (see scene_kernels).
std::optional<OrderModel::Path> source_path(const std::string& kernel) {
  if (kernel == "scalar") return OrderModel::Path::Scalar;
  if (kernel == "set" || kernel == "set2") return std::nullopt;
  return OrderModel::Path::Vector;
}

// The packet without addresses and values.
std::string rule_name(const Packet& p, QueueKind kind) {
  std::string text = kind == QueueKind::Pm4 ? "PM4" : kind == QueueKind::Sdma ? "SDMA" : "AQL";
  text += " " + p.name;
  for (const char* field : {"memory", "interrupt", "data", "first", "acquire", "barrier"}) {
    if (p.fields.count(field)) text += fmt::format(" {}={:#x}", field, p[field]);
  }
  for (const std::string& cache : p.caches) text += " " + cache;
  return text;
}

}  // namespace

Bench::Bench(uint32_t gpus, uint64_t seed, const Mutation& mutation)
    : scene(gpus, seed), generation_(*find_generation("gfx1100")), mutation_(mutation) {}

Bench::Memory& Bench::keep(emu_amd::GpuScene::Block block, int home) {
  Memory& m = memory_.emplace_back();
  m.block = std::move(block);
  m.handle.address = m.block.address;
  m.handle.size_bytes = m.block.bytes;
  m.handle.host = m.block.host;
  if (whole()) {
    m.model = &model;
    model.add_memory(m.block.address, m.block.bytes, home);
  }
  return m;
}

uint32_t Bench::Memory::word(size_t i) const {
  touched_by_host(i * 4, 4, false);
  return block.word(i);
}
void Bench::Memory::set(size_t i, uint32_t value) const {
  touched_by_host(i * 4, 4, true);
  block.set(i, value);
}
void Bench::Memory::touched_by_host(size_t at, size_t bytes, bool write) const {
  if (model) model->host_access(block.address + at, bytes, write);
}

TestSignal& Bench::signal() {
  Memory& word = system();
  word.block.set(0, 0);
  return signals_.emplace_back(word.block.address);
}

void Bench::raise(TestSignal& signal, uint32_t value) {
  for (const Memory& m : memory_) {
    if (m.block.address == signal.address) m.block.set(0, value);
  }
  if (whole()) model.host_raises(signal.address, value);
}

Bench::Queue& Bench::queue(QueueKind kind, uint32_t gpu) {
  const auto emulated = kind == QueueKind::Pm4    ? emu_amd::QueueKind::Pm4
                        : kind == QueueKind::Sdma ? emu_amd::QueueKind::Sdma
                                                  : emu_amd::QueueKind::Aql;
  if (whole()) model.add_queue(kind, gpu);
  Queue q{uint32_t(queues_.size()),
          kind,
          &scene.queue(gpu, emulated, 16384),
          &signal(),
          0,
          uint32_t(queues_.size() + 1),
          &system(),
          &system(),
          0};
  return queues_.emplace_back(q);
}

TestProgram& Bench::program(Memory& code, const std::string& name) {
  const emu::rdna::Kernel k = scene.place(code.block, kernels(), name);
  KernelCode c;
  c.entry = k.entry_address;
  c.descriptor = k.entry_address - uint64_t(k.descriptor.entry_offset);
  c.rsrc1 = k.descriptor.rsrc1;
  c.rsrc2 = k.descriptor.rsrc2;
  c.rsrc3 = k.descriptor.rsrc3;
  c.properties = k.descriptor.properties;
  c.local = {32, 1, 1};
  code.touched_by_host(0, code.block.bytes, true);
  if (whole()) model.add_kernel(c, source_path(name));
  return programs_.emplace_back(name, c);
}

void Bench::arguments(const Memory& args, size_t at, const Memory& dst, const Memory& src,
                      uint32_t k) {
  args.touched_by_host(at, 20, true);
  if (args.model)
    model.set_arguments(args.block.address + at, dst.block.address, src.block.address);
  args.block.set64(at, dst.block.address);
  args.block.set64(at + 8, src.block.address);
  args.block.set(at / 4 + 4, k);
}

// ---- mutations

void Bench::add_mutations(const PacketStream& s, bool ring, QueueKind kind) {
  bool begun = false;  // what a list owes for those before it comes in front of its first work
  for (uint32_t unit = 0; unit < s.units.size(); ++unit) {
    const std::span dwords(s.dwords.data() + s.units[unit], end_of(s, unit) - s.units[unit]);
    const Packet packet = decode(kind, ring, dwords);
    const bool first = !begun && kind != QueueKind::Aql;
    const std::string name = rule_name(packet, kind) + (first ? ", at the start" : "");
    begun |= is_work(packet);
    const bool orders = !is_work(packet) && packet.name != "SET_SH_REG";
    possible.push_back({lists_, ring, unit, 0, 0, name, orders});
    for (const OrderBits& bits : order_bits(kind, ring, dwords[0])) {
      for (uint32_t bit = bits.first; bit <= bits.last; ++bit) {
        const uint32_t mask = 1u << bit;
        if (!(dwords[bits.dword] & mask)) continue;
        possible.push_back({lists_, ring, unit, bits.dword, mask,
                            fmt::format("{}: dword {}, bit {}", name, bits.dword, bit)});
      }
    }
  }
}

void Bench::list_mutations(const Encoded& encoded, QueueKind kind) {
  add_mutations(encoded.packets, true, kind);
  add_mutations(encoded.ib, false, kind);
}

void Bench::mutate(Encoded& encoded, QueueKind kind) const {
  PacketStream& s = mutation_.ring ? encoded.packets : encoded.ib;
  const uint32_t begin = s.units[mutation_.unit], end = end_of(s, mutation_.unit);
  if (mutation_.clear) {
    s.dwords[begin + mutation_.dword] &= ~mutation_.clear;
  } else if (!mutation_.ring && kind != QueueKind::Sdma) {
    // Sizes of indirect buffers stay: a NOP of the packet's size, whose body nobody looks at.
    s.dwords[begin] = 3u << 30 | (end - begin - 2) << 16 | 0x10u << 8;
  } else {
    s.dwords.erase(s.dwords.begin() + begin, s.dwords.begin() + end);
    s.units.erase(s.units.begin() + mutation_.unit);
    for (uint32_t& unit : s.units) unit -= unit > begin ? end - begin : 0;
    std::erase_if(s.patches, [&](const Patch& p) { return p.dword >= begin && p.dword < end; });
    for (Patch& p : s.patches) p.dword -= p.dword >= end ? end - begin : 0;
  }
}

Bench::Prepared Bench::encode(Queue& q, const List& list) {
  EncodeInput in{generation_, binding_, list.commands, {}, {}, 0, 1};
  in.completion = {q.timeline, q.mailbox->block.address, q.event};
  in.timestamps = q.timestamps->block.address;
  Prepared out{&q, lists_,
               q.kind == QueueKind::Pm4    ? encode_pm4(in)
               : q.kind == QueueKind::Sdma ? encode_sdma(in)
                                           : encode_aql(in)};
  list_mutations(out.encoded, q.kind);
  if (lists_++ == mutation_.list) mutate(out.encoded, q.kind);
  return out;
}

// ---- running

// A submission's packets, each jump with what it jumps to behind it.
void Bench::tell(const Prepared& p, std::span<const uint32_t> packets, std::span<const uint32_t> ib,
                 uint64_t ib_address) {
  std::vector<OrderModel::Unit> units;
  const auto add = [&](const PacketStream& s, std::span<const uint32_t> dwords, bool ring,
                       uint32_t unit, std::optional<uint32_t> jump) {
    const uint32_t begin = s.units[unit], end = end_of(s, unit);
    units.push_back({p.list, ring, unit, jump, {dwords.begin() + begin, dwords.begin() + end}});
  };
  const Encoded& e = p.encoded;
  if (p.queue->kind != QueueKind::Aql) {
    for (uint32_t i = 0; i < e.ib.units.size(); ++i) add(e.ib, ib, false, i, {});
    return model.submit(p.queue->index, std::move(units));
  }
  for (uint32_t i = 0; i < e.packets.units.size(); ++i) {
    add(e.packets, packets, true, i, {});
    const Packet packet = decode(QueueKind::Aql, true, units.back().dwords);
    if (packet.name != "PM4_IB") continue;
    const uint64_t begin = (packet["address"] - ib_address) / 4, end = begin + packet["dwords"];
    for (uint32_t k = 0; k < e.ib.units.size(); ++k) {
      if (e.ib.units[k] >= begin && e.ib.units[k] < end) add(e.ib, ib, false, k, i);
    }
  }
  model.submit(p.queue->index, std::move(units));
}

uint64_t Bench::submit(const Prepared& p, const std::vector<uint64_t>& slots) {
  Queue& q = *p.queue;
  const Encoded& e = p.encoded;
  Memory* ib = q.kind == QueueKind::Sdma ? nullptr : &system(e.ib.dwords.size() * 4 + 4);
  const uint64_t ib_address = ib ? ib->block.address : 0;
  std::vector<const SignalEpoch*> epochs;
  for (const SignalWord& w : e.words) {
    epochs.push_back(&dynamic_cast<const TestSignal*>(w.signal)->epoch);
  }
  std::vector<uint64_t> values(e.value_count());
  fill_values(e, {slots, ++q.value, ib_address}, epochs, values);
  std::vector<uint32_t> dwords(e.ib.dwords.size()), packets(e.packets.dwords.size());
  e.ib.write(values, dwords.data());
  e.packets.write(values, packets.data());
  if (ib) std::memcpy(ib->block.host, dwords.data(), dwords.size() * 4);
  ++q.submissions;
  if (whole()) tell(p, packets, dwords, ib_address);
  if (q.kind == QueueKind::Pm4) {
    const auto jump = indirect_buffer(ib_address, uint32_t(dwords.size()));
    q.ring->push({jump.begin(), jump.end()});
  } else {
    q.ring->push(q.kind == QueueKind::Sdma ? dwords : packets);
  }
  q.ring->announce();
  return q.value;
}

bool Bench::reached(TestSignal& signal, uint64_t value) {
  const auto holds = [&] {
    for (const Memory& m : memory_) {
      if (m.block.address == signal.address) return m.block.word(0) >= value;
    }
    return false;
  };
  while (!holds()) {
    if (!scene.step()) return false;
  }
  if (whole()) model.host_waits(signal.address, uint32_t(value));
  return true;
}

void Bench::stand_still() {
  scene.run();
  if (whole()) model.host_sees_all_stand_still();
}

uint64_t Bench::timestamp(const Queue& q, uint32_t index) {
  const size_t at = index * kTimestampStride;
  if (whole()) model.host_waits(q.timestamps->block.address + at, 1);
  uint64_t ticks;
  std::memcpy(&ticks, q.timestamps->block.host + at, sizeof ticks);
  return ticks;
}

bool Bench::told_the_host() {
  scene.run();
  std::vector<uint32_t> expected, seen = scene.interrupts;
  bool mailboxes = true;
  for (const Queue& q : queues_) {
    expected.insert(expected.end(), q.submissions, q.event);
    if (q.submissions == 0) continue;
    mailboxes &= q.mailbox->block.word(0) == q.event;
    if (whole()) model.host_waits(q.mailbox->block.address, q.event);
  }
  if (whole()) model.finish();
  std::sort(seen.begin(), seen.end());
  return mailboxes && seen == expected;
}

}  // namespace tuff::devices::amd
