#include "devices/nv/rm/gpu.h"

#include <algorithm>
#include <cstring>

namespace tuff::devices::nv {

// GPUs of sm_120 say 10.4. Source: tinygrad @a9069c1, runtime/ops_nv.py.
uint32_t capability_of(uint32_t sm_version) {
  constexpr uint32_t kSm120 = 0xa04;
  return sm_version == kSm120 ? 120 : 10 * (sm_version >> 8) + (sm_version & 0xf);
}

Gpu::Gpu(std::shared_ptr<Client> client, const nvrm::CardInfo& card)
    : client_(std::move(client)),
      path_(fmt::format("/dev/nvidia{}", card.minor)),
      file_(client_->open(path_)) {
  nvrm::RegisterFd registration{client_->control_fd()};
  const int result = client_->kernel().ioctl(file_.fd(), nvrm::kRegisterFd, &registration);
  if (result < 0) fail_call("REGISTER_FD", -result);
  facts_.aperture_bytes = card.aperture_bytes;
  open_objects(card);
  read_facts();
  read_classes();
}

void Gpu::open_objects(const nvrm::CardInfo& card) {
  nvrm::IdInfo id{};
  id.gpu_id = card.gpu_id;
  client_->control(client_->root(), nvrm::control::GetIdInfo, "GPU_GET_ID_INFO_V2", id);
  nvrm::DeviceParameters device{};
  device.device = id.device;
  device.client_share = client_->root();
  device_ = std::make_unique<Object>(client_, client_->root(), nvrm::object::Device, "device",
                                     device);
  nvrm::SubdeviceParameters sub{id.subdevice};
  subdevice_ = std::make_unique<Object>(client_, device_->handle(), nvrm::object::Subdevice,
                                        "subdevice", sub);
}

void Gpu::read_facts() {
  GpuFacts& f = facts_;
  nvrm::NameString name{};
  client_->control(subdevice(), nvrm::control::GetName, "GPU_GET_NAME_STRING", name);
  f.name.assign(name.text, strnlen(name.text, sizeof name.text));
  nvrm::GidInfo gid{};
  gid.flags = nvrm::kGidBinary;
  client_->control(subdevice(), nvrm::control::GetGid, "GPU_GET_GID_INFO", gid);
  std::copy_n(gid.data, f.uuid.size(), f.uuid.begin());

  nvrm::InfoEntry entries[] = {{nvrm::gr_info::SmVersion, 0},
                               {nvrm::gr_info::WarpsPerSm, 0},
                               {nvrm::gr_info::Gpcs, 0},
                               {nvrm::gr_info::TpcsPerGpc, 0},
                               {nvrm::gr_info::SmsPerTpc, 0}};
  nvrm::GrInfo graphics{};
  graphics.count = uint32_t(std::size(entries));
  graphics.entries = reinterpret_cast<uint64_t>(entries);
  client_->control(subdevice(), nvrm::control::GrGetInfo, "GR_GET_INFO", graphics);
  f.sm = capability_of(entries[0].data);
  f.warps_per_sm = entries[1].data;
  f.gpcs = entries[2].data;
  f.tpcs_per_gpc = entries[3].data;
  f.sms_per_tpc = entries[4].data;

  std::vector<std::byte> buffer(client_->branch().memory_info_bytes);
  nvrm::FbInfo wanted{2, {{nvrm::fb_info::RamKib, 0}, {nvrm::fb_info::L2Bytes, 0}}};
  std::memcpy(buffer.data(), &wanted, sizeof wanted);
  client_->control(subdevice(), nvrm::control::FbGetInfo, "FB_GET_INFO_V2",
                   std::span(buffer));
  std::memcpy(&wanted, buffer.data(), sizeof wanted);
  f.memory_bytes = uint64_t(wanted.entries[0].data) << 10;
  f.l2_bytes = wanted.entries[1].data;
}

void Gpu::read_classes() {
  std::vector<std::byte> buffer(client_->branch().class_list_bytes);
  client_->control(device(), nvrm::control::GetClassList, "GPU_GET_CLASSLIST_V2",
                   std::span(buffer));
  std::vector<uint32_t> words(buffer.size() / sizeof(uint32_t));
  std::memcpy(words.data(), buffer.data(), words.size() * sizeof(uint32_t));
  const size_t count = std::min<size_t>(words[0], words.size() - 1);
  const std::span<const uint32_t> listed = std::span(words).subspan(1, count);
  facts_.generation = find_generation(facts_.sm, listed);
  facts_.gpfifo_class = newest_class(gpfifo_classes(), listed);
  facts_.usermode_class = newest_class(usermode_classes(), listed);
  if (!facts_.generation)
    facts_.missing = fmt::format("sm_{} is not supported; supported are {}", facts_.sm,
                                 fmt::join(generation_names(), ", "));
  else if (!facts_.gpfifo_class || !facts_.usermode_class)
    facts_.missing = "the driver lists no class of channels that is known";
}

uint64_t Gpu::time_ns() const {
  nvrm::TimeInfo time{};
  client_->control(subdevice(), nvrm::control::GetTime, "TIMER_GET_TIME", time);
  return time.ns;
}

}  // namespace tuff::devices::nv
