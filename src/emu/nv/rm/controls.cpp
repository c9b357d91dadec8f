// The controls of objects. Sources: open-gpu-kernel-modules, src/common/sdk/nvidia/inc/ctrl; that
// sizes are compared for equality: src/nvidia/src/libraries/resserv/src/rs_resource.c.
#include <cstring>

#include "base/check.h"
#include "emu/kernel/clock.h"
#include "emu/nv/rm/objects.h"

namespace tuff::emu::nv {
namespace {

using nvrm::Status;
namespace control = nvrm::control;

template <class T>
void put_back(std::span<std::byte> to, const T& value) {
  std::memcpy(to.data(), &value, sizeof value);
}
void check_size(std::span<const std::byte> from, uint32_t wanted, const char* name) {
  if (from.size() != wanted)
    refuse_rm(Status::InvalidParamStruct, "{}: {} bytes, {} are wanted", name, from.size(), wanted);
}

uint32_t graphics_fact(const ChipKind& chip, uint32_t index) {
  switch (index) {
    case nvrm::gr_info::SmVersion:  // sass_version's digits
      return chip.sass_version >> 4 << 8 | (chip.sass_version & 0xf);
    case nvrm::gr_info::WarpsPerSm: return chip.warps_per_sm;
    case nvrm::gr_info::Gpcs: return chip.gpcs;
    case nvrm::gr_info::TpcsPerGpc: return chip.tpcs_per_gpc;
    case nvrm::gr_info::SmsPerTpc: return chip.sms_per_tpc;
    default: refuse_rm(Status::InvalidArgument, "GR_GET_INFO: index {:#x}", index);
  }
}

}  // namespace

void Objects::control_of_gpu(uint32_t command, std::span<std::byte> parameters,
                             std::vector<nvrm::InfoEntry>& entries, uint32_t gpu) const {
  if (command == control::GetName) {
    auto name = exactly<nvrm::NameString>(parameters, "GPU_GET_NAME_STRING");
    std::snprintf(name.text, sizeof name.text, "%s", chip_.name);
    put_back(parameters, name);
  } else if (command == control::GetGid) {
    auto gid = exactly<nvrm::GidInfo>(parameters, "GPU_GET_GID_INFO");
    if (gid.flags != nvrm::kGidBinary)
      refuse_rm(Status::InvalidArgument, "GPU_GET_GID_INFO: flags {:#x}", gid.flags);
    const auto uuid = uuid_of(gpu);
    gid.length = uint32_t(uuid.size());
    std::copy(uuid.begin(), uuid.end(), gid.data);
    put_back(parameters, gid);
  } else if (command == control::GetTime) {
    auto time = exactly<nvrm::TimeInfo>(parameters, "TIMER_GET_TIME");
    time.ns = clock_ns(CLOCK_REALTIME);
    put_back(parameters, time);
  } else if (command == control::GrGetInfo) {
    exactly<nvrm::GrInfo>(parameters, "GR_GET_INFO");
    for (nvrm::InfoEntry& e : entries) e.data = graphics_fact(chip_, e.index);
  } else if (command == control::FbGetInfo) {
    check_size(parameters, branch_.memory_info_bytes, "FB_GET_INFO_V2");
    nvrm::FbInfo info;
    std::memcpy(&info, parameters.data(), sizeof info);
    if (info.count > std::size(info.entries))
      refuse_rm(Status::InvalidArgument, "FB_GET_INFO_V2: {} entries", info.count);
    for (uint32_t i = 0; i < info.count; ++i) {
      nvrm::InfoEntry& e = info.entries[i];
      if (e.index == nvrm::fb_info::RamKib) e.data = uint32_t(options_.vram_bytes >> 10);
      else if (e.index == nvrm::fb_info::L2Bytes) e.data = uint32_t(chip_.l2_bytes);
      else refuse_rm(Status::InvalidArgument, "FB_GET_INFO_V2: index {:#x}", e.index);
    }
    std::memcpy(parameters.data(), &info, sizeof info);
  } else {
    refuse_rm(Status::InvalidCommand, "control {:#x} of a subdevice", command);
  }
}

void Objects::control(const nvrm::Control& c, std::span<std::byte> parameters,
                      std::vector<nvrm::InfoEntry>& entries) {
  Object& o = find(c.client, c.object);
  const auto want = [&](bool fits) {
    if (!fits)
      refuse_rm(Status::InvalidCommand, "control {:#x} of an object of class {:#x}", c.command,
                o.object_class);
  };
  if (c.command == control::GetIdInfo) {
    want(o.object_class == nvrm::object::Root);
    auto id = exactly<nvrm::IdInfo>(parameters, "GPU_GET_ID_INFO_V2");
    if (id.gpu_id % 0x100 != 0 || id.gpu_id / 0x100 - 1 >= options_.gpus)
      refuse_rm(Status::InvalidArgument, "there is no GPU of id {:#x}", id.gpu_id);
    id.device = id.instance = id.gpu_id / 0x100 - 1;
    put_back(parameters, id);
  } else if (c.command == control::GetClassList) {
    want(o.object_class == nvrm::object::Device);
    check_size(parameters, branch_.class_list_bytes, "GPU_GET_CLASSLIST_V2");
    const uint32_t list[] = {6,
                             nvrm::object::ChannelGroup,
                             nvrm::object::VaSpace,
                             chip_.gpfifo_class,
                             chip_.compute_class,
                             chip_.copy_class,
                             chip_.usermode_class};
    std::memcpy(parameters.data(), list, sizeof list);
  } else if (c.command == control::GroupSchedule) {
    want(o.object_class == nvrm::object::ChannelGroup);
    check_size(parameters, branch_.schedule_bytes, "GPFIFO_SCHEDULE");
    o.space->context->schedule(c.object, parameters[0] != std::byte{0});
  } else if (c.command == control::GetSubmitToken) {
    want(o.channel != nullptr);
    auto token = exactly<nvrm::SubmitToken>(parameters, "GPFIFO_GET_WORK_SUBMIT_TOKEN");
    token.token = o.channel->token;
    put_back(parameters, token);
  } else if (c.command == control::GetMmuFaultInfo) {
    want(o.channel != nullptr);
    exactly<nvrm::MmuFaultInfo>(parameters, "GET_MMU_FAULT_INFO");
    std::lock_guard lock(o.channel->mutex);
    put_back(parameters, std::exchange(o.channel->fault, {}));
  } else {
    want(o.object_class == nvrm::object::Subdevice);
    control_of_gpu(c.command, parameters, entries, o.gpu);
  }
}

}  // namespace tuff::emu::nv
