// Gpu: one GPU that is open at RM, with what it says of itself and the doorbell page that its
// channels share. Made to list devices, and by what opens one. Knows no memory and no channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/nv/encode/generation.h"
#include "devices/nv/rm/calls.h"

namespace tuff::devices::nv {

struct GpuFacts {
  std::string name;
  nvrm::Uuid uuid{};
  uint32_t sm = 0;  // 86 for sm_86
  uint32_t gpcs = 0, tpcs_per_gpc = 0, sms_per_tpc = 0, warps_per_sm = 0;
  uint64_t memory_bytes = 0, l2_bytes = 0;
  uint64_t aperture_bytes = 0;  // of video memory that the host can map
  const Generation* generation = nullptr;  // null: not supported
  uint32_t gpfifo_class = 0, usermode_class = 0;
  std::string missing;  // why it cannot be used; empty if it can
  uint32_t sms() const { return gpcs * tpcs_per_gpc * sms_per_tpc; }
  bool host_maps_all() const { return aperture_bytes >= memory_bytes; }
};

// SM_VERSION of GR_GET_INFO as a compute capability: 0x806 is 8.6, so 86.
uint32_t capability_of(uint32_t sm_version);

class Gpu {
 public:
  Gpu(std::shared_ptr<Client> client, const nvrm::CardInfo& card);
  const GpuFacts& facts() const { return facts_; }
  const std::shared_ptr<Client>& client() const { return client_; }
  nvrm::Handle device() const { return device_->handle(); }
  nvrm::Handle subdevice() const { return subdevice_->handle(); }
  // Opened anew: each mapping wants a file of its own.
  KernelFile open_file() const { return client_->open(path_); }
  uint64_t time_ns() const;

 private:
  void open_objects(const nvrm::CardInfo& card);
  void read_facts();
  void read_classes();
  std::shared_ptr<Client> client_;
  std::string path_;
  KernelFile file_;
  std::unique_ptr<Object> device_, subdevice_;
  GpuFacts facts_;
};

}  // namespace tuff::devices::nv
