#include "devices/opencl/opencl_device.h"

#include "base/log.h"
#include "devices/opencl/opencl.h"

namespace tuff::devices {
namespace opencl {

ClDevice::~ClDevice() {
  for (ClQueue* queue : {&queue_, copy_queue()}) {
    try {
      if (queue && !lost()) queue->wait_idle();
    } catch (const Error& e) {
      log_warn("closing {}: {}", info_.name, e.what());
    }
  }
  for (ClQueue* queue : {&queue_, copy_queue()})
    if (queue) queue->finish();
  shut_down();
}

ClDevice& native(hcq::Device& device) {
  auto* cl = dynamic_cast<ClDevice*>(&device);
  if (!cl) fail<InvalidArgument>("{} is not an OpenCL device", device.name());
  return *cl;
}

}  // namespace opencl

using namespace opencl;

namespace {

constexpr const char* kKind = "CL";

}  // namespace

std::vector<Candidate> opencl_probe() {
  std::vector<Candidate> found;
  try {
    const std::vector<Facts> devices = list_devices(load_api());
    for (size_t i = 0; i < devices.size(); ++i) {
      const Facts& f = devices[i];
      const std::string name = fmt::format("{}:{}", kKind, i);
      found.push_back({name, f.usable(), f.missing, opencl::describe(f, name), f.rank()});
    }
  } catch (const InvalidArgument&) {
    throw;  // a variable's value: another device instead would not be what was asked for
  } catch (const Error& e) {
    return {{.name = kKind, .reason = e.what()}};
  }
  return found;
}

std::unique_ptr<hcq::Device> opencl_open(const std::string& selector) {
  const ClApi api = load_api();
  const std::vector<Facts> devices = list_devices(api);
  const size_t i = select_device(devices, selector);
  auto device = std::make_unique<ClDevice>(
      std::make_shared<Context>(api, devices[i], fmt::format("{}:{}", kKind, i)));
  hcq::close_in_children(*device);
  return device;
}

ClApi& opencl_api(hcq::Device& device) { return native(device).context().api; }

}  // namespace tuff::devices
