// GspVaSpace: what addresses mean to one GPU that no kernel driver runs: a VA space of its resource
// manager, whose page table is this process's, and the addresses of it that are free. Thread-safe.
// Used by GspSpace and for the golden context. Knows no memory, only where it lies.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/src/kernel/mem_mgr/gpu_vaspace.c
// and generated/g_gpu_vaspace_nvoc.h (the part that is the firmware's).
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "devices/address_ranges.h"
#include "devices/nv/pci/gsp_calls.h"
#include "devices/nv/pci/page_table.h"

namespace tuff::devices::nv {

enum class VaSpaceKind : uint8_t {
  Own,     // all of the table is this process's
  Shared,  // the firmware fills a part of it for what it needs itself
};

class GspVaSpace {
 public:
  // `device` is an object of `calls`; tables lie in `memory`.
  GspVaSpace(std::shared_ptr<GspCalls> calls, nvrm::Handle device, MmuVersion version,
             TableMemory& memory, VaSpaceKind kind = VaSpaceKind::Own);
  ~GspVaSpace();
  GspVaSpace(const GspVaSpace&) = delete;
  nvrm::Handle handle() const { return space_->handle(); }
  uint64_t root() const { return pages_.root(); }
  // The address that so many bytes get, which nothing had. `alignment` is a power of two.
  uint64_t map(uint64_t physical, uint64_t size_bytes, uint64_t alignment,
               PageAttributes attributes);
  // As they were mapped.
  void unmap(uint64_t address, uint64_t size_bytes);

 private:
  void share_directories();
  const std::shared_ptr<GspCalls> calls_;
  const nvrm::Handle device_;
  const VaSpaceKind kind_;
  std::mutex mutex_;  // of `pages_`
  PageTable pages_;
  AddressRanges addresses_;
  std::optional<Object> space_;
};

}  // namespace tuff::devices::nv
