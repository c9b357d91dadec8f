#include "aco/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::aco {
namespace {

struct Machine {
  std::string_view processor;
  uint32_t number;  // EF_AMDGPU_MACH
};
// RDNA3 alone: there it is known where a shader finds its inputs. Source: LLVM AMDGPUUsage.
constexpr Machine kMachines[] = {{"gfx1100", 0x41}, {"gfx1101", 0x46}, {"gfx1102", 0x47},
                                 {"gfx1103", 0x44}, {"gfx1150", 0x43}, {"gfx1151", 0x4a}};

constexpr uint16_t kMachineAmdgpu = 224;  // EM_AMDGPU
constexpr uint8_t kOsAbiHsa = 64, kAbiVersion = 4 - 2;  // code object version 4
constexpr uint32_t kRel64 = 5;                          // R_AMDGPU_REL64
constexpr uint32_t kNoteMetadata = 32;                  // NT_AMDGPU_METADATA
constexpr uint64_t kCodeAlignment = 256, kDescriptorBytes = 64, kEntryField = 16;

// A kernel gets its argument block's address in s[0:1], then those workgroup ids that it uses; local
// ids come packed in v0.
constexpr uint32_t kUserSgprs = 2;
constexpr uint16_t kKernargPtr = 1 << 3, kWave32 = 1 << 10;
constexpr uint32_t kVgprGranule = 8;

// RADV's compute shaders on RDNA3 find the same two registers later: s[0:1] are its own, for scratch
// memory, and the one push constant follows.
std::vector<uint32_t> code_of(const CompiledKernel& kernel) {
  if (kernel.registers) return kernel.shader.code;
  constexpr uint32_t kMoved = 2, kMove32 = 0xbe800000, kMove64 = 0xbe800100;
  const auto move = [](uint32_t operation, uint32_t from) {
    return operation | (from + kMoved) << 16 | from;
  };
  std::vector<uint32_t> code;
  const auto ids = uint32_t(std::ranges::count(kernel.interface.uses_workgroup_id, true)) +
                   kernel.interface.uses_group_info;
  for (uint32_t from = kUserSgprs + ids; from-- > kUserSgprs;)  // the last first
    code.push_back(move(kMove32, from));
  code.push_back(move(kMove64, 0));
  code.insert(code.end(), kernel.shader.code.begin(), kernel.shader.code.end());
  return code;
}

// RADV gives compute shaders both CUs of a WGP (radv_shader.c, radv_should_use_wgp_mode).
uint32_t rsrc1_of(const CompiledKernel& kernel) {
  constexpr uint32_t kDenormals32 = 3u << 16, kDenormals16And64 = 3u << 18, kDx10Clamp = 1u << 21,
                     kWgpMode = 1u << 29, kMemoryOrdered = 1u << 30;
  const uint32_t vgprs = uint32_t(std::max<uint64_t>(kernel.shader.statistic("VGPRs"), 1));
  return (ceil_div(vgprs, kVgprGranule) - 1) | kDenormals16And64 | kDx10Clamp | kMemoryOrdered |
         (kernel.interface.preserves_f32_denormals ? kDenormals32 : 0) |
         (kernel.registers ? kWgpMode : 0);
}

uint32_t rsrc2_of(const CompiledKernel& kernel) {
  constexpr uint32_t kScratch = 1, kUserSgprShift = 1, kGroupIdShift = 7, kGroupInfo = 1u << 10,
                     kLocalIdShift = 11;
  const auto& registers = kernel.registers;
  const uint32_t user = registers ? uint32_t(registers->user.size()) : kUserSgprs;
  const auto& ids = registers ? registers->workgroup_id : kernel.interface.uses_workgroup_id;
  uint32_t out = user << kUserSgprShift | 2u << kLocalIdShift;
  for (uint32_t axis = 0; axis < 3; ++axis)
    if (ids[axis]) out |= 1u << (kGroupIdShift + axis);
  if (registers ? registers->group_info : kernel.interface.uses_group_info) out |= kGroupInfo;
  return out | (kernel.shader.statistic("Scratch size") ? kScratch : 0);
}

std::vector<uint8_t> descriptor(const CompiledKernel& kernel) {
  const CompiledShader& shader = kernel.shader;
  std::vector<uint8_t> out(kDescriptorBytes);
  const auto put = [&](size_t at, auto value) { std::memcpy(&out[at], &value, sizeof value); };
  put(0, uint32_t(shader.statistic("LDS size")));
  put(4, uint32_t(shader.statistic("Scratch size")));
  put(48, rsrc1_of(kernel));
  put(52, rsrc2_of(kernel));
  put(56, uint16_t((kernel.registers ? 0 : kKernargPtr) | kWave32));
  return out;
}

// What tools show of a kernel: its registers in the metadata's own keys, and the driver's
// statistics by their names.
nlohmann::json metadata_of(const CompiledKernel& kernel) {
  const auto statistic = [&](const char* name) {
    const auto it = kernel.shader.statistics.find(name);
    return it == kernel.shader.statistics.end() ? 0 : it->second;
  };
  const auto& local = kernel.registers ? kernel.registers->local : kernel.interface.local;
  nlohmann::json row = {
          {".name", kernel.symbol},
          {".symbol", kernel.symbol + ".kd"},
          {".kind", "normal"},
          {".reqd_workgroup_size", local},
          {".max_flat_workgroup_size", local[0] * local[1] * local[2]},
          {".kernarg_segment_size", 0},
          {".kernarg_segment_align", 8},
          {".wavefront_size", 32},
          {".vgpr_count", statistic("VGPRs")},
          {".sgpr_count", statistic("SGPRs")},
          {".vgpr_spill_count", statistic("Spilled VGPRs")},
          {".sgpr_spill_count", statistic("Spilled SGPRs")},
          {".group_segment_fixed_size", statistic("LDS size")},
          {".private_segment_fixed_size", statistic("Scratch size")},
          {".radv_statistics", kernel.shader.statistics}};
  if (kernel.registers) row[".user_sgprs"] = kernel.registers->user;
  return row;
}

std::vector<uint8_t> metadata_note(std::span<const CompiledKernel> kernels,
                                   const std::string& processor) {
  auto rows = nlohmann::json::array();
  for (const CompiledKernel& kernel : kernels) rows.push_back(metadata_of(kernel));
  const std::vector<uint8_t> text =
      nlohmann::json::to_msgpack({{"amdhsa.version", {1, 1}},
                                  {"amdhsa.target", "amdgcn-amd-amdhsa--" + processor},
                                  {"amdhsa.kernels", rows}});
  constexpr std::string_view kOwner("AMDGPU", 7);
  const Elf64_Nhdr header{uint32_t(kOwner.size()), uint32_t(text.size()), kNoteMetadata};
  std::vector<uint8_t> note(sizeof header);
  std::memcpy(note.data(), &header, sizeof header);
  note.insert(note.end(), kOwner.begin(), kOwner.end());
  note.resize(align_up(note.size(), size_t{4}));
  note.insert(note.end(), text.begin(), text.end());
  note.resize(align_up(note.size(), size_t{4}));
  return note;
}

template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& rows) {
  std::vector<uint8_t> out(rows.size() * sizeof(T));
  std::memcpy(out.data(), rows.data(), out.size());
  return out;
}

