// ElfFile: header, sections, symbols and names of an ELF64 relocatable object, for loaders. Called
// by elf_object (the CPU's) and by amd/load. Every offset is checked before it is followed; what is
// damaged throws CompileError. Knows no machine. Source: gABI chapter 4.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace tuff::devices {

template <class... Args>
[[noreturn]] void damaged_object(fmt::format_string<Args...> text, Args&&... args) {
  fail<CompileError>("object file: {}", fmt::format(text, std::forward<Args>(args)...));
}

struct ElfFile {
  static constexpr uint64_t kMaxImageBytes = 1u << 30;
  static constexpr uint64_t kMaxAlignment = 4096;

  // Reads header, sections and symbols; refuses what is not of this machine.
  ElfFile(std::span<const uint8_t> bytes, uint16_t machine, const char* machine_name);

  std::span<const uint8_t> range(uint64_t offset, uint64_t size, const char* what) const;
  template <class T>
  std::vector<T> table(const Elf64_Shdr& s, const char* what) const;
  std::string name_of(const Elf64_Sym& s) const;
  // Contents or zeros in memory. Unwind tables and notes are left out: nothing here unwinds through
  // a kernel.
  static bool is_allocated(const Elf64_Shdr& s);
  bool has_relocations(const Elf64_Shdr& s) const;  // of an allocated section
  // Of an allocated section, as asked for: a power of two, at most kMaxAlignment.
  static uint64_t alignment(const Elf64_Shdr& s, size_t number);

  std::span<const uint8_t> bytes;
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Sym> symbols;
  std::string_view names;  // of symbols

 private:
  void read_symbols();
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

}  // namespace tuff::devices
