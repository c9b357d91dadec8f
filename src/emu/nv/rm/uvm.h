// Uvm: what /dev/nvidia-uvm keeps of one opening: GPUs, their VA spaces and channels, and ranges of
// addresses with what is mapped there. Called by machine.cpp, one call at a time; each throws
// RmRefused where the module answers with a status. Sources: open-gpu-kernel-modules,
// kernel-open/nvidia-uvm: uvm_va_space.c, uvm_user_channel.c, uvm_map_external.c, uvm_va_range.c.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "emu/nv/rm/objects.h"

namespace tuff::emu::nv {

class Uvm {
 public:
  explicit Uvm(Objects& objects) : objects_(objects) {}
  ~Uvm() { clear(); }
  void initialize(const nvrm::uvm::Initialize& a);
  void register_gpu(const nvrm::uvm::RegisterGpu& a);
  void unregister_gpu(const nvrm::uvm::UnregisterGpu& a);
  void register_space(const nvrm::uvm::RegisterVaSpace& a);
  void unregister_space(const nvrm::uvm::UnregisterGpu& a);
  void register_channel(const nvrm::uvm::RegisterChannel& a);
  void unregister_channel(const nvrm::uvm::UnregisterChannel& a);
  void enable_peers(const nvrm::uvm::PeerAccess& a);
  void create_range(const nvrm::uvm::Range& a);
  void map(const nvrm::uvm::MapExternalBegin& begin, const nvrm::uvm::MapExternalEnd& end,
           std::span<const nvrm::uvm::GpuAttributes> attributes);
  void free_range(const nvrm::uvm::Range& a);
  size_t ranges() const { return ranges_.size(); }
  void clear();  // the file was closed

 private:
  struct GpuEntry {
    std::shared_ptr<SpaceObject> space;
  };
  struct RangeEntry {
    uint64_t length = 0;
    std::shared_ptr<MemoryObject> memory;
    std::vector<std::shared_ptr<SpaceObject>> mapped;
  };
  struct ChannelEntry {
    nvrm::Uuid gpu;
    std::shared_ptr<ChannelObject> channel;
  };
  void require_initialized() const;
  GpuEntry& gpu(const nvrm::Uuid& uuid);
  void check_range(const nvrm::uvm::Range& a) const;
  void require_peers(const nvrm::Uuid& owner, const nvrm::Uuid& mapping) const;
  void unmap_where(const std::function<bool(const RangeEntry&, const SpaceObject&)>& is_wanted);

  Objects& objects_;
  bool initialized_ = false;
  std::map<nvrm::Uuid, GpuEntry> gpus_;
  std::set<std::pair<nvrm::Uuid, nvrm::Uuid>> peers_;  // that were enabled, both ways
  std::map<std::pair<nvrm::Handle, nvrm::Handle>, ChannelEntry> channels_;
  std::map<uint64_t, RangeEntry> ranges_;
};

}  // namespace tuff::emu::nv