// A table of names, each of which is told by its place.
struct Names {
  std::string text = std::string(1, '\0');
  uint32_t add(const std::string& name) {
    const auto at = uint32_t(text.size());
    text += name + '\0';
    return at;
  }
  std::vector<uint8_t> bytes() const { return {text.begin(), text.end()}; }
};

class ElfWriter {
 public:
  // Returns the section's number.
  uint16_t add(const std::string& name, Elf64_Shdr header, const std::vector<uint8_t>& bytes) {
    header.sh_name = names_.add(name);
    header.sh_addralign = std::max<uint64_t>(header.sh_addralign, 1);
    file_.resize(align_up(file_.size(), size_t(header.sh_addralign)));
    header.sh_offset = file_.size();
    header.sh_size = bytes.size();
    file_.insert(file_.end(), bytes.begin(), bytes.end());
    headers_.push_back(header);
    return uint16_t(headers_.size() - 1);
  }

  std::vector<uint8_t> finish(uint32_t machine) {
    Elf64_Shdr header{};
    header.sh_type = SHT_STRTAB;
    const uint16_t names = add(".shstrtab", header, {});
    const std::vector<uint8_t> text = names_.bytes();
    headers_[names].sh_size = text.size();
    file_.insert(file_.end(), text.begin(), text.end());
    file_.resize(align_up(file_.size(), size_t{8}));
    Elf64_Ehdr e{};
    std::memcpy(e.e_ident, ELFMAG, SELFMAG);
    e.e_ident[EI_CLASS] = ELFCLASS64;
    e.e_ident[EI_DATA] = ELFDATA2LSB;
    e.e_ident[EI_VERSION] = EV_CURRENT;
    e.e_ident[EI_OSABI] = kOsAbiHsa;
    e.e_ident[EI_ABIVERSION] = kAbiVersion;
    e.e_type = ET_REL;
    e.e_machine = kMachineAmdgpu;
    e.e_version = EV_CURRENT;
    e.e_flags = machine;
    e.e_ehsize = sizeof e;
    e.e_shoff = file_.size();
    e.e_shentsize = sizeof(Elf64_Shdr);
    e.e_shnum = uint16_t(headers_.size());
    e.e_shstrndx = names;
    std::memcpy(file_.data(), &e, sizeof e);
    const std::vector<uint8_t> table = bytes_of(headers_);
    file_.insert(file_.end(), table.begin(), table.end());
    return std::move(file_);
  }

