#include "devices/nv/pci/gsp_facts.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

// Offsets in GspStaticConfigInfo.
enum StaticInfo : size_t {
  kGidData = 24 + 12,
  kRegionCount = 344,
  kRegions = 352,
  kMemoryBytes = 1224,
  kL2Bytes = 1256,
  kName = 1260,
};
constexpr size_t kNameBytes = 64, kMostRegions = 16;

// One entry of its table of regions.
struct FbRegion {
  uint64_t begin, last, reserved_bytes;
  uint32_t performance;
  uint8_t compressed, isochronous, is_protected, forbidden[17];
};
static_assert(sizeof(FbRegion) == 48);

template <class T>
T fact_at(const std::vector<uint8_t>& info, size_t at) {
  TUFF_CHECK(at + sizeof(T) <= info.size());
  T value{};
  std::memcpy(&value, info.data() + at, sizeof value);
  return value;
}

std::vector<MemoryRegion> usable_regions(const std::vector<uint8_t>& info, uint64_t memory_bytes) {
  const auto count = fact_at<uint32_t>(info, kRegionCount);
  if (count > kMostRegions) fail<DeviceLost>("NV: the GSP names {} regions of memory", count);
  std::vector<MemoryRegion> usable;
  for (size_t i = 0; i < count; ++i) {
    const auto r = fact_at<FbRegion>(info, kRegions + i * sizeof(FbRegion));
    if (r.last < r.begin || r.last >= memory_bytes)
      fail<DeviceLost>("NV: the GSP names memory from {:#x} to {:#x}, of {} bytes", r.begin, r.last,
                       memory_bytes);
    if (r.reserved_bytes == 0 && !r.is_protected) usable.push_back({r.begin, r.last + 1});
  }
  std::ranges::sort(usable, {}, &MemoryRegion::begin);
  if (usable.empty()) fail<DeviceLost>("NV: the GSP leaves no video memory to the host");
  return usable;
}

// Of the first engine: the entry of an index is at its place.
void read_graphics(const GspCalls& calls, nvrm::Handle subdevice, GpuFacts& f) {
  constexpr uint32_t static_graphics_info = 0x20800a2a;
  constexpr size_t engines = 8, entries = 0x3a;
  std::vector<nvrm::InfoEntry> info(engines * entries);
  calls.control(subdevice, static_graphics_info, "INTERNAL_STATIC_KGR_GET_INFO",
                std::as_writable_bytes(std::span(info)));
  const auto fact = [&](uint32_t index) { return info[index].data; };
  f.sm = capability_of(fact(nvrm::gr_info::SmVersion));
  f.warps_per_sm = fact(nvrm::gr_info::WarpsPerSm);
  f.gpcs = fact(nvrm::gr_info::Gpcs);
  f.tpcs_per_gpc = fact(nvrm::gr_info::TpcsPerGpc);
  f.sms_per_tpc = fact(nvrm::gr_info::SmsPerTpc);
}

}  // namespace

GspFacts read_gsp_facts(const GspCalls& calls, nvrm::Handle subdevice, const Chip& chip,
                        uint64_t aperture_bytes) {
  const std::vector<uint8_t> info = calls.static_info();
  GspFacts facts;
  GpuFacts& f = facts.gpu;
  const auto* const name = reinterpret_cast<const char*>(info.data() + kName);
  f.name.assign(name, strnlen(name, kNameBytes));
  f.uuid = fact_at<nvrm::Uuid>(info, kGidData);
  f.memory_bytes = fact_at<uint64_t>(info, kMemoryBytes);
  f.l2_bytes = fact_at<uint32_t>(info, kL2Bytes);
  f.aperture_bytes = aperture_bytes;
  facts.usable = usable_regions(info, f.memory_bytes);
  read_graphics(calls, subdevice, f);
  f.generation = find_generation(f.sm, chip.family->classes);
  f.gpfifo_class = chip.family->classes[0];
  f.usermode_class = chip.family->classes[3];
  if (!f.generation)
    f.missing = fmt::format("sm_{} is not supported; supported are {}", f.sm,
                            fmt::join(generation_names(), ", "));
  return facts;
}

}  // namespace tuff::devices::nv
