// ElfFile: header, sections, symbols and names of an ELF64 file, for loaders: relocatable objects,
// and linked (ET_DYN) or executable ones (ET_EXEC) where they are asked for. Called by devices'
// elf_object (the CPU's), amd/load and nv/load, and by the emulator's loader. Every offset is
// checked before it is followed; what is damaged throws CompileError. Knows no machine. Source:
// gABI chapters 4 and 5.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace tuff {

template <class... Args>
[[noreturn]] void damaged_object(fmt::format_string<Args...> text, Args&&... args) {
  fail<CompileError>("object file: {}", fmt::format(text, std::forward<Args>(args)...));
}

struct ElfFile {
  static constexpr uint64_t kMaxImageBytes = 1u << 30;
  static constexpr uint64_t kMaxAlignment = 4096;

  enum class Kinds : uint8_t { Relocatable, RelocatableAndLinked, Executable };

  // Reads header, sections and symbols; refuses what is not of this machine or of these kinds.
  ElfFile(std::span<const uint8_t> bytes, uint16_t machine, const char* machine_name,
          Kinds kinds = Kinds::Relocatable);

  bool is_linked() const { return header.e_type == ET_DYN; }
  std::vector<Elf64_Phdr> segments() const;  // of a linked file

  std::span<const uint8_t> range(uint64_t offset, uint64_t size, const char* what) const;
  template <class T>
  std::vector<T> table(const Elf64_Shdr& s, const char* what) const;
  std::string name_of(const Elf64_Sym& s) const;
  std::string name_of(const Elf64_Shdr& s) const;
  // Contents or zeros in memory. Unwind tables and notes are left out: nothing here unwinds through
  // a kernel.
  static bool is_allocated(const Elf64_Shdr& s);
  bool has_relocations(const Elf64_Shdr& s) const;  // of an allocated section
  // The alignment an allocated section asks for: a power of two, at most kMaxAlignment.
  static uint64_t alignment(const Elf64_Shdr& s, size_t number);

  std::span<const uint8_t> bytes;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Sym> symbols;  // the static table's; of a linked file without one the dynamic
  std::string_view names;          // of symbols

 private:
  void read_symbols(uint32_t type);
};

template <class T>
std::vector<T> ElfFile::table(const Elf64_Shdr& s, const char* what) const {
  if (s.sh_entsize != sizeof(T) || s.sh_size % sizeof(T) != 0)
    damaged_object("{}: entries of {} bytes in {} bytes", what, s.sh_entsize, s.sh_size);
  auto from = range(s.sh_offset, s.sh_size, what);
  std::vector<T> rows(s.sh_size / sizeof(T));
  if (!rows.empty()) std::memcpy(rows.data(), from.data(), from.size());
  return rows;
}

}  // namespace tuff
