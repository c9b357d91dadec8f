// What NVIDIA's kernel driver refuses, as errors that name the call and the remedy; calls of its
// resource manager (RM) and of unified memory (UVM). Used by everything in rm/. Knows no GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/os_kernel.h"
#include "base/os_nvrm.h"
#include "devices/address_ranges.h"
#include "devices/kernel_file.h"
#include "devices/nv/rm/object_calls.h"
#include "devices/nv/rm/spaces.h"

namespace tuff::devices::nv {

// `error` is a positive errno. OutOfMemory, DeviceLost, Unsupported for what this user may not do,
// else IoError; likewise for a status.
[[noreturn]] void fail_call(const std::string& call, int error);
[[noreturn]] void fail_call(const std::string& call, nvrm::Status status);
// "NoMemory (0x51)"
std::string to_text(nvrm::Status status);

// Client: a root object of RM, with the files that it and unified memory are reached through; of
// all devices of an iface, for as long as there is one. Thread-safe.
class Client final : public ObjectCalls {
 public:
  // Throws Unsupported without the driver, or with a branch that is not known.
  explicit Client(std::shared_ptr<os::Kernel> kernel);
  ~Client() override;
  Client(const Client&) = delete;
  os::Kernel& kernel() const { return *kernel_; }
  const nvrm::Branch& branch() const { return *branch_; }
  const std::string& version() const { return version_; }
  int control_fd() const { return control_.fd(); }
  nvrm::Handle root() const override { return root_; }
  AddressRanges& addresses() { return addresses_; }
  Spaces& spaces() { return spaces_; }
  std::vector<nvrm::CardInfo> cards() const;
  // To read and write.
  KernelFile open(const std::string& path) const;

  using ObjectCalls::control;
  nvrm::Handle alloc(nvrm::Handle parent, uint32_t object_class, const char* name,
                     std::span<std::byte> parameters) override;
  void free(nvrm::Handle parent, nvrm::Handle object) noexcept override;
  void control(nvrm::Handle object, uint32_t command, const char* name,
               std::span<std::byte> parameters) const override;
  // UVM's calls; `status` is the one in `argument`.
  void uvm(unsigned long request, const char* name, void* argument,
           const uint32_t& status) const;
  template <class T>
  void uvm(unsigned long request, const char* name, T& argument) const {
    uvm(request, name, &argument, argument.status);
  }
  // For what is given back: tried twice, since nobody is left to tell.
  template <class T>
  void undo_uvm(unsigned long request, T argument) const noexcept {
    if (kernel_->ioctl(uvm_.fd(), request, &argument) < 0 || argument.status != 0)
      kernel_->ioctl(uvm_.fd(), request, &argument);
  }

 private:
  void escape(unsigned long request, const char* name, void* argument) const;
  void read_version();
  void start_uvm();
  std::shared_ptr<os::Kernel> kernel_;
  KernelFile control_;
  std::string version_;
  const nvrm::Branch* branch_ = nullptr;
  KernelFile uvm_, uvm_process_;
  nvrm::Handle root_ = 0;
  AddressRanges addresses_{"NV", kFirstAddress, kEndOfAddresses};
  Spaces spaces_;
};

inline constexpr size_t kPageBytes = 4096;

}  // namespace tuff::devices::nv
