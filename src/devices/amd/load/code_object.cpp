#include "devices/amd/load/code_object.h"

#include <algorithm>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/elf_file.h"

namespace tuff::devices::amd {
namespace {

constexpr uint16_t kMachineAmdgpu = 224;        // EM_AMDGPU
constexpr uint8_t kOsAbiHsa = 64;               // ELFOSABI_AMDGPU_HSA
constexpr uint8_t kFirstAbi = 2, kLastAbi = 4;  // of code object versions 4 to 6
constexpr uint32_t kMachMask = 0xff;            // EF_AMDGPU_MACH
constexpr uint64_t kDescriptorBytes = 64, kEntryAlignment = 256;
constexpr uint64_t kPrefetchBytes = 256;  // instructions are fetched ahead of their end
constexpr uint64_t kMaxGroupBytes = 64 << 10;
// COMPUTE_PGM_RSRC1 and RSRC2.
constexpr uint32_t kPriv = 1u << 20, kLdsSizeShift = 15, kLdsSizeMask = 0x1ff;
constexpr uint16_t kKnownProperties = kPrivateSegmentBuffer | kDispatchPtr | kQueuePtr |
                                      kKernargSegmentPtr | kDispatchId | kFlatScratchInit |
                                      kPrivateSegmentSize | kWave32;

enum RelocationType : uint32_t {
#define AMD_RELOCATION(name, number) name = number,
#include "devices/amd/load/relocations.def"
};


template <class T>
T read(std::span<const uint8_t> from, uint64_t offset) {
  T value;
  std::memcpy(&value, from.data() + offset, sizeof value);
  return value;
}

}  // namespace

// The one-time work of loading.
struct CodeObject::Loader : ElfFile {
  Loader(CodeObject& o, std::span<const uint8_t> b)
      : ElfFile(b, kMachineAmdgpu, "AMDGPU"), object(o), placed(sections.size()) {}
  CodeObject& object;
  std::vector<uint64_t> placed;  // where an allocated section lies in the image

  void load() {
    check_generation();
    place();
    for (const Elf64_Shdr& s : sections)
      if (has_relocations(s)) plan_relocations(s);
    const std::vector<uint8_t> at_zero = object.image(0);
    for (const Elf64_Sym& s : symbols)
      if (ELF64_ST_TYPE(s.st_info) == STT_OBJECT) read_kernel(s, at_zero);
    object.placed_ = std::move(placed);
  }

 private:
  void check_generation() const;
  void place();
  void plan_relocations(const Elf64_Shdr& relocations);
  void plan_relocation(uint64_t section, uint64_t section_bytes, const Elf64_Rela& r);
  void read_kernel(const Elf64_Sym& symbol, std::span<const uint8_t> at_zero);
  void check(const std::string& name, const KernelDescriptor& d) const;
  bool lies_in_image(const Elf64_Sym& s) const;
  const Elf64_Sym* function(const std::string& name) const;
};

void CodeObject::Loader::check_generation() const {
  const uint8_t abi = header.e_ident[EI_ABIVERSION];
  if (header.e_ident[EI_OSABI] != kOsAbiHsa || abi < kFirstAbi || abi > kLastAbi)
    damaged_object("ABI {} version {}; amdhsa (64), versions 2 to 4, is loaded",
                   header.e_ident[EI_OSABI], abi);
  const uint32_t machine = header.e_flags & kMachMask;
  if (machine != object.generation_.elf_machine)
    damaged_object("for machine {:#x}; {} is {:#x}", machine, object.generation_.name,
                   object.generation_.elf_machine);
}

// Code and constants in the order of the file. Data that kernels write would need memory of each
// launch's own, so it is refused.
void CodeObject::Loader::place() {
  uint64_t total = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& s = sections[i];
    if (!is_allocated(s)) continue;
    if (s.sh_type == SHT_NOBITS || (s.sh_flags & (SHF_WRITE | SHF_TLS)))
      damaged_object("section {}: data that is written is not supported", i);
    range(s.sh_offset, s.sh_size, "section");
    placed[i] = align_up(total, alignment(s, i));
    total = placed[i] + s.sh_size;
    if (total > kMaxImageBytes) damaged_object("image of more than {} bytes", kMaxImageBytes);
  }
  object.image_.assign(total + kPrefetchBytes, 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& s = sections[i];
    if (!is_allocated(s) || s.sh_size == 0) continue;
    std::memcpy(object.image_.data() + placed[i], bytes.data() + s.sh_offset, s.sh_size);
  }
}

