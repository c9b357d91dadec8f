#include "devices/elf_object.h"

#include <cstring>
#include <optional>

#include "base/arith.h"
#include "base/check.h"
#include "base/elf_file.h"

namespace tuff::devices {
namespace {

constexpr size_t kPltStubBytes = 8;  // jmp *offset(%rip), padded
constexpr size_t kGotSlotBytes = 8;


bool is_got_load(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

}  // namespace

// The one-time work of loading; everything it points to is the input's or the object's.
struct ElfObject::Loader : ElfFile {
  Loader(ElfObject& o, std::span<const uint8_t> b) : ElfFile(b, EM_X86_64, "x86-64"), object(o) {}
  ElfObject& object;
  std::vector<std::byte*> placed;                   // where a section lies in this process, or null
  std::vector<uint64_t> offsets;                    // and its offset in code or data memory
  std::vector<std::optional<uint32_t>> linkage_of;  // symbol -> index of its GOT slot and PLT stub
  std::vector<uint32_t> linkage;                    // index -> symbol
  uint64_t code_bytes = 0, data_bytes = 0, got_offset = 0, plt_offset = 0;

  void load();

 private:
  void plan_sections();
  void plan_linkage();
  void place();
  void fill_linkage();
  uint64_t address_of(uint32_t symbol) const;
  void relocate(const Elf64_Shdr& relocations);
  void apply(std::byte* section, uint64_t section_bytes, const Elf64_Rela& r);
  void collect_functions();
};

void ElfObject::Loader::plan_sections() {
  offsets.assign(sections.size(), 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& s = sections[i];
    if (!is_allocated(s)) continue;
    const uint64_t align = alignment(s, i);
    if (s.sh_size > kMaxImageBytes) damaged_object("section {}: {} bytes", i, s.sh_size);
    if (s.sh_flags & SHF_TLS) damaged_object("section {}: thread-local data is not supported", i);
    if (s.sh_type != SHT_NOBITS) range(s.sh_offset, s.sh_size, "section");
    uint64_t& total = (s.sh_flags & SHF_WRITE) ? data_bytes : code_bytes;
    offsets[i] = align_up(total, align);
    total = offsets[i] + s.sh_size;
    if (total > kMaxImageBytes) damaged_object("image of more than {} bytes", kMaxImageBytes);
  }
}

// Every symbol that is reached through a GOT slot, or that is undefined and may be far away, gets a
// slot and a stub near the code.
void ElfObject::Loader::plan_linkage() {
  for (const Elf64_Shdr& s : sections) {
    if (!has_relocations(s)) continue;
    for (const Elf64_Rela& r : table<Elf64_Rela>(s, "relocations")) {
      uint64_t index = ELF64_R_SYM(r.r_info);
      if (index >= symbols.size())
        damaged_object("relocation of symbol {} of {}", index, symbols.size());
      bool far = index != 0 && symbols[index].st_shndx == SHN_UNDEF;
      if ((!far && !is_got_load(ELF64_R_TYPE(r.r_info))) || linkage_of[index]) continue;
      linkage_of[index] = static_cast<uint32_t>(linkage.size());
      linkage.push_back(static_cast<uint32_t>(index));
    }
  }
  got_offset = align_up(code_bytes, 16);
  plt_offset = got_offset + linkage.size() * kGotSlotBytes;
  code_bytes = plt_offset + linkage.size() * kPltStubBytes;
}

void ElfObject::Loader::place() {
  object.code_ = std::make_unique<os::ExecutableMemory>(std::max<uint64_t>(code_bytes, 1));
  if (data_bytes > 0) {
    object.data_bytes_ = align_up(data_bytes, kMaxAlignment);
    object.data_ = static_cast<std::byte*>(os::map_pages(object.data_bytes_));
    if (object.data_ == nullptr) fail<OutOfMemory>("no {} bytes for a kernel's data", data_bytes);
  }
  placed.assign(sections.size(), nullptr);
  for (size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& s = sections[i];
    if (!is_allocated(s)) continue;
    placed[i] = ((s.sh_flags & SHF_WRITE) ? object.data_ : object.code_->data()) + offsets[i];
    if (s.sh_type == SHT_NOBITS || s.sh_size == 0) continue;
    std::memcpy(placed[i], range(s.sh_offset, s.sh_size, "section").data(), s.sh_size);
  }
}

uint64_t ElfObject::Loader::address_of(uint32_t index) const {
  const Elf64_Sym& s = symbols[index];
  if (index == 0) return 0;
  if (s.st_shndx == SHN_ABS) return s.st_value;
  if (s.st_shndx == SHN_UNDEF) {
    std::string name = name_of(s);
    void* found = os::process_symbol(name.c_str());
    if (found == nullptr)
      fail<CompileError>("object file: undefined symbol '{}' is in no loaded library", name);
    return reinterpret_cast<uint64_t>(found);
  }
  if (s.st_shndx >= sections.size() || placed[s.st_shndx] == nullptr)
    damaged_object("symbol {} lies in section {}, which is not loaded", index, s.st_shndx);
  if (s.st_value > sections[s.st_shndx].sh_size)
    damaged_object("symbol {} at {} of a section of {} bytes", index, s.st_value,
                   sections[s.st_shndx].sh_size);
  return reinterpret_cast<uint64_t>(placed[s.st_shndx]) + s.st_value;
}

void ElfObject::Loader::fill_linkage() {
  std::byte* code = object.code_->data();
  for (size_t i = 0; i < linkage.size(); ++i) {
    std::byte* slot = code + got_offset + i * kGotSlotBytes;
    std::byte* stub = code + plt_offset + i * kPltStubBytes;
    uint64_t target = address_of(linkage[i]);
    std::memcpy(slot, &target, 8);
    uint8_t jump[kPltStubBytes] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};
    auto distance = static_cast<int32_t>(slot - (stub + 6));
    std::memcpy(jump + 2, &distance, 4);
    std::memcpy(stub, jump, sizeof jump);
  }
}

void ElfObject::Loader::apply(std::byte* section, uint64_t section_bytes, const Elf64_Rela& r) {
  auto type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
  auto index = static_cast<uint32_t>(ELF64_R_SYM(r.r_info));
  if (type == R_X86_64_NONE) return;
  uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
  if (r.r_offset > section_bytes || width > section_bytes - r.r_offset)
    damaged_object("relocation at {} of a section of {} bytes", r.r_offset, section_bytes);
  std::byte* where = section + r.r_offset;
  const bool linked = linkage_of[index].has_value(),
             undefined = symbols[index].st_shndx == SHN_UNDEF;
  uint64_t target;
  // NOLINTBEGIN(bugprone-unchecked-optional-access): the pass over all relocations that sized the
  // tables gave every GOT load its slot.
  if (is_got_load(type)) {
    target = reinterpret_cast<uint64_t>(object.code_->data()) + got_offset +
             *linkage_of[index] * kGotSlotBytes;
  } else if (linked && undefined && (type == R_X86_64_PLT32 || type == R_X86_64_PC32)) {
    target = reinterpret_cast<uint64_t>(object.code_->data()) + plt_offset +
             *linkage_of[index] * kPltStubBytes;
  } else {
    target = address_of(index);
  }
  // NOLINTEND(bugprone-unchecked-optional-access)
  uint64_t value = target + static_cast<uint64_t>(r.r_addend);
  switch (type) {
    case R_X86_64_64: break;
    case R_X86_64_PC64:
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: value -= reinterpret_cast<uint64_t>(where); break;
    case R_X86_64_32:
    case R_X86_64_32S: break;
    default: damaged_object("relocation type {} is not supported", type);
  }
  auto as_signed = static_cast<int64_t>(value);
  bool fits =
      width == 8 || (type == R_X86_64_32 ? value <= UINT32_MAX
                                         : as_signed >= INT32_MIN && as_signed <= INT32_MAX);
  if (!fits)
    damaged_object("relocation type {} at {} overflows; compile with -fPIC", type, r.r_offset);
  std::memcpy(where, &value, width);
}

void ElfObject::Loader::relocate(const Elf64_Shdr& relocations) {
  const Elf64_Shdr& section = sections[relocations.sh_info];
  if (section.sh_type == SHT_NOBITS) damaged_object("relocations of a section without contents");
  for (const Elf64_Rela& r : table<Elf64_Rela>(relocations, "relocations"))
    apply(placed[relocations.sh_info], section.sh_size, r);
}

void ElfObject::Loader::collect_functions() {
  for (uint32_t i = 1; i < symbols.size(); ++i) {
    const Elf64_Sym& s = symbols[i];
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || ELF64_ST_BIND(s.st_info) == STB_LOCAL) continue;
    if (s.st_shndx == SHN_UNDEF) continue;
    if (s.st_shndx >= sections.size() || !(sections[s.st_shndx].sh_flags & SHF_EXECINSTR)) continue;
    if (s.st_value >= sections[s.st_shndx].sh_size)
      damaged_object("function at {} outside its section", s.st_value);
    object.functions_.emplace(name_of(s), reinterpret_cast<const void*>(address_of(i)));
  }
}

void ElfObject::Loader::load() {
  linkage_of.resize(symbols.size());
  plan_sections();
  plan_linkage();
  place();
  fill_linkage();
  for (const Elf64_Shdr& s : sections)
    if (has_relocations(s)) relocate(s);
  collect_functions();
  object.code_->seal();
}

ElfObject::ElfObject(std::span<const uint8_t> bytes) {
  try {
    Loader(*this, bytes).load();
  } catch (...) {
    if (data_ != nullptr) os::unmap_pages(data_, data_bytes_);
    throw;
  }
}

ElfObject::~ElfObject() {
  if (data_ != nullptr) os::unmap_pages(data_, data_bytes_);
}

const void* ElfObject::function(const std::string& symbol) const {
  auto it = functions_.find(symbol);
  if (it == functions_.end()) fail<CompileError>("object file: no function '{}'", symbol);
  return it->second;
}

}  // namespace tuff::devices
