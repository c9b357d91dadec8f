#include "emu/amd/kfd/loaded_code.h"

#include <link.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <set>
#include <string_view>

#include "base/elf_file.h"
#include "emu/kernel/pages.h"

namespace tuff::emu::amd {
namespace {

constexpr uint64_t kMaxObjectBytes = 1u << 28;
constexpr size_t kMaxObjects = 65536;  // a list that goes round ends here
constexpr size_t kMaxUriBytes = 4096;
constexpr uint16_t kMachine = 224;  // EM_AMDGPU

// Where the sections of an unlinked object come to lie: one after the other, as they stand. The
// lists name no addresses of sections, so that this has to be known; linked objects say it.
std::vector<std::optional<uint64_t>> place(const ElfFile& file) {
  std::vector<std::optional<uint64_t>> placed(file.sections.size());
  uint64_t end = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    const Elf64_Shdr& s = file.sections[i];
    if (!ElfFile::is_allocated(s)) continue;
    if (s.sh_size > kMaxObjectBytes || end > kMaxObjectBytes) return {};
    placed[i] = file.is_linked() ? 0 : align_up(end, ElfFile::alignment(s, i));
    end = *placed[i] + s.sh_size;
  }
  return placed;
}

// A kernel is a function that has a descriptor.
std::map<uint64_t, std::string> kernels_of(const ElfFile& file) {
  const auto placed = place(file);
  std::map<uint64_t, std::string> functions;
  std::set<std::string> names;
  for (const Elf64_Sym& symbol : file.symbols) {
    const std::string name = file.name_of(symbol);
    names.insert(name);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx >= placed.size()) continue;
    if (placed[symbol.st_shndx]) functions[*placed[symbol.st_shndx] + symbol.st_value] = name;
  }
  std::erase_if(functions, [&](const auto& f) { return !names.contains(f.second + ".kd"); });
  return functions;
}

template <class T>
bool parse_number(std::string_view& text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(size_t(end - text.data()));
  return true;
}

bool skip(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

bool parse_either_base(std::string_view& text, uint64_t& value) {
  return parse_number(text, value, skip(text, "0x") ? 16 : 10);
}

}  // namespace

std::optional<CodeRange> parse_code_uri(const std::string& uri, uint64_t pid) {
  std::string_view rest = uri;
  CodeRange range;
  uint64_t process = 0;
  if (!skip(rest, "memory://") || !parse_number(rest, process, 10) || process != pid) return {};
  if (!skip(rest, "#offset=") || !parse_either_base(rest, range.address)) return {};
  if (!skip(rest, "&size=") || !parse_either_base(rest, range.size_bytes)) return {};
  if (!rest.empty() || range.size_bytes > kMaxObjectBytes) return {};
  return range;
}

std::map<uint64_t, std::string> kernel_offsets(std::span<const uint8_t> object) {
  try {
    return kernels_of({object, kMachine, "AMDGPU", ElfFile::Kinds::RelocatableAndLinked});
  } catch (const CompileError&) {
    return {};
  }
}

void LoadedCode::set_list(uint64_t r_debug) {
  std::lock_guard lock(mutex_);
  r_debug_ = r_debug;
}

// Nothing is remembered: addresses of code that was unloaded belong to other code soon.
std::string LoadedCode::kernel_at(uint64_t entry) {
  std::lock_guard lock(mutex_);
  return r_debug_ == 0 ? "" : search(entry);
}

// The object that begins last before the address is the one that could hold it.
std::string LoadedCode::search(uint64_t entry) {
  const auto state = memory_.read<int>(r_debug_ + offsetof(::r_debug, r_state));
  auto next = memory_.read<uint64_t>(r_debug_ + offsetof(::r_debug, r_map));
  if (!state || *state != ::r_debug::RT_CONSISTENT || !next) return "";
  std::optional<link_map> nearest;
  for (size_t count = 0; *next != 0 && count < kMaxObjects; ++count) {
    const auto object = memory_.read<link_map>(*next);
    if (!object) return "";
    if (object->l_addr <= entry && (!nearest || object->l_addr > nearest->l_addr)) nearest = object;
    next = reinterpret_cast<uint64_t>(object->l_next);
  }
  if (!nearest) return "";
  const auto uri = memory_.read_text(reinterpret_cast<uint64_t>(nearest->l_name), kMaxUriBytes);
  const auto range = uri ? parse_code_uri(*uri, uint64_t(getpid())) : std::nullopt;
  return range ? search_object(*range, entry - nearest->l_addr) : "";
}

std::string LoadedCode::search_object(const CodeRange& range, uint64_t offset) {
  std::vector<uint8_t> bytes(range.size_bytes);
  if (!memory_.read(range.address, bytes.data(), bytes.size())) return "";
  const auto kernels = kernel_offsets(bytes);
  const auto kernel = kernels.find(offset);
  return kernel == kernels.end() ? "" : kernel->second;
}

}  // namespace tuff::emu::amd
