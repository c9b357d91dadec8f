#include "base/elf_file.h"

#include <algorithm>

namespace tuff {

ElfFile::ElfFile(std::span<const uint8_t> b, uint16_t machine, const char* machine_name,
                 Kinds kinds)
    : bytes(b), header{} {
  Elf64_Ehdr& h = header;
  std::memcpy(&h, range(0, sizeof h, "header").data(), sizeof h);
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) damaged_object("no ELF magic");
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
    damaged_object("not a 64-bit little-endian file");
  const bool linked_too = kinds == Kinds::RelocatableAndLinked;
  const bool executable = kinds == Kinds::Executable;
  const bool fits = executable ? h.e_type == ET_EXEC
                               : h.e_type == ET_REL || (linked_too && h.e_type == ET_DYN);
  if (h.e_machine != machine || !fits)
    damaged_object("machine {} type {}; {} ({}) {}{} is loaded", h.e_machine, h.e_type,
                   machine_name, machine, executable ? "executable (2)" : "relocatable (1)",
                   linked_too ? " or linked (3)" : "");
  if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shnum == 0) damaged_object("no section headers");
  auto from = range(h.e_shoff, uint64_t{h.e_shnum} * sizeof(Elf64_Shdr), "section headers");
  sections.resize(h.e_shnum);
  std::memcpy(sections.data(), from.data(), from.size());
  read_symbols(SHT_SYMTAB);
  if (is_linked() && symbols.empty()) read_symbols(SHT_DYNSYM);
}

std::vector<Elf64_Phdr> ElfFile::segments() const {
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))
    damaged_object("program headers of {} bytes", header.e_phentsize);
  auto from =
      range(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), "program headers");
  std::vector<Elf64_Phdr> rows(header.e_phnum);
  if (!rows.empty()) std::memcpy(rows.data(), from.data(), from.size());
  return rows;
}

void ElfFile::read_symbols(uint32_t type) {
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != type) continue;
    if (!symbols.empty()) damaged_object("two symbol tables");
    symbols = table<Elf64_Sym>(s, "symbol table");
    if (s.sh_link >= sections.size())
      damaged_object("symbol names in section {} of {}", s.sh_link, sections.size());
    const Elf64_Shdr& strings = sections[s.sh_link];
    auto text = range(strings.sh_offset, strings.sh_size, "symbol names");
    names = {reinterpret_cast<const char*>(text.data()), text.size()};
  }
}

std::span<const uint8_t> ElfFile::range(uint64_t offset, uint64_t size, const char* what) const {
  if (offset > bytes.size() || size > bytes.size() - offset)
    damaged_object("{} at {} of {} bytes lies outside the file of {} bytes", what, offset, size,
                   bytes.size());
  return bytes.subspan(offset, size);
}

namespace {

std::string text_at(std::string_view names, uint64_t at, const char* what) {
  if (at >= names.size()) damaged_object("{} name at {} of {}", what, at, names.size());
  const std::string_view rest = names.substr(at);
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) damaged_object("{} name without an end", what);
  return std::string(rest.substr(0, end));
}

}  // namespace

std::string ElfFile::name_of(const Elf64_Sym& s) const {
  return text_at(names, s.st_name, "symbol");
}

std::string ElfFile::name_of(const Elf64_Shdr& s) const {
  if (header.e_shstrndx >= sections.size())
    damaged_object("section names in section {} of {}", header.e_shstrndx, sections.size());
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  const auto text = range(strings.sh_offset, strings.sh_size, "section names");
  return text_at({reinterpret_cast<const char*>(text.data()), text.size()}, s.sh_name, "section");
}

bool ElfFile::is_allocated(const Elf64_Shdr& s) {
  return (s.sh_flags & SHF_ALLOC) != 0 && (s.sh_type == SHT_PROGBITS || s.sh_type == SHT_NOBITS);
}

bool ElfFile::has_relocations(const Elf64_Shdr& s) const {
  if (s.sh_type != SHT_RELA) return false;
  if (s.sh_info >= sections.size())
    damaged_object("relocations of section {} of {}", s.sh_info, sections.size());
  return is_allocated(sections[s.sh_info]);
}

uint64_t ElfFile::alignment(const Elf64_Shdr& s, size_t number) {
  const uint64_t align = std::max<uint64_t>(s.sh_addralign, 1);
  if (align > kMaxAlignment || (align & (align - 1)) != 0)
    damaged_object("section {}: alignment {}", number, align);
  return align;
}

}  // namespace tuff
