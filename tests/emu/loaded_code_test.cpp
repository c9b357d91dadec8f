// Names of kernels from the list of loaded code that a driver shows to debuggers, whole and
// damaged.
#include "emu/amd/kfd/loaded_code.h"

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/split_mix.h"

namespace tuff::emu::amd {
namespace {

// A code object with the sections .note (not loaded), .rodata (64 bytes) and .text, and two
// functions of which the first is a kernel.
std::vector<uint8_t> code_object(bool linked) {
  const std::string names = std::string("\0scale\0scale.kd\0inner\0", 22);
  const auto section = [](uint32_t type, uint64_t flags, uint64_t offset, uint64_t size,
                          uint64_t alignment) {
    Elf64_Shdr s{};
    s.sh_type = type;
    s.sh_flags = flags;
    s.sh_offset = offset;
    s.sh_size = size;
    s.sh_addralign = alignment;
    if (type == SHT_SYMTAB) s.sh_entsize = sizeof(Elf64_Sym);
    return s;
  };
  std::vector<Elf64_Shdr> sections = {{},
                                      section(SHT_NOTE, SHF_ALLOC, 64, 40, 4),
                                      section(SHT_PROGBITS, SHF_ALLOC, 64, 64, 64),
                                      section(SHT_PROGBITS, SHF_ALLOC, 64, 600, 256),
                                      section(SHT_SYMTAB, 0, 64, 4 * sizeof(Elf64_Sym), 8),
                                      section(SHT_STRTAB, 0, 0, names.size(), 1)};
  const uint64_t base = linked ? 0x1000 : 0;  // symbols are relative to a section, or absolute
  std::vector<Elf64_Sym> symbols(4);
  symbols[1] = {1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 3, base + 0x100, 8};
  symbols[2] = {7, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 2, 0, 64};
  symbols[3] = {16, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 3, base, 8};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_type = linked ? ET_DYN : ET_REL;
  header.e_machine = 224;
  header.e_shnum = uint16_t(sections.size());
  sections[4].sh_link = 5;
  sections[4].sh_offset = 64 + 600;
  sections[5].sh_offset = sections[4].sh_offset + sections[4].sh_size;
  header.e_shoff = sections[5].sh_offset + names.size();
  std::vector<uint8_t> bytes(header.e_shoff + sections.size() * sizeof(Elf64_Shdr));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sections[4].sh_offset, symbols.data(), sections[4].sh_size);
  std::memcpy(bytes.data() + sections[5].sh_offset, names.data(), names.size());
  std::memcpy(bytes.data() + header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return bytes;
}

TEST(LoadedCode, KernelsAreWhatHasADescriptor) {
  // .rodata lies at 0, .text at 256.
  EXPECT_EQ(kernel_offsets(code_object(false)),
            (std::map<uint64_t, std::string>{{256 + 0x100, "scale"}}));
  EXPECT_EQ(kernel_offsets(code_object(true)),
            (std::map<uint64_t, std::string>{{0x1100, "scale"}}));
}

TEST(LoadedCode, DamagedObjectsNameNothingOrSomething) {
  const auto whole = code_object(false);
  for (size_t size = 0; size < whole.size(); ++size)
    (void)kernel_offsets(std::span(whole).first(size));
  SplitMix64 draw(7);
  for (int i = 0; i < 20000; ++i) {
    auto damaged = whole;
    for (int k = 0; k < 3; ++k) damaged[draw.below(damaged.size())] = uint8_t(draw.next());
    (void)kernel_offsets(damaged);
  }
}

TEST(LoadedCode, NamesOfPlacesAreChecked) {
  const auto range = parse_code_uri("memory://12#offset=0x7f00&size=300", 12);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->address, 0x7f00u);
  EXPECT_EQ(range->size_bytes, 300u);
  for (const char* wrong :
       {"", "memory://", "memory://13#offset=0x7f00&size=300", "memory://12#offset=0x7f00",
        "memory://12#offset=&size=300", "memory://12#offset=0x7f00&size=300x",
        "memory://12#size=300&offset=0x7f00", "file:///tmp/x#offset=1&size=2",
        "memory://12#offset=0x7f00&size=0xffffffffffff", "memory://12#offset=0x&size=3"})
    EXPECT_FALSE(parse_code_uri(wrong, 12)) << wrong;
}

// A list of two objects, as a driver keeps it.
struct List {
  List() : first(code_object(false)), second(code_object(true)) {
    names[0] = uri(first);
    names[1] = uri(second);
    for (int i : {0, 1}) maps[i].l_name = names[i].data();
    maps[0].l_addr = 0x10000;
    maps[1].l_addr = 0x20000;
    maps[0].l_next = &maps[1];
    maps[1].l_prev = &maps[0];
    debug.r_version = 1;
    debug.r_map = &maps[0];
    debug.r_state = r_debug::RT_CONSISTENT;
    code.set_list(reinterpret_cast<uint64_t>(&debug));
  }
  static std::string uri(const std::vector<uint8_t>& bytes) {
    return fmt::format("memory://{}#offset={:#x}&size={}", getpid(),
                       reinterpret_cast<uint64_t>(bytes.data()), bytes.size());
  }
  static constexpr uint64_t kFirst = 0x10000 + 512, kSecond = 0x20000 + 0x1100;
  std::vector<uint8_t> first, second;
  std::string names[2];
  link_map maps[2] = {};
  r_debug debug{};
  UserMemory memory;
  LoadedCode code{memory};
};

TEST(LoadedCode, KernelsAreFoundWhereTheyBegin) {
  List list;
  EXPECT_EQ(list.code.kernel_at(List::kFirst), "scale");
  EXPECT_EQ(list.code.kernel_at(List::kSecond), "scale");
  EXPECT_EQ(list.code.kernel_at(List::kFirst + 4), "");
  EXPECT_EQ(list.code.kernel_at(0), "");
  EXPECT_EQ(list.code.kernel_at(~uint64_t(0)), "");
  // What is unloaded is not known any more.
  list.debug.r_map = &list.maps[1];
  EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
  list.code.set_list(0);
  EXPECT_EQ(list.code.kernel_at(List::kSecond), "");
}

TEST(LoadedCode, AListInTheMiddleOfAChangeIsNotRead) {
  List list;
  list.debug.r_state = r_debug::RT_ADD;
  EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
}

TEST(LoadedCode, DamagedListsNameNothing) {
  const auto nowhere = [](auto*& pointer) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(uintptr_t(24));
  };
  {
    List list;
    list.code.set_list(24);
    EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
  }
  {
    List list;
    nowhere(list.debug.r_map);
    EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
  }
  {
    List list;
    nowhere(list.maps[1].l_next);
    EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
  }
  {
    List list;
    list.maps[1].l_next = &list.maps[0];  // goes round
    EXPECT_EQ(list.code.kernel_at(List::kFirst), "scale");
  }
  {
    List list;
    nowhere(list.maps[0].l_name);
    EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
  }
  {
    List list;
    list.names[0] = fmt::format("memory://{}#offset=0x18&size=400", getpid());
    list.maps[0].l_name = list.names[0].data();
    EXPECT_EQ(list.code.kernel_at(List::kFirst), "");
  }
}

// A name whose end lies in a page that is not there.
TEST(LoadedCode, ANameWithoutAnEndIsNone) {
  void* pages = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::mprotect(static_cast<std::byte*>(pages) + 4096, 4096, PROT_NONE);
  const std::string uri = List::uri(code_object(false));
  char* at = static_cast<char*>(pages) + 4096 - uri.size();
  std::memcpy(at, uri.data(), uri.size());
  UserMemory memory;
  const auto address = reinterpret_cast<uint64_t>(at);
  EXPECT_FALSE(memory.read_text(address, 4096));
  EXPECT_FALSE(memory.read_text(address, 10));
  at[uri.size() - 1] = 0;
  EXPECT_EQ(memory.read_text(address, 4096), uri.substr(0, uri.size() - 1));
  ::munmap(pages, 8192);
}

}  // namespace
}  // namespace tuff::emu::amd