 private:
  std::vector<uint8_t> file_ = std::vector<uint8_t>(sizeof(Elf64_Ehdr));
  std::vector<Elf64_Shdr> headers_ = std::vector<Elf64_Shdr>(1);
  Names names_;
};

Elf64_Shdr section(uint32_t type, uint64_t flags, uint64_t alignment, uint64_t entry_bytes = 0) {
  Elf64_Shdr out{};
  out.sh_type = type;
  out.sh_flags = flags;
  out.sh_addralign = alignment;
  out.sh_entsize = entry_bytes;
  return out;
}

Elf64_Sym global(uint32_t name, uint8_t type, uint16_t section_number, uint64_t value,
                 uint64_t size) {
  Elf64_Sym out{};
  out.st_name = name;
  out.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
  out.st_other = STV_PROTECTED;
  out.st_shndx = section_number;
  out.st_value = value;
  out.st_size = size;
  return out;
}

void append(std::vector<uint8_t>& to, const std::vector<uint8_t>& bytes, uint64_t alignment) {
  to.resize(align_up(to.size(), size_t(alignment)));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

uint32_t machine_of(const std::string& processor) {
  std::string known;
  for (const Machine& m : kMachines) {
    if (m.processor == processor) return m.number;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", m.processor);
  }
  fail<Unsupported>("no code objects are written for '{}'; there are {}", processor, known);
}

std::vector<uint8_t> code_object(std::span<const CompiledKernel> kernels,
                                 const std::string& processor) {
  constexpr uint16_t kText = 1, kRodata = 2;
  Names names;
  std::vector<uint8_t> text, rodata;
  std::vector<Elf64_Sym> symbols(1);
  std::vector<Elf64_Rela> relocations;
  for (const CompiledKernel& kernel : kernels) {
    const std::vector<uint8_t> code = bytes_of(code_of(kernel));
    append(text, code, kCodeAlignment);
    append(rodata, descriptor(kernel), kDescriptorBytes);
    const uint64_t place = rodata.size() - kDescriptorBytes;
    // The entry is told from the descriptor's beginning, a relocation from its own place.
    relocations.push_back({place + kEntryField, ELF64_R_INFO(symbols.size(), kRel64),
                           int64_t(kEntryField)});
    symbols.push_back(global(names.add(kernel.symbol), STT_FUNC, kText, text.size() - code.size(),
                             code.size()));
    symbols.push_back(
        global(names.add(kernel.symbol + ".kd"), STT_OBJECT, kRodata, place, kDescriptorBytes));
  }

  ElfWriter elf;
  elf.add(".text", section(SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kCodeAlignment), text);
  elf.add(".rodata", section(SHT_PROGBITS, SHF_ALLOC, kDescriptorBytes), rodata);
  elf.add(".note", section(SHT_NOTE, 0, 4), metadata_note(kernels, processor));
  const uint16_t name_table = elf.add(".strtab", section(SHT_STRTAB, 0, 1), names.bytes());
  Elf64_Shdr symbol_table = section(SHT_SYMTAB, 0, 8, sizeof(Elf64_Sym));
  symbol_table.sh_link = name_table;
  symbol_table.sh_info = 1;  // the first that is not local
  const uint16_t symbol_section = elf.add(".symtab", symbol_table, bytes_of(symbols));
  Elf64_Shdr relocation_table = section(SHT_RELA, SHF_INFO_LINK, 8, sizeof(Elf64_Rela));
  relocation_table.sh_link = symbol_section;
  relocation_table.sh_info = kRodata;
  elf.add(".rela.rodata", relocation_table, bytes_of(relocations));
  return elf.finish(machine_of(processor));
}

}  // namespace tuff::aco
