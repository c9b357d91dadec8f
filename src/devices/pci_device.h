// PciDevice: a function of the PCI bus in this process's hands, through Linux's VFIO: registers,
// what of it is mapped, its reset, and memory of the host that it reaches through the IOMMU, and
// nothing else of the host. Used by drivers that reach GPUs without a kernel driver; knows no GPUs.
// Sources: Linux include/uapi/linux/vfio.h (the ioctls), Documentation/driver-api/vfio.rst (their
// order), drivers/vfio/pci/vfio_pci_rdwr.c (reads and writes of 4 bytes are one access each).
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "devices/address_ranges.h"
#include "devices/kernel_file.h"
#include "devices/pci_functions.h"

namespace tuff::devices {

class PciDevice {
 public:
  // Takes it; it answers to its registers then, and reaches no memory before start_dma. Throws
  // Unsupported where pci_refusal has a reason, it is another process's or this user may not.
  PciDevice(std::shared_ptr<os::Kernel> kernel, PciFunction function);
  ~PciDevice();  // reaches no memory any more, and is given back
  PciDevice(const PciDevice&) = delete;
  const PciFunction& function() const { return function_; }

  // Registers of 32 bits, by a call each: for what is not often done. `offset` is in bytes.
  // DeviceLost if the kernel refuses.
  uint32_t read(size_t bar, uint64_t offset) const;
  void write(size_t bar, uint64_t offset, uint32_t value) const;
  // A word of configuration space.
  uint32_t read_config(uint64_t offset) const;
  uint64_t bar_bytes(size_t bar) const { return regions_[bar].size_bytes; }
  // Part of a BAR in this process's address space. Whole pages, unmapped by unmap.
  std::byte* map(size_t bar, uint64_t offset, size_t size_bytes) const;
  void unmap(std::byte* at, size_t size_bytes) const noexcept;

  void start_dma();
  // A function-level reset. Unsupported where the function has none.
  void reset() const;

 private:
  friend class DmaMemory;
  struct Region {
    uint64_t size_bytes = 0, offset = 0;  // in the file of the device
    uint32_t flags = 0;
  };
  int call(int fd, unsigned long request, void* argument, const char* name) const;
  KernelFile open(const std::string& path) const;
  void join_group();
  void read_regions();
  void read_dma_ranges();
  uint16_t command() const;
  void set_command(uint16_t bits) const;
  [[noreturn]] void fail_call(const std::string& call, int error) const;

  std::shared_ptr<os::Kernel> kernel_;
  const PciFunction function_;
  // Closed the other way round: the device, its group, what the IOMMU translates.
  KernelFile container_, group_, device_;
  std::vector<Region> regions_;
  std::optional<AddressRanges> dma_addresses_;
};

// Reads a register of a BAR until its bits of `mask` are `value`, or the time has gone.
struct AwaitedRegister {
  bool arrived = false;
  uint32_t seen = 0;  // last
};
AwaitedRegister wait_for_register(const PciDevice& device, size_t bar, uint64_t offset,
                                  uint32_t mask, uint32_t value,
                                  std::chrono::microseconds timeout);

// Memory of the host that a device reads and writes at `address()`: one range for it, wherever its
// pages lie. Zeroed; gone before the device.
class DmaMemory {
 public:
  // Whole pages. OutOfMemory, also where the user may not lock so much.
  DmaMemory(PciDevice& device, size_t size_bytes);
  ~DmaMemory();
  DmaMemory(const DmaMemory&) = delete;
  std::byte* host() const { return host_; }
  uint64_t address() const { return address_; }
  size_t size_bytes() const { return size_; }

 private:
  PciDevice& device_;
  const size_t size_;
  uint64_t address_ = 0;
  std::byte* host_ = nullptr;
};

}  // namespace tuff::devices