bool CodeObject::Loader::lies_in_image(const Elf64_Sym& s) const {
  return s.st_shndx != SHN_UNDEF && s.st_shndx < sections.size() &&
         is_allocated(sections[s.st_shndx]) && s.st_value <= sections[s.st_shndx].sh_size &&
         s.st_size <= sections[s.st_shndx].sh_size - s.st_value;
}

void CodeObject::Loader::plan_relocations(const Elf64_Shdr& relocations) {
  const uint64_t section = relocations.sh_info;
  for (const Elf64_Rela& r : table<Elf64_Rela>(relocations, "relocations"))
    plan_relocation(placed[section], sections[section].sh_size, r);
}

void CodeObject::Loader::plan_relocation(uint64_t section, uint64_t section_bytes,
                                         const Elf64_Rela& r) {
  const auto type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
  const uint64_t index = ELF64_R_SYM(r.r_info);
  if (type == NONE) return;
  Relocation out;
  switch (type) {
    case ABS64:
    case REL64: out.width = 8; break;
    case ABS32_HI:
    case REL32_HI: out.shift = 32; break;
    case ABS32:
    case ABS32_LO:
    case REL32:
    case REL32_LO: break;
    default: damaged_object("relocation type {} is not supported", type);
  }
  out.relative = type == REL32 || type == REL64 || type == REL32_LO || type == REL32_HI;
  if (r.r_offset > section_bytes || out.width > section_bytes - r.r_offset)
    damaged_object("relocation at {} of a section of {} bytes", r.r_offset, section_bytes);
  if (index >= symbols.size())
    damaged_object("relocation of symbol {} of {}", index, symbols.size());
  const Elf64_Sym& s = symbols[index];
  out.absolute_target = s.st_shndx == SHN_ABS;
  if (s.st_shndx == SHN_UNDEF)
    damaged_object("undefined symbol '{}'; kernels call no library", name_of(s));
  if (!out.absolute_target && !lies_in_image(s))
    damaged_object("symbol {} lies in section {} at {}, which is not loaded", index, s.st_shndx,
                   s.st_value);
  out.place = section + r.r_offset;
  out.target = s.st_value + static_cast<uint64_t>(r.r_addend) +
               (out.absolute_target ? 0 : placed[s.st_shndx]);
  object.relocations_.push_back(out);
}

const Elf64_Sym* CodeObject::Loader::function(const std::string& name) const {
  for (const Elf64_Sym& s : symbols)
    if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && name_of(s) == name) return &s;
  return nullptr;
}

// A descriptor is the object NAME.kd, where NAME is a function.
void CodeObject::Loader::read_kernel(const Elf64_Sym& symbol, std::span<const uint8_t> at_zero) {
  constexpr std::string_view kSuffix = ".kd";
  std::string name = name_of(symbol);
  if (!name.ends_with(kSuffix)) return;
  name.resize(name.size() - kSuffix.size());
  if (!lies_in_image(symbol) || symbol.st_size != kDescriptorBytes)
    damaged_object("kernel {}: its descriptor of {} bytes is not in the object", name,
                   symbol.st_size);
  KernelDescriptor d;
  d.offset = placed[symbol.st_shndx] + symbol.st_value;
  if (d.offset % kDescriptorBytes != 0)
    damaged_object("kernel {}: its descriptor lies at {}", name, d.offset);
  const auto bytes_of = at_zero.subspan(d.offset, kDescriptorBytes);
  d.group_bytes = read<uint32_t>(bytes_of, 0);
  d.private_bytes = read<uint32_t>(bytes_of, 4);
  d.kernarg_bytes = read<uint32_t>(bytes_of, 8);
  d.entry = d.offset + read<uint64_t>(bytes_of, 16);
  d.rsrc3 = read<uint32_t>(bytes_of, 44);
  d.rsrc1 = read<uint32_t>(bytes_of, 48);
  d.rsrc2 = read<uint32_t>(bytes_of, 52);
  d.properties = read<uint16_t>(bytes_of, 56);
  const auto zeros = [&](uint64_t from, uint64_t to) {
    const auto part = bytes_of.subspan(from, to - from);
    if (std::any_of(part.begin(), part.end(), [](uint8_t b) { return b != 0; }))
      damaged_object("kernel {}: bytes {} to {} of its descriptor are not 0", name, from, to);
  };
  zeros(12, 16);
  zeros(24, 44);
  zeros(58, 64);  // arguments in registers from the start, and what is reserved
  check(name, d);
  object.kernels_.emplace(std::move(name), d);
}

