// Gpu: one GPU that is open at NVIDIA's kernel driver, with what that says of it. Made to list
// devices, and by what opens one. Knows no memory and no channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/nv/rm/calls.h"
#include "devices/nv/rm/gpu_facts.h"

namespace tuff::devices::nv {

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
