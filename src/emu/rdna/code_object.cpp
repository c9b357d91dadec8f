#include "emu/rdna/code_object.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tuff::emu::rdna {
namespace {

struct Header {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_headers, sections;
  uint32_t flags;
  uint16_t header_size, program_size, program_count, section_size, section_count, names;
};
struct Section {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entry_size;
};
struct Symbol {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
};
struct Relocation {
  uint64_t offset, info;
  int64_t addend;
};

constexpr uint16_t kMachine = 224, kRelocatable = 1;  // EM_AMDGPU, ET_REL
constexpr uint32_t kRela = 4, kSymbols = 2, kNoBits = 8;
constexpr uint64_t kAllocated = 2, kExecutable = 4;

}  // namespace

struct CodeObject::Reader {
  std::span<const uint8_t> file;
  CodeObject& out;
  std::vector<Section> sections;
  std::vector<uint64_t> placed;  // offset in the image of each section, ~0 where it has none

  template <class T>
  T at(uint64_t offset) const {
    if (offset > file.size() || file.size() - offset < sizeof(T)) {
      fail<InvalidArgument>("code object: {} bytes at {} of a file of {}", sizeof(T), offset,
                            file.size());
    }
    T value;
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
  }
  std::string text(uint64_t offset) const {
    std::string out_text;
    for (; at<char>(offset) != 0; ++offset) out_text += at<char>(offset);
    return out_text;
  }

  void read() {
    const auto header = at<Header>(0);
    if (std::memcmp(header.ident, "\177ELF\2\1", 6) != 0 || header.machine != kMachine) {
      fail<InvalidArgument>("code object: not a 64-bit ELF file for AMDGPU (machine {})",
                            header.machine);
    }
    for (uint32_t k = 0; k < header.section_count; ++k) {
      sections.push_back(at<Section>(header.sections + uint64_t(k) * sizeof(Section)));
    }
    place(header.type == kRelocatable);
    read_symbols(header.type == kRelocatable);
    for (const Section& section : sections) {
      if (section.type == kRela) relocate(section);
    }
  }

  void place(bool relocatable) {
    uint64_t next = 0;
    for (const Section& section : sections) {
      placed.push_back(~uint64_t(0));
      if (!(section.flags & kAllocated) || section.size == 0) continue;
      const uint64_t alignment = std::max<uint64_t>(section.alignment, 1);
      const uint64_t begin =
          relocatable ? (next + alignment - 1) / alignment * alignment : section.address;
      if (begin + section.size > (1u << 30)) fail<InvalidArgument>("code object: over 1 GiB");
      next = std::max(next, begin + section.size);
      out.image_.resize(std::max<uint64_t>(out.image_.size(), begin + section.size));
      placed.back() = begin;
      if (section.type != kNoBits) {
        (void)at<uint8_t>(section.offset + section.size - 1);
        std::memcpy(out.image_.data() + begin, file.data() + section.offset, section.size);
      }
      if (section.flags & kExecutable) {
        out.code_begin_ = begin;
        out.code_end_ = begin + section.size;
      }
    }
  }

  Symbol symbol(const Section& table, uint64_t index) const {
    return at<Symbol>(table.offset + index * sizeof(Symbol));
  }
  uint64_t value(const Symbol& s, bool relocatable) const {
    if (s.section == 0 || s.section >= placed.size()) return ~uint64_t(0);
    if (!relocatable) return s.value;
    return placed[s.section] == ~uint64_t(0) ? ~uint64_t(0) : placed[s.section] + s.value;
  }

  void read_symbols(bool relocatable) {
    for (const Section& table : sections) {
      if (table.type != kSymbols || table.link >= sections.size()) continue;
      for (uint64_t k = 1; k < table.size / sizeof(Symbol); ++k) {
        const Symbol s = symbol(table, k);
        const uint64_t offset = value(s, relocatable);
        if (offset != ~uint64_t(0)) {
          out.symbols_[text(sections[table.link].offset + s.name)] = offset;
        }
      }
    }
  }

  void relocate(const Section& table) {
    if (table.info >= sections.size() || placed[table.info] == ~uint64_t(0)) return;
    for (uint64_t k = 0; k < table.size / sizeof(Relocation); ++k) {
      const auto r = at<Relocation>(table.offset + k * sizeof(Relocation));
      const Symbol s = symbol(sections[table.link], r.info >> 32);
      const uint64_t to = value(s, true);
      const uint64_t where = placed[table.info] + r.offset;
      if (to == ~uint64_t(0) || where + 8 > out.image_.size() + 4) {
        fail<InvalidArgument>("code object: a relocation to a symbol that is not defined here");
      }
      apply(uint32_t(r.info), where, out.address_ + to + uint64_t(r.addend));
    }
  }

  void apply(uint32_t type, uint64_t where, uint64_t absolute) {
    const uint64_t relative = absolute - (out.address_ + where);
    const auto put = [&](uint64_t bits, size_t bytes) {
      if (where + bytes > out.image_.size())
        fail<InvalidArgument>("code object: relocation outside");
      std::memcpy(out.image_.data() + where, &bits, bytes);
    };
    switch (type) {
      case 1:
      case 6: return put(uint32_t(absolute), 4);
      case 2: return put(absolute >> 32, 4);
      case 3: return put(absolute, 8);
      case 4:
      case 10: return put(uint32_t(relative), 4);
      case 11: return put(relative >> 32, 4);
      case 5: return put(relative, 8);
      default: fail<InvalidArgument>("code object: relocation type {} is not known", type);
    }
  }
};

CodeObject::CodeObject(std::span<const uint8_t> file, uint64_t address) : address_(address) {
  Reader{file, *this, {}, {}}.read();
  // Instructions are fetched by whole lines.
  image_.resize((image_.size() + kFetchBytes - 1) / kFetchBytes * kFetchBytes);
}

Kernel CodeObject::kernel(const std::string& name) const {
  const auto found = symbols_.find(name + ".kd");
  if (found == symbols_.end() || found->second + 64 > image_.size()) {
    std::string names;
    for (const auto& [symbol, offset] : symbols_) {
      if (symbol.ends_with(".kd")) names += " " + symbol.substr(0, symbol.size() - 3);
    }
    fail<InvalidArgument>("code object: no kernel '{}'; there are:{}", name, names);
  }
  Kernel kernel;
  kernel.name = name;
  kernel.descriptor = parse_descriptor(std::span(image_).subspan(found->second, 64));
  kernel.entry_address = address_ + found->second + uint64_t(kernel.descriptor.entry_offset);
  return kernel;
}

}  // namespace tuff::emu::rdna
