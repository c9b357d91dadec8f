// ScriptedKernel: an os::Kernel that writes down what it is asked, answers with plain memory and
// numbers, counts what is open, and fails the n-th call. Nothing runs on its queues.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/os_kernel.h"

namespace tuff::devices::amd {

class ScriptedKernel final : public os::Kernel {
 public:
  int open(const std::string& path, int flags) override;
  int close(int fd) override;
  int ioctl(int fd, unsigned long request, void* argument) override;
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override;
  int munmap(void* at, size_t size_bytes) override;
  int read_text(const std::string& path, std::string& text) override;
  int list_directory(const std::string& path, std::vector<std::string>& names) override;

  // A node of the topology: its files by their names behind nodes/N/.
  void add_cpu();
  uint32_t add_gpu(const std::string& properties, uint64_t vram_bytes, int heap_type);
  std::map<std::string, std::string> files;

  std::string log() const;  // a line for each call, addresses by the order in which they came
  // What is still open, one line each; the event page is the kernel's.
  std::string leaks() const;
  std::vector<std::string> misuse;  // calls that a kernel would refuse

  uint64_t fail_at = 0;  // the n-th call of open, ioctl or mmap from here on
  int fail_with = 12;    // ENOMEM
  uint64_t calls = 0;
  uint32_t minor_version = 17;
  // Writes it into the next WAIT_EVENTS.
  struct Exception {
    uint32_t gpu_id = 0;
    uint64_t address = 0;
  } exception;

 private:
  struct Object {
    uint64_t size = 0;
    uint32_t flags = 0;
    std::set<uint32_t> gpus;
  };
  bool fails();
  void note(std::string line);
  std::string place(uint64_t address) const;
  int answer_memory(unsigned long request, void* argument);
  int answer_event(unsigned long request, void* argument);
  int answer_queue(unsigned long request, void* argument);

  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::map<int, std::string> fds_;
  std::map<uint64_t, uint64_t> ranges_;  // reserved and mapped: begin, size
  std::map<uint64_t, int> numbers_;      // of buffers by their begin; each gets a new one
  std::map<uint64_t, Object> objects_;   // by handle
  std::set<uint32_t> queues_, events_;
  std::set<uint32_t> vms_;
  uint64_t event_page_ = 0, next_handle_ = 1;
  uint32_t next_queue_ = 0, next_event_ = 1;
  int next_fd_ = 100, next_number_ = 0, nodes_ = 0;
  bool runtime_ = false;
};

// Properties as /sys shows them.
std::string navi31_properties();
std::string mi300x_properties();
std::string phoenix_properties();  // an APU

}  // namespace tuff::devices::amd
