#include "emu/rdna/code_object.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/arith.h"
#include "base/elf_file.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint16_t kMachine = 224;          // EM_AMDGPU
constexpr uint64_t kMaxBytes = 256u << 20;  // of an image
constexpr uint32_t kMetadataNote = 32;      // NT_AMDGPU_METADATA
constexpr char kMetadataOwner[] = "AMDGPU";

enum RelocationType : uint32_t {
#define AMD_RELOCATION(name, number) name = number,
#include "devices/amd/load/relocations.def"
};

}  // namespace

struct CodeObject::Reader : ElfFile {
  Reader(CodeObject& o, std::span<const uint8_t> b)
      : ElfFile(b, kMachine, "AMDGPU", Kinds::RelocatableAndLinked), out(o) {}

  void read() {
    if (is_linked())
      place_segments();
    else
      place_sections();
    // Instructions are fetched by whole lines.
    out.image_.resize(align_up(out.image_.size(), kFetchBytes));
    for (const Elf64_Shdr& s : sections) {
      if (s.sh_type == SHT_RELA && (is_linked() || has_relocations(s))) relocate(s);
    }
    for (const Elf64_Sym& s : symbols) {
      if (const auto offset = offset_of(s)) out.symbols_[name_of(s)] = *offset;
    }
    for (const Elf64_Shdr& s : sections) {
      if (s.sh_type == SHT_NOTE) read_notes(range(s.sh_offset, s.sh_size, "notes"));
    }
  }

 private:
  void put(uint64_t at, uint64_t file_offset, uint64_t file_bytes, uint64_t size_bytes) {
    if (at > kMaxBytes || size_bytes > kMaxBytes - at)
      damaged_object("an image of more than {} bytes", kMaxBytes);
    if (file_bytes > size_bytes) damaged_object("{} bytes in {}", file_bytes, size_bytes);
    const auto from = range(file_offset, file_bytes, "contents");
    out.image_.resize(std::max<uint64_t>(out.image_.size(), at + size_bytes));
    std::ranges::copy(from, out.image_.begin() + ptrdiff_t(at));
  }

  void place_segments() {
    for (const Elf64_Phdr& s : segments()) {
      if (s.p_type != PT_LOAD) continue;
      put(s.p_vaddr, s.p_offset, s.p_filesz, s.p_memsz);
      if (s.p_flags & PF_X) out.code_ = {s.p_vaddr, s.p_memsz};
    }
  }

  void place_sections() {
    placed.resize(sections.size());
    uint64_t next = 0;
    for (size_t k = 0; k < sections.size(); ++k) {
      const Elf64_Shdr& s = sections[k];
      if (!is_allocated(s)) continue;
      const uint64_t align = alignment(s, k), at = align_up(next, align);
      put(at, s.sh_offset, s.sh_type == SHT_NOBITS ? 0 : s.sh_size, s.sh_size);
      placed[k] = at;
      next = at + s.sh_size;
      if (s.sh_flags & SHF_EXECINSTR) out.code_ = {at, s.sh_size};
    }
  }

  // Where a symbol lies in the image; nothing if it lies elsewhere.
  std::optional<uint64_t> offset_of(const Elf64_Sym& s) const {
    if (s.st_shndx == SHN_UNDEF || s.st_shndx >= SHN_LORESERVE) return {};
    uint64_t base = 0, size = out.image_.size();
    if (!is_linked()) {
      if (s.st_shndx >= placed.size() || !placed[s.st_shndx]) return {};
      base = *placed[s.st_shndx];
      size = sections[s.st_shndx].sh_size;
    }
    if (s.st_value > size) return {};
    return base + s.st_value;
  }

