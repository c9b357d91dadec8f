#include "devices/nv/load/cubin.h"

#include <algorithm>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/elf_file.h"

namespace tuff::devices::nv {
namespace {

constexpr uint16_t kMachineCuda = 190;  // EM_CUDA
constexpr uint8_t kOsAbiOld = 0x33, kOsAbiNew = 0x41;  // SM in e_flags 7:0; in 15:8
constexpr uint64_t kSectionAlignment = 256;  // of code, and of constant banks as QMDs name them
constexpr uint64_t kPrefetchBytes = 512;     // instructions are fetched ahead of their end
constexpr uint32_t kBarriersShift = 20, kBarriersMask = 0x7f;  // of a code section's flags
// Attributes in .nv.info: a format, then which, then a value or its size.
constexpr uint8_t kSizedValue = 4;
constexpr uint8_t kParameterBank = 0x0a, kMinStackSize = 0x12, kRegisterCount = 0x2f,
                  kBarrierCount = 0x4c;
// Addresses put in: 64 bits; the low or high half into the upper words of an instruction.
constexpr uint32_t kAddress64 = 2, kAddressLow = 0x38, kAddressHigh = 0x39;
constexpr uint64_t kImmediateOffset = 4;

constexpr std::string_view kText = ".text.", kShared = ".nv.shared.", kInfo = ".nv.info",
                           kConstant = ".nv.constant";

template <class T>
T read(std::span<const uint8_t> from, uint64_t offset) {
  if (offset > from.size() || sizeof(T) > from.size() - offset)
    damaged_object("an attribute at {} of {} bytes", offset, from.size());
  T value;
  std::memcpy(&value, from.data() + offset, sizeof value);
  return value;
}

}  // namespace

// The one-time work of loading.
struct Cubin::Loader : ElfFile {
  Loader(Cubin& c, std::span<const uint8_t> b, const Generation& g)
      : ElfFile(b, kMachineCuda, "CUDA", Kinds::Executable),
        cubin(c),
        generation(g),
        placed(sections.size(), kNotPlaced) {
    for (const Elf64_Shdr& s : sections) titles.push_back(name_of(s));
  }

  void load() {
    check_generation();
    place();
    for (size_t i = 0; i < sections.size(); ++i) read_section(i);
    for (size_t i = 0; i < sections.size(); ++i) read_attributes(i);
    for (const Elf64_Shdr& s : sections) plan_relocations(s);
  }

 private:
  static constexpr uint64_t kNotPlaced = ~uint64_t{0};

  void check_generation() const {
    const uint8_t abi = header.e_ident[EI_OSABI];
    if (abi != kOsAbiOld && abi != kOsAbiNew)
      damaged_object("ABI {:#x}; {:#x} and {:#x} are loaded", abi, kOsAbiOld, kOsAbiNew);
    const uint32_t sm = abi == kOsAbiOld ? header.e_flags & 0xff : header.e_flags >> 8 & 0xff;
    if (sm != generation.sm) damaged_object("for sm_{}; the GPU is sm_{}", sm, generation.sm);
  }

  // Bank 0 is made for each launch, and shared memory has no contents.
  bool lies_in_memory(size_t i) const {
    return is_allocated(sections[i]) && sections[i].sh_size > 0 &&
           !titles[i].starts_with(kShared) && !titles[i].starts_with(".nv.constant0.");
  }

  void place() {
    uint64_t total = 0;
    for (size_t i = 0; i < sections.size(); ++i) {
      if (!lies_in_memory(i)) continue;
      const Elf64_Shdr& s = sections[i];
      if (s.sh_type == SHT_NOBITS)
        damaged_object("section {}: variables of a module are not supported", titles[i]);
      range(s.sh_offset, s.sh_size, "section");
      placed[i] = align_up(total, std::max(alignment(s, i), kSectionAlignment));
      total = placed[i] + s.sh_size;
      if (total > kMaxImageBytes) damaged_object("image of more than {} bytes", kMaxImageBytes);
    }
    cubin.image_.assign(total + kPrefetchBytes, 0);
    for (size_t i = 0; i < sections.size(); ++i) {
      if (placed[i] == kNotPlaced) continue;
      std::memcpy(cubin.image_.data() + placed[i], bytes.data() + sections[i].sh_offset,
                  sections[i].sh_size);
    }
  }

  Kernel& kernel(std::string_view name) { return cubin.kernels_[std::string(name)]; }

  void read_section(size_t i) {
    const std::string_view title = titles[i];
    const Elf64_Shdr& s = sections[i];
    if (title.starts_with(kText) && placed[i] != kNotPlaced) {
      KernelCode& code = kernel(title.substr(kText.size())).code;
      code.entry = placed[i];
      code.barriers =
          std::max(code.barriers, uint32_t(s.sh_flags >> kBarriersShift) & kBarriersMask);
    } else if (title.starts_with(kShared)) {
      kernel(title.substr(kShared.size())).code.shared_bytes = uint32_t(s.sh_size);
    } else if (title.starts_with(kConstant) && placed[i] != kNotPlaced) {
      read_bank(i);
    }
  }

  // ".nv.constant2.NAME", or for all kernels of the file ".nv.constant3".
  void read_bank(size_t i) {
    const std::string_view rest = std::string_view(titles[i]).substr(kConstant.size());
    const uint32_t number = rest.empty() ? 0 : uint32_t(rest[0] - '0');
    if (number == 0 || number > 7 || (rest.size() > 1 && rest[1] != '.'))
      damaged_object("section {} is no constant bank that is known", titles[i]);
    const KernelCode::Bank bank{number, uint32_t(sections[i].sh_size), placed[i]};
    if (rest.size() > 2) {
      kernel(rest.substr(2)).code.banks.push_back(bank);
      return;
    }
    for (const std::string& title : titles)
      if (title.starts_with(kText)) kernel(title.substr(kText.size())).code.banks.push_back(bank);
  }

