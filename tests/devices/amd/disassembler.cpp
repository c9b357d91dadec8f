#include "devices/amd/disassembler.h"

#include <fmt/format.h>

#include <functional>

namespace tuff::devices::amd {
namespace {

template <class... Args>
[[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) {
  throw BadPacket(fmt::format(text, std::forward<Args>(args)...));
}

// One dword, of which every bit that is set has to be asked for.
class Bits {
 public:
  Bits(uint32_t value, const Packet& packet, uint32_t index)
      : left_(value), value_(value), packet_(packet), index_(index) {}
  uint32_t take(int low, int width) {
    const uint32_t mask = (width == 32 ? ~0u : (1u << width) - 1) << low;
    left_ &= ~mask;
    return (value_ & mask) >> low;
  }
  void is(int low, int width, uint32_t expected) {
    const uint32_t found = take(low, width);
    if (found != expected) {
      bad("{} at {}, dword {}: bits {}+{} are {:#x}, not {:#x}", packet_.name, packet_.at, index_,
          low, width, found, expected);
    }
  }
  ~Bits() noexcept(false) {
    if (left_ && !std::uncaught_exceptions()) {
      bad("{} at {}, dword {}: reserved bits {:#x}", packet_.name, packet_.at, index_, left_);
    }
  }

 private:
  uint32_t left_, value_;
  const Packet& packet_;
  uint32_t index_;
};

class Reader {
 public:
  Reader(std::span<const uint32_t> dwords, uint32_t from, Packet& packet)
      : dwords_(dwords), next_(from), packet_(packet) {}
  uint32_t raw() {
    if (next_ >= dwords_.size()) bad("{} at {} is cut off", packet_.name, packet_.at);
    return dwords_[next_++];
  }
  Bits bits() {
    const uint32_t index = next_ - packet_.at;
    return Bits(raw(), packet_, index);
  }
  void zero(const char* what) {
    if (const uint32_t v = raw()) bad("{} at {}: {} is {:#x}", packet_.name, packet_.at, what, v);
  }
  uint64_t address(uint64_t alignment) {
    const uint64_t low = raw(), a = low | uint64_t(raw()) << 32;
    if (a % alignment) bad("{} at {}: address {:#x}", packet_.name, packet_.at, a);
    if (a >> 48) bad("{} at {}: address {:#x} is not canonical", packet_.name, packet_.at, a);
    return a;
  }
  uint32_t next() const { return next_; }

 private:
  std::span<const uint32_t> dwords_;
  uint32_t next_;
  Packet& packet_;
};

struct NamedBit {
  int bit;
  const char* name;
};

void take_caches(Bits& bits, Packet& p, std::initializer_list<NamedBit> names) {
  for (const NamedBit& n : names) {
    if (bits.take(n.bit, 1)) p.caches.push_back(n.name);
  }
}

const std::map<uint32_t, std::string>& registers() {
  static const std::map<uint32_t, std::string> names{
      {0x204, "START_X"},      {0x205, "START_Y"},         {0x206, "START_Z"},
      {0x207, "NUM_THREAD_X"}, {0x208, "NUM_THREAD_Y"},    {0x209, "NUM_THREAD_Z"},
      {0x20c, "PGM_LO"},       {0x20d, "PGM_HI"},          {0x210, "DISPATCH_SCRATCH_BASE_LO"},
      {0x212, "PGM_RSRC1"},    {0x213, "PGM_RSRC2"},       {0x211, "DISPATCH_SCRATCH_BASE_HI"},
      {0x218, "TMPRING_SIZE"}, {0x215, "RESOURCE_LIMITS"}, {0x21b, "RESTART_X"},
      {0x21c, "RESTART_Y"},    {0x21d, "RESTART_Z"}};
  return names;
}

std::string register_name(uint32_t offset, const Dialect& d) {
  if (offset == d.rsrc3()) return "PGM_RSRC3";
  if (offset >= 0x240 && offset < 0x250) return fmt::format("USER_DATA_{}", offset - 0x240);
  if (d.gfx == 10 && (offset == 0x210 || offset == 0x211)) bad("no register {:#x} here", offset);
  const auto found = registers().find(offset);
  if (found == registers().end()) bad("register {:#x}", offset);
  return found->second;
}

class Pm4 {
 public:
  Pm4(std::span<const uint32_t> dwords, const Dialect& d) : dwords_(dwords), d_(d) {}

  std::vector<Packet> run(uint32_t from, uint32_t to) {
    std::vector<Packet> out;
    for (uint32_t at = from; at < to;) {
      out.push_back(one(at));
      at += out.back().dwords;
      if (at > to) bad("a packet reaches over the end at {}", to);
    }
    return out;
  }

 private:
  Packet one(uint32_t at) {
    Packet p;
    p.at = at;
    Reader r(dwords_, at, p);
    const uint32_t head = r.raw();
    const uint32_t opcode = head >> 8 & 0xff, count = head >> 16 & 0x3fff;
    if (head >> 30 != 3) bad("type {} at {}", head >> 30, at);
    if (head & 0xff) bad("header {:#x} at {}", head, at);
    body(p, r, opcode, count);
    p.dwords = r.next() - at;
    const bool lone_nop = opcode == 0x10 && count == 0x3fff;
    const uint32_t claimed = lone_nop ? 1 : count + 2;
    const uint32_t found = p.name == "PRED_EXEC" ? 2 : p.dwords;
    if (found != claimed) bad("{} at {}: {} dwords, header says {}", p.name, at, found, claimed);
    return p;
  }

  void body(Packet& p, Reader& r, uint32_t opcode, uint32_t count) {
    switch (opcode) {
      case 0x10: return nop(p, r, count);
      case 0x15: return dispatch(p, r);
      case 0x16: return dispatch_indirect(p, r);
      case 0x23: return pred_exec(p, r);
      case 0x3c: return wait_reg_mem(p, r);
      case 0x46: return event_write(p, r);
      case 0x49: return release_mem(p, r);
      case 0x50: return dma_data(p, r);
      case 0x58: return acquire_mem(p, r);
      case 0x76: return set_sh_reg(p, r, count);
      default: bad("opcode {:#x} at {}", opcode, p.at);
    }
  }

  void nop(Packet& p, Reader& r, uint32_t count) {
    p.name = "NOP";
    if (count == 0x3fff) return;
    for (uint32_t i = 0; i <= count; ++i) r.raw();
  }

  void initiator(Packet& p, Reader& r) {
    Bits b = r.bits();
    b.is(0, 1, 1);  // COMPUTE_SHADER_EN
    b.is(2, 1, 1);  // FORCE_START_AT_000
    p.fields["wave32"] = d_.gfx == 9 ? 0 : b.take(15, 1);
  }
  void dispatch(Packet& p, Reader& r) {
    p.name = "DISPATCH_DIRECT";
    for (const char* axis : {"x", "y", "z"}) p.fields[axis] = r.raw();
    initiator(p, r);
  }
  void dispatch_indirect(Packet& p, Reader& r) {
    p.name = "DISPATCH_INDIRECT";
    p.fields["address"] = r.address(4);
    initiator(p, r);
  }

  void pred_exec(Packet& p, Reader& r) {
    p.name = "PRED_EXEC";
    if (d_.gfx != 9) bad("PRED_EXEC selects XCCs, which gfx{} has not", d_.gfx);
    uint32_t count;
    {
      Bits b = r.bits();
      count = b.take(0, 14);
      p.fields["xccs"] = b.take(24, 8);
    }
    const uint32_t from = r.next();
    for (uint32_t i = 0; i < count; ++i) r.raw();
    p.body = run(from, from + count);
  }

  void wait_reg_mem(Packet& p, Reader& r) {
    bool memory;
    {
      p.name = "WAIT_REG_MEM";
      Bits b = r.bits();
      p.fields["function"] = b.take(0, 3);
      memory = b.take(4, 1);
      p.fields["memory"] = memory;
      b.is(6, 2, memory ? 0 : 1);  // of registers: write, then wait
    }
    if (memory) {
      p.fields["address"] = r.address(4);
    } else {
      for (const char* name : {"request", "done"}) p.fields[name] = r.bits().take(0, 18);
    }
    p.fields["reference"] = r.raw();
    p.fields["mask"] = r.raw();
    p.fields["interval"] = r.bits().take(0, 16);
  }

  void event_write(Packet& p, Reader& r) {
    p.name = "EVENT_WRITE";
    Bits b = r.bits();
    b.is(0, 6, 7);  // CS_PARTIAL_FLUSH
    b.is(8, 4, 4);
    p.fields["cs_partial_flush"] = 1;
  }

  void release_mem(Packet& p, Reader& r) {
    p.name = "RELEASE_MEM";
    {
      Bits b = r.bits();
      b.is(0, 6, 0x14);  // CACHE_FLUSH_AND_INV_TS_EVENT
      b.is(8, 4, 5);     // end of pipe
      if (d_.gfx == 9) {
        take_caches(b, p,
                    {{12, "TCL1_VOL"},
                     {13, "TC_VOL"},
                     {15, "TC_WB"},
                     {16, "TCL1"},
                     {17, "TC"},
                     {19, "TC_NC"},
                     {21, "TC_MD"}});
      } else {
        take_caches(b, p, {{14, "GLV_INV"}, {15, "GL1_INV"}, {20, "GL2_INV"}, {21, "GL2_WB"}});
        if (d_.gfx < 12) take_caches(b, p, {{12, "GLM_WB"}, {13, "GLM_INV"}});
        p.fields["sequence"] = b.take(22, 2);
      }
    }
    uint32_t data;
    {
      Bits b = r.bits();
      b.is(16, 2, 0);  // to memory, not to L2
      p.fields["interrupt"] = b.take(24, 3);
      data = b.take(29, 3);
      if (data == 0 || data > 3) bad("RELEASE_MEM at {}: data {}", p.at, data);
      p.fields["data"] = data;
    }
    p.fields["address"] = r.address(data == 1 ? 4 : 8);
    p.fields["value"] = r.raw();
    p.fields["value"] |= uint64_t(r.raw()) << 32;
    p.fields["context"] = r.raw();
  }

  void dma_data(Packet& p, Reader& r) {
    p.name = "DMA_DATA";
    {
      Bits b = r.bits();
      b.is(20, 2, 3);  // both sides through L2
      b.is(29, 2, 3);
      p.fields["sync"] = b.take(31, 1);
    }
    p.fields["src"] = r.address(1);
    p.fields["dst"] = r.address(1);
    p.fields["bytes"] = r.bits().take(0, 26);
  }

  void acquire_mem(Packet& p, Reader& r) {
    p.name = "ACQUIRE_MEM";
    if (d_.gfx == 9) {
      Bits b = r.bits();
      take_caches(b, p,
                  {{18, "TC_WB"}, {22, "TCL1"}, {23, "TC"}, {27, "SH_KCACHE"}, {29, "SH_ICACHE"}});
    } else {
      r.zero("reserved");
    }
    const uint64_t low = r.raw();
    p.fields["size"] = low | uint64_t(r.bits().take(0, 8)) << 32;
    p.fields["base"] = r.raw();
    p.fields["base"] |= uint64_t(r.bits().take(0, 24)) << 32;
    p.fields["interval"] = r.bits().take(0, 16);
    if (d_.gfx == 9) return;
    Bits b = r.bits();
    if (const uint32_t gli = b.take(0, 2); gli > 1) {
      bad("ACQUIRE_MEM at {}: GLI_INV {}", p.at, gli);
    } else if (gli) {
      p.caches.push_back("GLI_INV");
    }
    take_caches(b, p,
                {{6, "GLK_WB"},
                 {7, "GLK_INV"},
                 {8, "GLV_INV"},
                 {9, "GL1_INV"},
                 {14, "GL2_INV"},
                 {15, "GL2_WB"}});
  }

  void set_sh_reg(Packet& p, Reader& r, uint32_t count) {
    p.name = "SET_SH_REG";
    const uint32_t first = r.bits().take(0, 16);
    p.fields["first"] = first;
    for (uint32_t i = 0; i < count; ++i) {
      register_name(first + i, d_);
      p.values.push_back(r.raw());
    }
    if (count == 0) bad("SET_SH_REG at {} sets nothing", p.at);
  }

  std::span<const uint32_t> dwords_;
  Dialect d_;
};

class Sdma {
 public:
  Sdma(std::span<const uint32_t> dwords, const Dialect& d) : dwords_(dwords), d_(d) {}

  Packet one(uint32_t at) {
    Packet p;
    p.at = at;
    Reader r(dwords_, at, p);
    const uint32_t head = r.raw(), op = head & 0xff, sub_op = head >> 8 & 0xff;
    Bits b(head & 0xffff0000, p, 0);
    switch (op | sub_op << 8) {
      case 0x0000: p.name = "NOP"; break;
      case 0x0001: copy(p, r); break;
      case 0x0005: fence(p, r, b); break;
      case 0x0006:
        p.name = "TRAP";
        p.fields["context"] = r.bits().take(0, 28);
        break;
      case 0x0008: poll(p, r, b); break;
      case 0x020d:
        p.name = "TIMESTAMP_GET_GLOBAL";
        p.fields["address"] = r.address(32);
        break;
      case 0x0111: gcr(p, r); break;
      default: bad("SDMA op {:#x}, sub-op {:#x} at {}", op, sub_op, at);
    }
    p.dwords = r.next() - at;
    return p;
  }

 private:
  void copy(Packet& p, Reader& r) {
    p.name = "COPY_LINEAR";
    p.fields["bytes"] = r.bits().take(0, d_.copy_count_bits()) + uint64_t(1);
    r.zero("parameters");
    p.fields["src"] = r.address(1);
    p.fields["dst"] = r.address(1);
  }
  void fence(Packet& p, Reader& r, Bits& b) {
    p.name = "FENCE";
    if (d_.gfx != 9) b.is(16, 3, 3);  // MTYPE uncached
    p.fields["address"] = r.address(4);
    p.fields["value"] = r.raw();
  }
  void poll(Packet& p, Reader& r, Bits& b) {
    if (!b.take(31, 1)) {  // no memory to poll: ROCr's form that flushes HDP
      p.name = "HDP_FLUSH";
      r.zero("dword 1");
      if (r.raw() != 0x80000000) bad("HDP_FLUSH at {}", p.at);
      for (int i = 0; i < 3; ++i) r.zero("tail");
      return;
    }
    p.name = "POLL_REGMEM";
    p.fields["function"] = b.take(28, 3);
    p.fields["address"] = r.address(4);
    p.fields["reference"] = r.raw();
    p.fields["mask"] = r.raw();
    Bits tail = r.bits();
    p.fields["interval"] = tail.take(0, 16);
    tail.is(16, 12, 0xfff);  // for ever
  }
  void gcr(Packet& p, Reader& r) {
    p.name = "GCR";
    if (d_.gfx == 9) bad("GCR at {}: SDMA 4 has none", p.at);
    r.zero("base");
    {
      Bits b = r.bits();
      take_caches(b, p, {{30, "GL2_INV"}, {31, "GL2_WB"}});
    }
    r.zero("sequence and limit");
    r.zero("limit");
  }

  std::span<const uint32_t> dwords_;
  Dialect d_;
};

Packet aql_packet(std::span<const uint32_t> dwords, uint32_t at) {
  Packet p;
  p.at = at;
  p.dwords = 16;
  Reader r(dwords, at, p);
  const uint32_t head = r.raw();
  Bits b(head, p, 0);
  const uint32_t type = b.take(0, 8);
  p.fields["barrier"] = b.take(8, 1);
  p.fields["acquire"] = b.take(9, 2);
  p.fields["release"] = b.take(11, 2);
  if (type == 0) {
    p.name = "PM4_IB";
    b.is(16, 16, 1);
    if (r.raw() != 0xc0023f00) bad("PM4_IB at {}: not an INDIRECT_BUFFER", at);
    p.fields["address"] = r.address(4);
    Bits size = r.bits();
    p.fields["dwords"] = size.take(0, 20);
    size.is(23, 1, 1);
    if (r.raw() != 10) bad("PM4_IB at {}: dwords that remain", at);
    for (int i = 0; i < 10; ++i) r.zero("reserved");
  } else if (type == 2) {
    p.name = "KERNEL_DISPATCH";
    b.is(16, 2, 3);
    const uint32_t xy = r.raw();
    p.fields["local_x"] = xy & 0xffff;
    p.fields["local_y"] = xy >> 16;
    p.fields["local_z"] = r.bits().take(0, 16);
    for (const char* axis : {"x", "y", "z"}) p.fields[axis] = r.raw();
    p.fields["private"] = r.raw();
    p.fields["group"] = r.raw();
    p.fields["descriptor"] = r.address(64);
    p.fields["args"] = r.address(16);
    for (int i = 0; i < 4; ++i) r.zero("reserved or signal");
  } else if (type == 3) {
    p.name = "BARRIER_AND";
    for (int i = 0; i < 15; ++i) r.zero("dependency");
  } else {
    bad("AQL packet of type {} at {}", type, at);
  }
  return p;
}

std::string register_text(const Packet& p) {
  std::string text = fmt::format("{}", p.name);
  for (size_t i = 0; i < p.values.size(); ++i) {
    const uint32_t offset = uint32_t(p["first"] + i);
    const auto found = registers().find(offset);
    const std::string name = offset >= 0x240 ? fmt::format("USER_DATA_{}", offset - 0x240)
                             : found == registers().end() ? "PGM_RSRC3"
                                                          : found->second;
    text += fmt::format(" {}={:#x}", name, p.values[i]);
  }
  return text;
}

}  // namespace

Dialect Dialect::of(const std::string& name) {
  Dialect d;
  d.gfx = name == "gfx942" ? 9 : std::stoi(name.substr(3, 2));
  return d;
}

uint64_t Packet::operator[](const std::string& field) const {
  const auto found = fields.find(field);
  if (found == fields.end()) bad("{} at {} has no {}", name, at, field);
  return found->second;
}

std::string Packet::text() const {
  if (name == "SET_SH_REG") return register_text(*this);
  std::string text = name;
  for (const auto& [field, value] : fields) text += fmt::format(" {}={:#x}", field, value);
  for (const std::string& cache : caches) text += " " + cache;
  for (const Packet& p : body) text += "\n  " + p.text();
  return text;
}

std::vector<Packet> disassemble_pm4(std::span<const uint32_t> dwords, const Dialect& dialect) {
  return Pm4(dwords, dialect).run(0, uint32_t(dwords.size()));
}

std::vector<Packet> disassemble_sdma(std::span<const uint32_t> dwords, const Dialect& dialect) {
  std::vector<Packet> out;
  for (uint32_t at = 0; at < dwords.size(); at += out.back().dwords)
    out.push_back(Sdma(dwords, dialect).one(at));
  return out;
}

std::vector<Packet> disassemble_aql(std::span<const uint32_t> dwords) {
  std::vector<Packet> out;
  for (uint32_t at = 0; at < dwords.size(); at += 16) out.push_back(aql_packet(dwords, at));
  return out;
}

std::string to_text(const std::vector<Packet>& packets) {
  std::string text;
  for (const Packet& p : packets) text += p.text() + "\n";
  return text;
}

}  // namespace tuff::devices::amd