  // Owner and contents, each padded to four bytes.
  void read_notes(std::span<const uint8_t> notes) {
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data(), sizeof note);
      const uint64_t owner = sizeof note, contents = owner + align_up<uint64_t>(note.n_namesz, 4);
      const uint64_t end = contents + align_up<uint64_t>(note.n_descsz, 4);
      if (contents + note.n_descsz > notes.size()) damaged_object("a note of {} bytes", end);
      if (note.n_type == kMetadataNote && note.n_namesz == sizeof kMetadataOwner &&
          std::memcmp(notes.data() + owner, kMetadataOwner, sizeof kMetadataOwner) == 0) {
        const auto bytes = notes.subspan(contents, note.n_descsz);
        out.metadata_.assign(bytes.begin(), bytes.end());
      }
      notes = notes.subspan(std::min<uint64_t>(end, notes.size()));
    }
  }

  void relocate(const Elf64_Shdr& relocations) {
    if (relocations.sh_link >= sections.size())
      damaged_object("relocations with symbols of section {}", relocations.sh_link);
    const Elf64_Shdr& link = sections[relocations.sh_link];
    std::vector<Elf64_Sym> linked;
    if (link.sh_type == SHT_SYMTAB || link.sh_type == SHT_DYNSYM)
      linked = table<Elf64_Sym>(link, "symbols of relocations");
    const uint64_t base = is_linked() ? 0 : *placed[relocations.sh_info];
    const uint64_t size = is_linked() ? out.image_.size() : sections[relocations.sh_info].sh_size;
    for (const Elf64_Rela& r : table<Elf64_Rela>(relocations, "relocations")) {
      if (r.r_offset > size) damaged_object("relocation at {} of {}", r.r_offset, size);
      apply(r, base + r.r_offset, base + size, linked);
    }
  }

  uint64_t target(const Elf64_Rela& r, const std::vector<Elf64_Sym>& linked) const {
    const uint64_t addend = uint64_t(r.r_addend) + out.address_;
    if (ELF64_R_TYPE(r.r_info) == RELATIVE64) return addend;
    const uint64_t index = ELF64_R_SYM(r.r_info);
    if (index >= linked.size())
      damaged_object("relocation of symbol {} of {}", index, linked.size());
    const auto offset = offset_of(linked[index]);
    if (!offset) damaged_object("a relocation to symbol {}, which is not defined here", index);
    return *offset + addend;
  }

  void apply(const Elf64_Rela& r, uint64_t where, uint64_t end,
             const std::vector<Elf64_Sym>& linked) {
    const auto type = uint32_t(ELF64_R_TYPE(r.r_info));
    if (type == NONE) return;
    const uint64_t absolute = target(r, linked), relative = absolute - (out.address_ + where);
    const auto store = [&](uint64_t bits, size_t count) {
      if (end - where < count) damaged_object("relocation at {} of {}", where, end);
      std::memcpy(out.image_.data() + where, &bits, count);
    };
    switch (type) {
      case ABS32_LO:
      case ABS32: return store(uint32_t(absolute), 4);
      case ABS32_HI: return store(absolute >> 32, 4);
      case RELATIVE64:
      case ABS64: return store(absolute, 8);
      case REL32:
      case REL32_LO: return store(uint32_t(relative), 4);
      case REL32_HI: return store(relative >> 32, 4);
      case REL64: return store(relative, 8);
      default: damaged_object("relocation type {} is not supported", type);
    }
  }

  CodeObject& out;
  std::vector<std::optional<uint64_t>> placed;  // where a section of a relocatable file lies
};

CodeObject::CodeObject(std::span<const uint8_t> file, uint64_t address) : address_(address) {
  Reader(*this, file).read();
}

std::vector<std::string> CodeObject::kernels() const {
  constexpr std::string_view kSuffix = ".kd";
  std::vector<std::string> names;
  for (const auto& [symbol, offset] : symbols_) {
    if (!symbol.ends_with(kSuffix) || image_.size() - offset < sizeof(Descriptor)) continue;
    names.push_back(symbol.substr(0, symbol.size() - kSuffix.size()));
  }
  return names;
}

Kernel CodeObject::kernel(const std::string& name) const {
  const auto found = symbols_.find(name + ".kd");
  if (found == symbols_.end() || image_.size() - found->second < sizeof(Descriptor)) {
    fail<InvalidArgument>("code object: no kernel '{}'; there are: {}", name,
                          fmt::join(kernels(), " "));
  }
  Kernel kernel;
  kernel.name = name;
  std::memcpy(&kernel.descriptor, image_.data() + found->second, sizeof(Descriptor));
  kernel.entry_address = address_ + found->second + uint64_t(kernel.descriptor.entry_offset);
  return kernel;
}

}  // namespace tuff::emu::rdna