  std::string symbol_name(uint32_t index) const {
    if (index >= symbols.size()) damaged_object("symbol {} of {}", index, symbols.size());
    return name_of(symbols[index]);
  }

  void read_attributes(size_t i) {
    const std::string_view title = titles[i];
    if (!title.starts_with(kInfo)) return;
    const Elf64_Shdr& s = sections[i];
    const std::string own(title.substr(std::min(title.size(), kInfo.size() + 1)));
    const auto from = range(s.sh_offset, s.sh_size, "attributes");
    for (uint64_t at = 0; at < from.size();) {
      const auto format = read<uint8_t>(from, at), which = read<uint8_t>(from, at + 1);
      const auto value = read<uint16_t>(from, at + 2);
      at += 4;
      const uint64_t size = format == kSizedValue ? value : 0;
      if (size > from.size() - at) damaged_object("an attribute of {} bytes", size);
      read_attribute(which, from.subspan(at, size), value, own);
      at += size;
    }
  }

  void read_attribute(uint8_t which, std::span<const uint8_t> data, uint16_t value,
                      const std::string& own) {
    if (which == kRegisterCount || which == kMinStackSize) {
      const std::string name = symbol_name(read<uint32_t>(data, 0));
      if (!cubin.kernels_.contains(name)) return;  // a function that kernels call
      KernelCode& code = kernel(name).code;
      (which == kRegisterCount ? code.registers : code.local_bytes) = read<uint32_t>(data, 4);
    } else if (which == kParameterBank) {
      Kernel& k = kernel(own);
      k.code.parameter_offset = read<uint16_t>(data, 4);
      k.has_parameter = read<uint16_t>(data, 6) >= sizeof(uint64_t);
    } else if (which == kBarrierCount) {
      kernel(own).code.barriers = data.empty() ? value & 0xff : read<uint32_t>(data, 0);
    }
  }

  void plan_relocations(const Elf64_Shdr& s) {
    if (s.sh_type != SHT_REL && s.sh_type != SHT_RELA) return;
    if (s.sh_info >= sections.size())
      damaged_object("relocations of section {} of {}", s.sh_info, sections.size());
    if (placed[s.sh_info] == kNotPlaced) return;
    if (s.sh_type == SHT_RELA) {
      for (const Elf64_Rela& r : table<Elf64_Rela>(s, "relocations")) plan(s.sh_info, r);
      return;
    }
    for (const Elf64_Rel& r : table<Elf64_Rel>(s, "relocations"))
      plan(s.sh_info, {r.r_offset, r.r_info, 0});
  }

  void plan(size_t section, const Elf64_Rela& r) {
    const auto type = uint32_t(ELF64_R_TYPE(r.r_info));
    if (type != kAddress64 && type != kAddressLow && type != kAddressHigh)
      damaged_object("relocation type {} is not supported", type);
    Relocation out;
    out.width = type == kAddress64 ? 8 : 4;
    out.shift = type == kAddressHigh ? 32 : 0;
    const uint64_t at = r.r_offset + (type == kAddress64 ? 0 : kImmediateOffset);
    const uint64_t size = sections[section].sh_size;
    if (r.r_offset > size || at > size || out.width > size - at)
      damaged_object("relocation at {} of a section of {} bytes", r.r_offset, size);
    const uint64_t index = ELF64_R_SYM(r.r_info);
    if (index >= symbols.size())
      damaged_object("relocation of symbol {} of {}", index, symbols.size());
    const Elf64_Sym& symbol = symbols[index];
    if (symbol.st_shndx >= sections.size() || placed[symbol.st_shndx] == kNotPlaced)
      damaged_object("symbol '{}' has no address; kernels call no library", name_of(symbol));
    out.offset = placed[section] + at;
    out.target = placed[symbol.st_shndx] + symbol.st_value + uint64_t(r.r_addend);
    cubin.relocations_.push_back(out);
  }

  Cubin& cubin;
  const Generation& generation;
  std::vector<uint64_t> placed;  // where a section lies in the image
  std::vector<std::string> titles;
};

Cubin::Cubin(std::span<const uint8_t> bytes, const Generation& generation) {
  Loader(*this, bytes, generation).load();
}

std::vector<uint8_t> Cubin::image(uint64_t address) const {
  std::vector<uint8_t> out = image_;
  for (const Relocation& r : relocations_) {
    const uint64_t value = (address + r.target) >> r.shift;
    std::memcpy(out.data() + r.offset, &value, r.width);
  }
  return out;
}

KernelCode Cubin::kernel(const std::string& symbol, uint64_t address,
                         const std::array<uint32_t, 3>& local) const {
  const auto found = kernels_.find(symbol);
  if (found == kernels_.end() || found->second.code.registers == 0)
    damaged_object("no kernel '{}'", symbol);
  if (!found->second.has_parameter)
    damaged_object("kernel '{}' takes no argument block", symbol);
  KernelCode code = found->second.code;
  code.entry += address;
  for (KernelCode::Bank& b : code.banks) b.address += address;
  for (size_t i = 0; i < 3; ++i) code.local[i] = uint16_t(local[i]);
  return code;
}

}  // namespace tuff::devices::nv
