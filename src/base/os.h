// The OS seam: files, processes, shared libraries, executable memory, time, terminals, futexes.
// POSIX calls stand here and in the drivers only. Called by render (compiler), engine (caches),
// devices and cli. Failures throw IoError naming the path and errno's text.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/os_descriptor.h"

namespace tuff::os {

std::vector<uint8_t> read_file(const std::string& path);
std::string read_text(const std::string& path);
// As os_stream.h's OutputFile: the file is whole or as before, devices are written through.
void write_file(const std::string& path, std::span<const uint8_t> bytes);
void write_text(const std::string& path, const std::string& text);
bool exists(const std::string& path);
bool is_directory(const std::string& path);
std::vector<std::string> list_directory(const std::string& path);  // names, sorted
void make_directories(const std::string& path);
// The right to what `path` stands for, among processes and threads; the file itself stays and is
// empty. It ends with the object or with the process, however that ends.
class FileLock {
 public:
  // Waits at most timeout_ns; nullopt if it was held elsewhere all the while.
  static std::optional<FileLock> acquire(const std::string& path, uint64_t timeout_ns);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

std::string cache_directory();  // TUFF_CACHE_DIR or the user's; not created
std::optional<std::string> find_program(const std::string& name);  // on PATH

struct ProcessResult {
  int exit_code = 0;  // 128+signal if killed
  std::string out, err;
};
using Environment = std::vector<std::pair<std::string, std::string>>;
// A child with its stdin fed and its output collected, without a shell; several may run at once. It
// dies with the thread that started it.
class Process {
 public:
  // `environment` is added to this process's. IoError if the program cannot be started.
  explicit Process(const std::vector<std::string>& argv, std::string stdin_text = {},
                   const Environment& environment = {});
  ~Process();  // kills and reaps if wait() was not called
  Process(Process&&) noexcept;
  // True once the child has closed its output, waiting for that at most timeout_ns.
  bool done_within(uint64_t timeout_ns);
  // While it runs: the next line without its end, waiting at most timeout_ns; none if none came or
  // at_end(). Only the last few thousand characters of standard error are kept then.
  std::optional<std::string> read_line(uint64_t timeout_ns);
  bool at_end() const;  // the child has closed its output and every line has been read
  void kill();
  const ProcessResult& wait();
  std::string error_tail() const;  // the last few thousand characters of its standard error

 private:
  friend class ForkServer;
  struct State;
  Process(std::unique_ptr<State> state, std::string stdin_text);
  std::unique_ptr<State> state_;
};
std::string own_program();            // path of the running executable
std::string signal_name(int signal);  // "SIGSEGV"
// No core file is written when this process crashes: a crash is a result.
void forbid_core_files();

// A shared library opened at run time; never closed before the process ends.
class Library {
 public:
  // First name that loads, or nullopt with the loader's messages in `why`.
  static std::optional<Library> open(std::span<const std::string> names,
                                     std::string* why = nullptr);
  void* symbol(const char* name) const;  // null if absent
 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};
std::string file_of_code(const void* function);  // path of the program or library that has it
void* process_symbol(const char* name);  // dlsym in what is already loaded (libc, libm), or null

// Pages that are first written, then made executable (never both at once).
class ExecutableMemory {
 public:
  explicit ExecutableMemory(size_t size_bytes);
  ~ExecutableMemory();
  ExecutableMemory(const ExecutableMemory&) = delete;
  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_; }
  void seal();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

void* map_pages(size_t size_bytes);  // zeroed anonymous pages; null if there are none left
void unmap_pages(void* p, size_t size_bytes) noexcept;
// A hint, which map_pages gives too: memory that is walked with long steps has fewer misses of the
// CPU's table of pages then.
void prefer_huge_pages(void* p, size_t size_bytes) noexcept;
size_t page_size();

uint64_t monotonic_ns();
uint32_t core_count();       // that this process may use (affinity)
// Whether its threads may use the matrix registers of x86 (AMX), for which a process asks Linux once:
// the registers and instructions for bfloat16.
bool allow_matrix_registers();
std::string cpu_identity();  // model name and ISA features, stable on one machine
uint64_t physical_memory_bytes();
uint64_t cache_bytes(int level);  // of the data cache at level 1 to 3; 0 where it is not known
bool is_terminal(int fd);
uint32_t thread_id();  // as the system numbers it; the main thread has the process's number
bool is_main_thread();
int terminal_width(int fd);

// Sleeps while *word == expected, at most timeout_ns; spurious wake-ups happen.
void futex_wait(const std::atomic<uint32_t>* word, uint32_t expected, uint64_t timeout_ns);
void futex_wake(const std::atomic<uint32_t>* word, int count);
void cpu_relax();  // pause instruction in a spin loop
// From now on the calling thread, when it is woken, does not preempt the one that woke it
// (sched(7): SCHED_BATCH). Does nothing where that is not allowed.
void wake_without_preempting() noexcept;

// SIGINT and SIGTERM set a flag instead of ending the process, from now on. A second one ends it.
void catch_interrupts();
bool interrupted();
// A file that would outgrow ulimit -f is an error of who writes it, instead of the process's end.
void fail_writes_beyond_limits();

}  // namespace tuff::os