void CodeObject::Loader::check(const std::string& name, const KernelDescriptor& d) const {
  const Elf64_Sym* code = function(name);
  if (code == nullptr || !lies_in_image(*code) ||
      !(sections[code->st_shndx].sh_flags & SHF_EXECINSTR) ||
      placed[code->st_shndx] + code->st_value != d.entry || code->st_size == 0)
    damaged_object("kernel {}: its descriptor enters at {}, which is not its code", name, d.entry);
  if (d.entry % kEntryAlignment != 0) damaged_object("kernel {}: enters at {}", name, d.entry);
  if (d.properties & ~kKnownProperties)
    damaged_object("kernel {}: properties {:#x}, of which {:#x} are not supported", name,
                   d.properties, d.properties & ~kKnownProperties);
  if ((d.properties & kWave32) && !object.generation_.can_wave32)
    damaged_object("kernel {}: waves of 32 lanes, which {} has not", name, object.generation_.name);
  if (d.group_bytes > kMaxGroupBytes)
    damaged_object("kernel {}: {} bytes of workgroup memory; at most {}", name, d.group_bytes,
                   kMaxGroupBytes);
  if (d.rsrc2 >> kLdsSizeShift & kLdsSizeMask)
    damaged_object("kernel {}: register RSRC2 {:#x} has a size of workgroup memory", name, d.rsrc2);
}

CodeObject::CodeObject(std::span<const uint8_t> bytes, const Generation& generation)
    : generation_(generation) {
  Loader(*this, bytes).load();
}

std::vector<uint8_t> CodeObject::image(uint64_t address) const {
  TUFF_CHECK(address % kAlignment == 0, "an image at {:#x}", address);
  std::vector<uint8_t> out = image_;
  for (const Relocation& r : relocations_) {
    uint64_t value = r.target + (r.absolute_target ? 0 : address);
    if (r.relative) value -= address + r.place;
    value >>= r.shift;
    std::memcpy(out.data() + r.place, &value, r.width);
  }
  return out;
}

std::vector<uint8_t> CodeObject::placed_file(std::span<const uint8_t> bytes) const {
  std::vector<uint8_t> out(bytes.begin(), bytes.end());
  const uint64_t table = read<Elf64_Ehdr>(bytes, 0).e_shoff;  // checked by the loader
  for (size_t i = 0; i < placed_.size(); ++i) {
    uint8_t* address = out.data() + table + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_addr);
    std::memcpy(address, &placed_[i], sizeof placed_[i]);
  }
  return out;
}

const KernelDescriptor& CodeObject::descriptor(const std::string& symbol) const {
  const auto it = kernels_.find(symbol);
  if (it == kernels_.end()) fail<CompileError>("object file: no kernel '{}'", symbol);
  return it->second;
}

KernelCode CodeObject::kernel(const std::string& symbol, uint64_t address,
                              const std::array<uint32_t, 3>& local) const {
  const KernelDescriptor& d = descriptor(symbol);
  const uint32_t unit = generation_.lds_granularity_bytes;
  KernelCode out;
  out.entry = address + d.entry;
  out.descriptor = address + d.offset;
  out.rsrc1 = d.rsrc1 | (generation_.rsrc1_priv ? kPriv : 0);
  out.rsrc2 = d.rsrc2 | (d.group_bytes + unit - 1) / unit << kLdsSizeShift;
  out.rsrc3 = d.rsrc3;
  out.properties = d.properties;
  out.private_bytes = d.private_bytes;
  out.group_bytes = d.group_bytes;
  for (size_t i = 0; i < 3; ++i) out.local[i] = static_cast<uint16_t>(local[i]);
  return out;
}

}  // namespace tuff::devices::amd
