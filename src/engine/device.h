// Devices by name: "CPU", "VULKAN", "VULKAN:1", "VULKAN:uuid=...". Opened once, shared by
// everything. Called by tensor, cli and the rest of engine. Must never know ioctls or Vulkan.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/args.h"
#include "hcq/device.h"

namespace tuff::engine {

class ProgramCache;

// One opened device with what engine keeps per device. Owned by the registry and by every Buffer on
// it.
class Device {
 public:
  explicit Device(std::unique_ptr<hcq::Device> device);
  ~Device();
  // Opens on first use. Empty name: the default device. Throws InvalidArgument listing what there
  // is, or Unsupported with the reason.
  static std::shared_ptr<Device> get(const std::string& name = {});
  // One that the caller has opened, under its own name, which is no other's.
  static void add(std::unique_ptr<hcq::Device> device);

  const std::string& name() const { return hcq_->name(); }
  // What schedules are made for: with TUFF_CHECK_OOB a kernel has room for its report.
  const Target& target() const { return target_; }
  hcq::Device& hcq() const { return *hcq_; }
  hcq::Queue& queue() const { return hcq_->compute_queue(); }
  hcq::ArgRing& args() const { return *args_; }
  ProgramCache& programs() const { return *programs_; }
  // What this device's queues wait for while a disk reads into its memory: rises with each list of
  // reads. Null where queues cannot wait.
  hcq::Signal* read_signal();
  uint64_t next_read() { return ++reads_; }             // for one thread at a time
  std::mutex& submit_mutex() { return submit_mutex_; }  // eager lists: args, encode, submit as one

 private:
  std::unique_ptr<hcq::Device> hcq_;
  Target target_;
  std::unique_ptr<hcq::ArgRing> args_;
  std::unique_ptr<ProgramCache> programs_;
  std::mutex submit_mutex_;
  uint64_t reads_ = 0;
  std::once_flag read_signal_made_;
  std::unique_ptr<hcq::Signal> read_signal_;
};

// The name a user's text stands for once opened: "vulkan" -> "VULKAN:0", "" -> the default's. Of a
// group (ir/device_group.h) those of its devices.
std::string canonical_device(const std::string& name);
// DESIGN's rule: hardware Vulkan (discrete, integrated, virtual), else CPU, else software Vulkan;
// TUFF_DEVICE overrides. Throws Unsupported listing why nothing is usable.
std::string default_device();
// Everything every kind found, usable or not, in the order of the registry.
std::vector<devices::Candidate> list_devices();
// Closes that device, or gives what still holds it and leaves it open: how many Buffers and graphs,
// and how many bytes they have. 0 holders: closed. InvalidArgument if none of that name is open.
struct Holders {
  size_t count = 0;
  uint64_t bytes = 0;
};
Holders close_device(const std::string& name);
// Until what files are read for has arrived, or could not be read.
void wait_for_reads();
// Closes it whatever holds it: see hcq::Device::close().
void abandon_device(const std::string& name, const std::string& reason);
// Closes devices no Buffer holds; those still held close with their last Buffer.
void close_devices();

}  // namespace tuff::engine
