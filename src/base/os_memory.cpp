// os.h: pages, executable memory and shared libraries.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/os.h"

namespace tuff::os {
namespace {

size_t round_to_pages(size_t size_bytes) {
  const size_t page = page_size();
  if (size_bytes > SIZE_MAX - page) fail<OutOfMemory>("cannot map {} bytes", size_bytes);
  return align_up(size_bytes, page);
}

}  // namespace

size_t page_size() { return size_t(::sysconf(_SC_PAGESIZE)); }

void* map_pages(size_t size_bytes) {
  void* p = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  prefer_huge_pages(p, size_bytes);
  return p;
}

void prefer_huge_pages(void* p, size_t size_bytes) noexcept {
  constexpr size_t kHugePage = size_t(2) << 20;
  const size_t page = page_size(), end = size_t(p) + size_bytes;
  const size_t begin = align_up(size_t(p), page);
  if (begin + kHugePage > end) return;
  const int saved = errno;  // a system without them refuses, and nothing is lost
  ::madvise(reinterpret_cast<void*>(begin), (end - begin) / page * page, MADV_HUGEPAGE);
  errno = saved;
}

void unmap_pages(void* p, size_t size_bytes) noexcept {
  if (p) ::munmap(p, size_bytes);
}

ExecutableMemory::ExecutableMemory(size_t size_bytes)
    : size_(round_to_pages(size_bytes ? size_bytes : 1)) {
  data_ = static_cast<std::byte*>(map_pages(size_));
  if (!data_) fail<OutOfMemory>("no {} bytes of memory for machine code", size_);
}

ExecutableMemory::~ExecutableMemory() { unmap_pages(data_, size_); }

void ExecutableMemory::seal() {
  if (::mprotect(data_, size_, PROT_READ | PROT_EXEC) != 0)
    fail<Unsupported>("the system forbids making memory executable: {}", std::strerror(errno));
  auto* begin = reinterpret_cast<char*>(data_);
  __builtin___clear_cache(begin, begin + size_);
}

std::optional<Library> Library::open(std::span<const std::string> names, std::string* why) {
  std::string messages;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle);
    const char* text = ::dlerror();
    if (!messages.empty()) messages += "; ";
    messages += text ? text : name + ": unknown error";
  }
  if (why) *why = messages;
  return std::nullopt;
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

std::string file_of_code(const void* function) {
  Dl_info info{};
  link_map* map = nullptr;
  const bool found = ::dladdr1(function, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  return found && map->l_name[0] ? map->l_name : own_program();  // the program has no name there
}

void* process_symbol(const char* name) { return ::dlsym(RTLD_DEFAULT, name); }

}  // namespace tuff::os
