// GspSpace: what addresses mean to one GPU that no kernel driver runs: a VA space of its resource
// manager, whose page table is this process's. What Space (rm/memory.h) is through the driver. For
// what opens a GPU by PCI. Knows no memory, only where it lies.
#pragma once

#include <memory>
#include <optional>

#include "devices/nv/pci/gsp_calls.h"
#include "devices/nv/pci/page_table.h"

namespace tuff::devices::nv {

class GspSpace {
 public:
  // `device` is an object of `calls`; tables lie in `memory`.
  GspSpace(std::shared_ptr<GspCalls> calls, nvrm::Handle device, MmuVersion version,
           TableMemory& memory);
  ~GspSpace();
  GspSpace(const GspSpace&) = delete;
  nvrm::Handle handle() const { return space_->handle(); }
  PageTable& pages() { return pages_; }

 private:
  const std::shared_ptr<GspCalls> calls_;
  const nvrm::Handle device_;
  PageTable pages_;
  std::optional<Object> space_;
};

}  // namespace tuff::devices::nv
