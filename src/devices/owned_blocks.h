// OwnedBlocks: the buffers behind a device's blocks, and where they lie for the messages of faults.
// Used by devices that submit directly, by hcq's map_block() and unmap_block(). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/known_blocks.h"
#include "hcq/memory.h"

namespace tuff::devices {

template <class Buffer>
class OwnedBlocks {
 public:
  hcq::MemoryBlock add(std::unique_ptr<Buffer> buffer, size_t size_bytes, hcq::MemoryKind kind) {
    const hcq::MemoryBlock block{buffer->address(), size_bytes, buffer->host(), kind,
                                 buffer->handle()};
    known_.add(block.address, buffer->size_bytes());
    std::lock_guard lock(mutex_);
    blocks_.emplace(block.address, std::move(buffer));
    return block;
  }
  // Null: none begins there.
  std::unique_ptr<Buffer> take(uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto it = blocks_.find(address);
    if (it == blocks_.end()) return nullptr;
    known_.remove(address);
    std::unique_ptr<Buffer> buffer = std::move(it->second);
    blocks_.erase(it);
    return buffer;
  }
  // What `use` gives of the buffer that begins there (null: there is none), which stays meanwhile.
  template <class Use>
  auto with(uint64_t address, const Use& use) {
    std::lock_guard lock(mutex_);
    const auto it = blocks_.find(address);
    return use(it == blocks_.end() ? nullptr : it->second.get());
  }
  KnownBlocks& known() { return known_; }

 private:
  KnownBlocks known_;
  std::mutex mutex_;
  std::map<uint64_t, std::unique_ptr<Buffer>> blocks_;  // by address
};

}  // namespace tuff::devices
