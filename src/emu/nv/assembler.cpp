#include "emu/nv/assembler.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "emu/nv/chip.h"
#include "emu/nv/stub.h"
#include "emu/ptx/launch.h"
#include "emu/ptx/module.h"

namespace tuff::emu::nv {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr uint8_t kOsAbiOld = 0x33, kOsAbiNew = 0x41;
constexpr uint32_t kInfoType = 0x70000000;  // SHT_CUDA_INFO
constexpr uint32_t kAddress64 = 2;          // R_CUDA_64
constexpr uint32_t kBarriersShift = 20;
constexpr uint32_t kRegisters = 32;  // of any kernel: no registers are allocated
constexpr uint8_t kByteValue = 2, kSizedValue = 4;
constexpr uint8_t kParameterBank = 0x0a, kMinStackSize = 0x12, kRegisterCount = 0x2f,
                  kBarrierCount = 0x4c;

using Bytes = std::vector<uint8_t>;

template <class T>
void append(Bytes& to, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

void attribute(Bytes& to, uint8_t which, std::initializer_list<uint32_t> words) {
  append(to, kSizedValue);
  append(to, which);
  append(to, uint16_t(4 * words.size()));
  for (const uint32_t w : words) append(to, w);
}

struct Section {
  std::string name;
  Elf64_Shdr header{};
  Bytes contents;
};

class CubinFile {
 public:
  CubinFile(const ChipKind& chip, bool modern) : chip_(chip), modern_(modern) {
    add("", SHT_NULL, 0);
    strings_ = add(".strtab", SHT_STRTAB, 0);
    symbols_ = add(".symtab", SHT_SYMTAB, 0);
    section(symbols_).header.sh_link = uint32_t(strings_);
    section(symbols_).header.sh_entsize = sizeof(Elf64_Sym);
    section(strings_).contents.push_back(0);
    add_symbol("", 0, 0, STT_NOTYPE);
    info_ = add(".nv.info", kInfoType, 0);
  }

  void add_text(const std::string& text) {
    const size_t s = add(".nv.global.init", SHT_PROGBITS, SHF_ALLOC);
    section(s).contents.assign(text.begin(), text.end());
    section(s).header.sh_addralign = 16;
    text_symbol_ = add_symbol("ptx_text", s, text.size(), STT_OBJECT);
  }

  void add_kernel(const Stub& stub) {
    const std::string name(stub.name, stub.name_bytes);
    const size_t code = add(".text." + name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR);
    append(section(code).contents, stub);
    const uint32_t symbol = add_symbol(name, code, sizeof stub, STT_FUNC);
    section(code).header.sh_addralign = 128;
    section(code).header.sh_link = uint32_t(symbols_);
    section(code).header.sh_info = symbol | (modern_ ? 0 : stub.registers << 24);
    if (!modern_) section(code).header.sh_flags |= uint64_t(stub.barriers) << kBarriersShift;
    add_relocation(code);
    attribute(section(info_).contents, kRegisterCount, {symbol, stub.registers});
    attribute(section(info_).contents, kMinStackSize, {symbol, stub.local_bytes});
    add_kernel_sections(name, symbol, stub);
  }

  Bytes bytes();

 private:
  Section& section(size_t i) { return sections_[i]; }
  size_t add(const std::string& name, uint32_t type, uint64_t flags) {
    sections_.push_back({name, {}, {}});
    sections_.back().header.sh_type = type;
    sections_.back().header.sh_flags = flags;
    sections_.back().header.sh_addralign = 4;
    return sections_.size() - 1;
  }
  uint32_t add_symbol(const std::string& name, size_t in, uint64_t size, uint8_t type) {
    Bytes& text = section(strings_).contents;
    Elf64_Sym s{};
    s.st_name = uint32_t(name.empty() ? 0 : text.size());
    s.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
    s.st_shndx = uint16_t(in);
    s.st_size = size;
    if (!name.empty()) text.insert(text.end(), name.c_str(), name.c_str() + name.size() + 1);
    append(section(symbols_).contents, s);
    return symbol_count_++;
  }
  void add_relocation(size_t code) {
    const size_t s = add(".rel" + section(code).name, SHT_REL, 0);
    section(s).header.sh_info = uint32_t(code);
    section(s).header.sh_link = uint32_t(symbols_);
    section(s).header.sh_entsize = sizeof(Elf64_Rel);
    append(section(s).contents, Elf64_Rel{offsetof(Stub, text_address),
                                          ELF64_R_INFO(uint64_t(text_symbol_), kAddress64)});
  }
  void add_kernel_sections(const std::string& name, uint32_t symbol, const Stub& stub) {
    const size_t info = add(".nv.info." + name, kInfoType, 0);
    const uint32_t place = chip_.bank.parameters | 8u << 16;  // offset, then bytes
    attribute(section(info).contents, kParameterBank, {symbol, place});
    if (modern_ && stub.barriers > 0) {
      for (const uint8_t b : {kByteValue, kBarrierCount, uint8_t(stub.barriers), uint8_t(0)})
        section(info).contents.push_back(b);
    }
    const size_t bank = add(".nv.constant0." + name, SHT_PROGBITS, SHF_ALLOC);
    section(bank).contents.assign(chip_.bank.parameters + 8, 0);
    if (stub.shared_bytes == 0) return;
    const size_t shared = add(".nv.shared." + name, SHT_NOBITS, SHF_ALLOC | SHF_WRITE);
    section(shared).header.sh_size = stub.shared_bytes;
    section(shared).header.sh_addralign = 16;
  }
  Elf64_Ehdr header(uint64_t section_offset) const;

  const ChipKind& chip_;
  const bool modern_;
  std::vector<Section> sections_;
  size_t strings_ = 0, symbols_ = 0, info_ = 0;
  uint32_t text_symbol_ = 0, symbol_count_ = 0;
};

Elf64_Ehdr CubinFile::header(uint64_t section_offset) const {
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_ident[EI_OSABI] = modern_ ? kOsAbiNew : kOsAbiOld;
  h.e_ident[EI_ABIVERSION] = modern_ ? 8 : 7;
  h.e_type = ET_EXEC;
  h.e_machine = kMachineCuda;
  h.e_version = EV_CURRENT;
  h.e_flags = modern_ ? chip_.sm << 8 | 0x06000004 : chip_.sm | chip_.sm << 16 | 0x500;
  h.e_shoff = section_offset;
  h.e_ehsize = sizeof h;
  h.e_shentsize = sizeof(Elf64_Shdr);
  h.e_shnum = uint16_t(sections_.size());
  h.e_shstrndx = uint16_t(sections_.size() - 1);
  return h;
}

Bytes CubinFile::bytes() {
  const size_t names = add(".shstrtab", SHT_STRTAB, 0);
  Bytes titles;
  for (Section& s : sections_) {
    s.header.sh_name = uint32_t(titles.size());
    titles.insert(titles.end(), s.name.c_str(), s.name.c_str() + s.name.size() + 1);
  }
  section(names).contents = titles;
  Bytes out(sizeof(Elf64_Ehdr));
  for (Section& s : sections_) {
    out.resize(align_up(out.size(), std::max<uint64_t>(s.header.sh_addralign, 8)));
    s.header.sh_offset = out.size();
    if (s.header.sh_type != SHT_NOBITS) s.header.sh_size = s.contents.size();
    out.insert(out.end(), s.contents.begin(), s.contents.end());
  }
  out.resize(align_up(out.size(), 8));
  const Elf64_Ehdr h = header(out.size());
  for (const Section& s : sections_) append(out, s.header);
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

// "sm_86", and "sm_90a", which is for that GPU alone.
void check_target(const std::string& target, uint32_t sm) {
  uint32_t wanted = 0;
  const char* digits = target.c_str() + std::min<size_t>(target.size(), 3);
  const char* end = target.c_str() + target.size();
  const auto [rest, error] = std::from_chars(digits, end, wanted);
  const bool exact = rest != end;
  if (error != std::errc() || wanted > sm || (exact && wanted != sm))
    fail<CompileError>("a text for {} does not run on sm_{}", target, sm);
}

bool has_barrier(const ptx::Module& module) {
  return std::ranges::any_of(module.functions, [](const ptx::Function& f) {
    return std::ranges::any_of(
        f.code, [](const ptx::Instruction& i) { return i.kind == ptx::Kind::Barrier; });
  });
}

}  // namespace

std::vector<uint8_t> assemble(const std::string& text, uint32_t sm, bool modern) {
  const ChipKind* chip = find_chip(sm);
  if (!chip) fail<InvalidArgument>("sm_{} is not emulated", sm);
  const auto parsed = ptx::load(text);
  const auto& module = dynamic_cast<const ptx::Module&>(*parsed);
  check_target(module.target(), sm);
  constexpr uint32_t kFirstModern = 100;  // for later ones no tool writes the old layout
  CubinFile file(*chip, modern || sm >= kFirstModern);
  file.add_text(text);
  for (const emu_api::PtxKernelInfo& k : module.kernels()) {
    Stub stub{};
    if (k.name.size() > sizeof stub.name)
      fail<CompileError>("kernel '{}': its name is longer than {} characters", k.name,
                         sizeof stub.name);
    std::memcpy(stub.magic, kStubMagic, sizeof stub.magic);
    stub.text_bytes = text.size();
    stub.text_hash = hash_of(text.data(), text.size());
    stub.registers = kRegisters;
    stub.barriers = has_barrier(module) ? 1 : 0;
    stub.shared_bytes = k.shared_bytes;
    stub.local_bytes = uint32_t(align_up(k.local_bytes, 16));
    stub.sm = sm;
    stub.name_bytes = uint32_t(k.name.size());
    std::copy(k.name.begin(), k.name.end(), stub.name);
    file.add_kernel(stub);
  }
  return file.bytes();
}

}  // namespace tuff::emu::nv
