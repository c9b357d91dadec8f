#include "base/os_file_mapping.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/os.h"

namespace tuff::os {
namespace {

// One mapping as the handler sees it. Read without a lock: what is read while `version` is odd or
// has changed belongs to no mapping in use.
struct Region {
  std::atomic<uint32_t> version{0};
  std::atomic<uintptr_t> begin{0}, end{0};  // whole pages
  std::atomic<uint64_t> file_offset{0};     // of the first
  std::atomic<std::atomic<uint64_t>*> damaged_at{nullptr};
};

struct Chunk {
  std::array<Region, 256> regions;
  std::atomic<Chunk*> next{nullptr};
};

// Never destroyed, and ready before anything runs: faults come at any time.
constinit Chunk first_chunk;
struct sigaction previous_action;
size_t page_bytes = 0;  // set with the handler

std::mutex& regions_mutex() {
  static std::mutex& m = *std::make_unique<std::mutex>().release();
  return m;
}

// Under regions_mutex().
std::vector<Region*>& free_regions() {
  static std::vector<Region*>& free = []() -> std::vector<Region*>& {
    auto all = std::make_unique<std::vector<Region*>>();
    for (Region& r : first_chunk.regions) all->push_back(&r);
    return *all.release();
  }();
  return free;
}

void write_region(Region& r, uintptr_t begin, uintptr_t end, uint64_t file_offset,
                  std::atomic<uint64_t>* damaged_at) {
  const uint32_t version = r.version.load(std::memory_order_relaxed);
  r.version.store(version + 1);
  r.begin.store(begin);
  r.end.store(end);
  r.file_offset.store(file_offset);
  r.damaged_at.store(damaged_at);
  r.version.store(version + 2);
}

Region* add_region(uintptr_t begin, uintptr_t end, uint64_t file_offset,
                   std::atomic<uint64_t>* damaged_at) {
  std::lock_guard lock(regions_mutex());
  std::vector<Region*>& free = free_regions();
  if (free.empty()) {
    Chunk* last = &first_chunk;
    while (Chunk* next = last->next.load()) last = next;
    Chunk* more = std::make_unique<Chunk>().release();
    for (Region& r : more->regions) free.push_back(&r);
    last->next.store(more);
  }
  Region* r = free.back();
  free.pop_back();
  write_region(*r, begin, end, file_offset, damaged_at);
  return r;
}

void remove_region(Region* r) {
  std::lock_guard lock(regions_mutex());
  write_region(*r, 0, 0, 0, nullptr);
  free_regions().push_back(r);
}

// ---- in the handler: system calls and atomics alone

void lower(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t before = value.load();
  while (to < before && !value.compare_exchange_weak(before, to)) {}
}

// From the page of `address` to the region's end: of a file that is shorter all of it is gone, and
// a page at a time would take long. False: it is no region's.
bool replace_by_zeros(uintptr_t address, Region& r) {
  const uint32_t version = r.version.load();
  const uintptr_t begin = r.begin.load(), end = r.end.load();
  if (address < begin || address >= end) return false;
  const uint64_t file_offset = r.file_offset.load();
  std::atomic<uint64_t>* damaged_at = r.damaged_at.load();
  if (version % 2 != 0 || r.version.load() != version) return false;
  const uintptr_t page = address / page_bytes * page_bytes;
  lower(*damaged_at, file_offset + (page - begin));
  // The library's function is no function of handlers, and sanitizers take it for a write.
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return uintptr_t(::syscall(SYS_mmap, page, end - page, PROT_READ, kFlags, -1, 0)) == page;
}

bool replace_by_zeros(uintptr_t address) {
  for (Chunk* c = &first_chunk; c; c = c->next.load())
    for (Region& r : c->regions)
      if (replace_by_zeros(address, r)) return true;
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = previous_action;
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  const bool sent = info->si_code <= 0;  // by a process, and not by a fault
  if (before.sa_handler == SIG_IGN && sent) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  // The process ends as it would have without us: a fault is repeated, a sent signal sent again.
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  if (sent) ::raise(signal);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool ours =
      info->si_code == BUS_ADRERR && replace_by_zeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = error;
  if (!ours) pass_on(signal, info, context);
}

void install_handler() {
  page_bytes = page_size();
  TUFF_CHECK(::sigaction(SIGBUS, nullptr, &previous_action) == 0, "sigaction");
  struct sigaction action = {};
  action.sa_sigaction = &on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  action.sa_mask = previous_action.sa_mask;
  TUFF_CHECK(::sigaction(SIGBUS, &action, nullptr) == 0, "sigaction");
}

}  // namespace

std::unique_ptr<FileMapping> FileMapping::make(std::shared_ptr<const DataFile> file,
                                               uint64_t offset, uint64_t size_bytes) {
  file->require_range(offset, size_bytes);
  if (size_bytes == 0) return nullptr;
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  const size_t lead = offset % page_bytes;
  const size_t pages = (lead + size_bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* p =
      ::mmap(nullptr, pages, PROT_READ, MAP_PRIVATE, file->descriptor(), off_t(offset - lead));
  if (p == MAP_FAILED) return nullptr;
  return std::make_unique<FileMapping>(
      std::move(file), std::span(static_cast<std::byte*>(p), pages), lead, offset - lead);
}

FileMapping::FileMapping(std::shared_ptr<const DataFile> file, std::span<std::byte> pages,
                         size_t lead, uint64_t file_offset)
    : file_(std::move(file)), pages_(pages), lead_(lead) {
  const auto begin = reinterpret_cast<uintptr_t>(pages.data());
  region_ = add_region(begin, begin + pages.size(), file_offset, &file_->damaged_at());
}

// Forgotten before the pages go: their next owner may have faults of its own.
FileMapping::~FileMapping() {
  remove_region(static_cast<Region*>(region_));
  ::munmap(pages_.data(), pages_.size());
}

void unblock_bus_errors() noexcept {
  sigset_t bus;
  ::sigemptyset(&bus);
  ::sigaddset(&bus, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
}

}  // namespace tuff::os
