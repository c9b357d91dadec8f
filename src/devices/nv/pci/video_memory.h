// VideoMemory: a GPU's own memory, where no kernel driver gives it out: pieces of what the firmware
// leaves to the host. The host reaches the beginning of it through the aperture (BAR 1), and writes
// page tables there. Made by what opens a GPU by PCI. Knows no address that a GPU's programs use.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/common/inc/swref/published/turing/tu102/
// {dev_bus,dev_vm}.h, hopper/gh100/dev_vm.h (BAR1_BLOCK, MMU_INVALIDATE); tinygrad @01f3c4f,
// runtime/support/nv/nvdev.py (the aperture without tables, what is invalidated).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/nv/pci/gsp_calls.h"
#include "devices/nv/pci/gsp_facts.h"
#include "devices/nv/pci/page_table.h"
#include "devices/pci_device.h"

namespace tuff::devices::nv {

class VideoMemory final : public TableMemory {
 public:
  // Once the firmware is ready. `usable` is by address. Waits end after `timeout_ms` with
  // DeviceLost. `calls` end where the GPU does not forget a table: then it may reach memory that is
  // another's soon, and is reset. Once they have ended nothing is forgotten any more.
  VideoMemory(const PciDevice& device, const ChipFamily& family,
              std::span<const MemoryRegion> usable, uint64_t timeout_ms,
              std::shared_ptr<GspCalls> calls = {});
  ~VideoMemory() override;
  VideoMemory(const VideoMemory&) = delete;
  // The address of a piece; `alignment` is a power of two. One that the host is to see lies where
  // the aperture reaches, others do if nothing else is left. OutOfMemory. Not zeroed.
  uint64_t reserve(uint64_t size_bytes, uint64_t alignment, bool visible);
  void give_back(uint64_t address) noexcept;
  // Of a visible piece.
  std::byte* host(uint64_t address) const;

  Aperture aperture() const override { return Aperture::Video; }
  uint64_t allocate(size_t size_bytes) override;
  void free(uint64_t address) noexcept override { give_back(address); }
  void write(uint64_t address, uint64_t entry) override;
  void publish() override;

 private:
  struct Part {
    MemoryRegion region;
    bool visible = false;
    std::unique_ptr<AddressRanges> free;
  };
  void add(MemoryRegion region, bool visible);
  void invalidate();
  const PciDevice& device_;
  const uint64_t timeout_ms_;
  const std::shared_ptr<GspCalls> calls_;
  std::vector<Part> parts_;
  std::byte* aperture_ = nullptr;
  uint64_t aperture_bytes_ = 0;
  std::optional<uint64_t> last_written_;  // an entry's
};

// A piece of it, given back with this.
class VideoPiece {
 public:
  VideoPiece(VideoMemory& memory, uint64_t size_bytes, uint64_t alignment, bool visible)
      : memory_(memory), address_(memory.reserve(size_bytes, alignment, visible)),
        size_(size_bytes), host_(visible ? memory.host(address_) : nullptr) {}
  ~VideoPiece() { memory_.give_back(address_); }
  VideoPiece(const VideoPiece&) = delete;
  uint64_t address() const { return address_; }
  uint64_t size_bytes() const { return size_; }
  std::byte* host() const { return host_; }  // null where the host need not see it

 private:
  VideoMemory& memory_;
  const uint64_t address_, size_;
  std::byte* const host_;
};

}  // namespace tuff::devices::nv
