// Bus: the PCI bus of an emulated machine, as Linux shows it to a driver in user space: functions
// in sysfs, and in VFIO with an IOMMU. An os::Kernel; what is no file of these is the system's.
// Filled by tests, and by machines whose GPUs are reached without a kernel driver. Knows no GPU.
// Never compared with a kernel: what it refuses is what Linux's sources refuse (drivers/vfio/
// vfio_main.c, vfio_iommu_type1.c and pci/vfio_pci_core.c of 6.1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/os_kernel.h"
#include "emu/kernel/finding.h"

namespace tuff::emu::pci {

// A function's own: registers and memory behind its BARs. Called with the bus's lock held: it calls
// nothing of the bus but its HostMemory.
class Function {
 public:
  virtual ~Function() = default;
  virtual uint32_t read(size_t bar, uint64_t offset) = 0;
  virtual void write(size_t bar, uint64_t offset, uint32_t value) = 0;
  // As mmap of a part of a BAR: the address, or -errno.
  virtual intptr_t map(size_t bar, uint64_t offset, size_t size_bytes, int protection);
  virtual void reset() {}
  // The IOMMU translates nothing there any more.
  virtual void unmapped(uint64_t address, uint64_t size_bytes) {
    (void)address, (void)size_bytes;
  }
};

// How a function reaches the host's memory.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  // Null, and a finding, where the IOMMU does not translate all of it or it is no bus master.
  virtual std::byte* at(uint64_t address, size_t size_bytes) = 0;
  // Holds the bus's lock: for what a function does by itself, on a thread of its own.
  virtual std::unique_lock<std::recursive_mutex> hold() = 0;
};

struct Slot {
  std::string address;  // "0000:01:00.0"
  uint16_t vendor = 0, device = 0;
  uint32_t class_code = 0;
  std::string driver, iommu_group;  // either may be empty
  std::array<uint64_t, 6> bar_bytes{};
  std::shared_ptr<Function> function;
};

class Bus final : public os::Kernel {
 public:
  explicit Bus(Reports& reports) : reports_(reports) {}
  ~Bus() override;
  void add(const Slot& slot);
  // Of the function at that address, which outlives what is returned.
  std::unique_ptr<HostMemory> host_memory(const std::string& address);

  // Texts of sysfs by path, for tests to damage: what add() made of the slots; and files of
  // NVIDIA's and AMD's folders for firmware, of which there are no others.
  std::map<std::string, std::string> files;
  // The n-th call from here on (open, ioctl, mmap, pread, pwrite) fails so; 0: none.
  uint64_t fail_at = 0;
  int fail_with = 5;  // EIO
  struct Stats {
    uint64_t calls = 0, files = 0, mappings = 0;
  };
  Stats stats() const;
  std::vector<int> open_files() const;

  int open(const std::string& path, int flags) override;
  int close(int fd) override;
  int ioctl(int fd, unsigned long request, void* argument) override;
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override;
  int munmap(void* at, size_t size_bytes) override;
  int64_t pread(int fd, void* bytes, size_t size_bytes, uint64_t offset) override;
  int64_t pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset) override;
  int read_text(const std::string& path, std::string& text) override;
  int list_directory(const std::string& path, std::vector<std::string>& names) override;

 private:
  class Memory;
  // What an IOMMU translates for the groups of a container.
  struct Mapping {
    uint64_t size = 0, host = 0;
    bool readable = false, writable = false;
  };
  struct Container {
    uint32_t groups = 0;
    bool translates = false;
    std::map<uint64_t, Mapping> mappings;
  };
  struct Open {
    enum class Kind : uint8_t { Container, Group, Device } kind = Kind::Container;
    std::string group;
    std::shared_ptr<Container> container;  // of a group: once it has joined one
    Slot* slot = nullptr;                  // of a device
  };
  struct State {
    uint16_t command = 0;
    std::shared_ptr<Container> container;  // while the device is open
  };
  Open* find(int fd);
  bool fails_now();
  void tell_unmapped(const Container& c, uint64_t address, uint64_t size_bytes);
  bool is_viable(const std::string& group) const;
  int answer(const char* name, int error, const std::string& why);
  int ask_container(Container& c, unsigned long request, void* argument);
  int map_dma(Container& c, void* argument);
  int unmap_dma(Container& c, void* argument);
  int tell_ranges(void* argument);
  int ask_group(Open& group, unsigned long request, void* argument);
  int open_device(Open& group, const char* address);
  int ask_device(Open& device, unsigned long request, void* argument);
  int check_access(const char* name, const Open& open, size_t size_bytes, uint64_t offset);
  uint32_t read_config(const Slot& slot, uint64_t offset) const;
  int keep(Open open);

  Reports& reports_;
  mutable std::recursive_mutex mutex_;  // a register that is written may reach host memory
  std::map<std::string, Slot> slots_;
  std::map<std::string, State> states_;
  std::map<int, Open> open_;
  uint64_t calls_ = 0;
};

}  // namespace tuff::emu::pci
