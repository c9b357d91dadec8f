// NVIDIA's kernel driver as programs talk to it: the resource manager's escapes on /dev/nvidiactl
// and /dev/nvidia<minor>, the calls of /dev/nvidia-uvm, and of objects and controls what is used,
// as numbers and structs. Included by devices/nv/rm and emu/nv/rm alone. What differs between
// branches of the driver stands in os_nvrm.def; structs here have the fields that all share.
// Source: open-gpu-kernel-modules 535.288.01 to 580.142, src/common/sdk/nvidia/inc (nvos.h,
// nvstatuscodes.h, nverror.h, class/, ctrl/, alloc/alloc_channel.h), src/nvidia/arch/nvalloc/unix/
// include (nv-ioctl.h, nv_escape.h), kernel-open/nvidia-uvm (uvm_ioctl.h, uvm_linux_ioctl.h).
#pragma once

#include <sys/ioctl.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tuff::os::nvrm {

using Handle = uint32_t;
using Uuid = std::array<uint8_t, 16>;

// ---- branches

struct Branch {
  uint32_t number;
  uint32_t root_bytes, memory_bytes, space_bytes, channel_bytes;
  uint32_t schedule_bytes, class_list_bytes, memory_info_bytes;
  uint32_t gpu_attributes;
};
inline constexpr Branch kBranches[] = {
#define NV_BRANCH(number, root, memory, space, channel, schedule, classes, info, attributes) \
  {number, root, memory, space, channel, schedule, classes, info, attributes},
#include "base/os_nvrm.def"
};

// ---- escapes of nvidiactl and nvidia<minor>

constexpr unsigned long escape(uint32_t number, uint32_t size_bytes) {
  return _IOC(_IOC_READ | _IOC_WRITE, 'F', number, size_bytes);
}

struct CardInfo {
  uint8_t valid, pad[3];
  uint32_t pci_domain;
  uint8_t pci_bus, pci_slot, pci_function, pad2;
  uint16_t vendor, device;
  uint32_t gpu_id;
  uint16_t interrupt_line, pad3;
  uint64_t register_address, register_bytes;
  uint64_t aperture_address, aperture_bytes;  // BAR1: through which the host maps video memory
  uint32_t minor;
  char device_name[10];
  uint16_t pad4;
};
static_assert(sizeof(CardInfo) == 72);
inline constexpr uint32_t kMaxCards = 32;

inline constexpr uint32_t kVersionQuery = '2', kVersionRecognized = 1;
struct CheckVersion {
  uint32_t command, reply;
  char version[64];
};
struct RegisterFd {
  int32_t control_fd;
};
struct Alloc {  // NVOS21
  Handle client, parent, object;
  uint32_t object_class;
  uint64_t parameters;
  uint32_t parameter_bytes, status;
};
struct Free {  // NVOS00
  Handle client, parent, object;
  uint32_t status;
};
struct Control {  // NVOS54
  Handle client, object;
  uint32_t command, flags;
  uint64_t parameters;
  uint32_t parameter_bytes, status;
};
struct MapMemory {  // NVOS33, with the file that is to be mapped
  Handle client, device, memory;
  uint32_t pad;
  uint64_t offset, length, address;
  uint32_t status, flags;
  int32_t fd;
  uint32_t pad2;
};
static_assert(sizeof(CheckVersion) == 72 && sizeof(Alloc) == 32 && sizeof(Control) == 32 &&
              sizeof(MapMemory) == 56);

inline constexpr uint32_t kFreeNumber = 0x29, kControlNumber = 0x2a, kAllocNumber = 0x2b,
                          kMapMemoryNumber = 0x4e, kCardInfoNumber = 200, kRegisterFdNumber = 201,
                          kCheckVersionNumber = 210;
inline constexpr unsigned long kFree = escape(kFreeNumber, sizeof(Free)),
                               kControl = escape(kControlNumber, sizeof(Control)),
                               kAlloc = escape(kAllocNumber, sizeof(Alloc)),
                               kMapMemory = escape(kMapMemoryNumber, sizeof(MapMemory)),
                               kCardInfo = escape(kCardInfoNumber, kMaxCards * sizeof(CardInfo)),
                               kRegisterFd = escape(kRegisterFdNumber, sizeof(RegisterFd)),
                               kCheckVersion = escape(kCheckVersionNumber, sizeof(CheckVersion));

// ---- status

enum class Status : uint32_t {
  Ok = 0,
  GpuIsLost = 0x0f,
  IllegalAction = 0x16,
  InUse = 0x17,
  InsufficientResources = 0x1a,
  InsufficientPermissions = 0x1b,
  InvalidAddress = 0x1e,
  InvalidArgument = 0x1f,
  InvalidChannel = 0x21,
  InvalidClass = 0x22,
  InvalidClient = 0x23,
  InvalidCommand = 0x24,
  InvalidDevice = 0x26,
  InvalidObject = 0x31,
  InvalidObjectParent = 0x36,
  InvalidOffset = 0x37,
  InvalidParamStruct = 0x3a,
  InvalidState = 0x40,
  NoMemory = 0x51,
  NotSupported = 0x56,
  ObjectNotFound = 0x57,
  OutOfRange = 0x5b,
  StateInUse = 0x63,
  UvmAddressInUse = 0x68,
};

// ---- objects

namespace object {
inline constexpr uint32_t Root = 0x0, MemorySystem = 0x3e, MemoryLocal = 0x40, Device = 0x80,
                          Subdevice = 0x2080, ContextShare = 0x9067, VaSpace = 0x90f1,
                          ChannelGroup = 0xa06c;
}  // namespace object

struct DeviceParameters {
  uint32_t device;
  Handle client_share, target_client, target_device;
  uint32_t flags, pad;
  uint64_t va_space_bytes, va_start, va_limit;
  uint32_t va_mode, pad2;
};
struct SubdeviceParameters {
  uint32_t subdevice;
};
inline constexpr uint32_t kAttrHugePages = 3u << 23, kAttrPci = 1u << 25,
                          kAttrNoncontiguous = 1u << 27, kAttrContiguous = 2u << 27,
                          kAttrCached = 1u << 29, kAttr2NoZbc = 1, kAttr2Cacheable = 1u << 2,
                          kAttr2Huge2M = 1u << 20;
inline constexpr uint32_t kAllocAlignmentForce = 0x100, kAllocMapNotRequired = 0x8000,
                          kAllocPersistent = 0x10000;
struct MemoryParameters {
  uint32_t owner, type, flags, width, height, pitch, attr, attr2, format, compression, zcull, pad;
  uint64_t range_low, range_high;
  uint64_t size_bytes, alignment, offset, limit, address;
  uint32_t tag_offset;
  Handle va_space;
  uint32_t internal_flags, tag;
};
inline constexpr uint32_t kSpaceExternallyOwned = 1u << 3, kSpacePageFaulting = 1u << 6;
struct VaSpaceParameters {
  uint32_t index, flags;
  uint64_t size_bytes, start, limit;
  uint32_t big_page_bytes, pad;
  uint64_t base;
};
inline constexpr uint32_t kEngineGraphics = 1;
struct ChannelGroupParameters {
  Handle error, ecc_error, va_space;
  uint32_t engine;
  uint32_t vgpu;
};
inline constexpr uint32_t kSubcontextAsync = 1;
struct ContextShareParameters {
  Handle va_space;
  uint32_t flags, subcontext;  // subcontext: out
};
// Memory by its physical address, as the GSP's firmware is told of it; 0: none.
inline constexpr uint32_t kSystemMemory = 1, kVideoMemory = 2;  // address spaces (ADDR_*)
struct MemoryDescription {
  uint64_t base, size_bytes;
  uint32_t address_space, caching;
};
// USERD and the record of errors are named by handles to the kernel driver, which fills what is
// behind `id` for the firmware.
struct ChannelParameters {
  Handle error, buffer;
  uint64_t gpfifo_address;
  uint32_t gpfifo_entries, flags;
  Handle context_share, va_space;
  std::array<Handle, 8> userd_memory;
  std::array<uint64_t, 8> userd_offset;
  uint32_t engine, id;  // id: out
  uint32_t subdevice;
  Handle ecc_error;
  MemoryDescription instance, userd, ramfc, method_buffer;
  Handle physical_group;
  uint32_t internal_flags;
  MemoryDescription error_notifier, ecc_error_notifier;
  uint32_t process[2];
  uint32_t encryption[14];
};
static_assert(sizeof(DeviceParameters) == 56 && sizeof(MemoryParameters) == 120 &&
              sizeof(VaSpaceParameters) == 48 && sizeof(ChannelParameters) == 360);
// RM_ALLOC copies as many bytes as its own struct has, whatever the caller says.
inline constexpr uint32_t kMostParameterBytes = 512;

// ---- controls

namespace control {
inline constexpr uint32_t GetIdInfo = 0x205, GetClassList = 0x800292, GetGid = 0x2080014a,
                          GetName = 0x20800110, GetTime = 0x20800403, GrGetInfo = 0x20801201,
                          FbGetInfo = 0x20801303, GetMmuFaultInfo = 0x906f0106,
                          GroupSchedule = 0xa06c0101, GetSubmitToken = 0xc36f0108;
// That the kernel driver has for itself, and who calls the GSP's firmware needs.
inline constexpr uint32_t PromoteContext = 0x2080012b, ContextBufferSizes = 0x20800a32,
                          MethodBufferSize = 0x20802a08, CopyReservedDirectories = 0x90f10106;
}  // namespace control

struct IdInfo {
  uint32_t gpu_id, flags, device, subdevice, sli_status, board, instance, numa;
};
struct GidInfo {
  uint32_t index, flags, length;
  uint8_t data[256];
};
inline constexpr uint32_t kGidBinary = 2;
struct NameString {
  uint32_t flags;
  char text[128];
};
struct TimeInfo {
  uint64_t ns;
};
struct InfoEntry {
  uint32_t index, data;
};
struct GrInfo {
  uint32_t count, pad;
  uint64_t entries;  // of InfoEntry
  uint64_t route[2];
};
namespace gr_info {
inline constexpr uint32_t SmVersion = 0xc, WarpsPerSm = 0xd, Gpcs = 0x14, TpcsPerGpc = 0x17,
                          SmsPerTpc = 0x20;
}
struct FbInfo {  // as long as the branch says
  uint32_t count;
  InfoEntry entries[4];
};
namespace fb_info {
inline constexpr uint32_t RamKib = 7, L2Bytes = 0x1b;
}
struct MmuFaultInfo {
  uint32_t address_high, address_low, type;
  char text[32];
  uint8_t shader[60];
};
struct SubmitToken {
  uint32_t token;
};
struct MethodBufferSize {
  uint32_t bytes;
};

// ---- buffers of a graphics context (ctrl2080gpu.h, ctrl2080internal.h, ctrl0080fifo.h)

namespace context_buffer {  // NV2080_CTRL_GPU_PROMOTE_CTX_BUFFER_ID_*
inline constexpr uint16_t Main = 0, Patch = 2, Bundles = 3, PagePool = 4, Attributes = 5,
                          RenderTargets = 6, Events = 9, AccessMap = 10,
                          UnrestrictedAccessMap = 11;
}
struct ContextBufferSize {
  uint32_t bytes, alignment;
};
// By engine and by number (ENGINE_CONTEXT_PROPERTIES_ENGINE_ID_*).
inline constexpr size_t kGraphicsEngines = 8, kContextBufferSizes = 0x1a;
using ContextBufferSizes =
    std::array<std::array<ContextBufferSize, kContextBufferSizes>, kGraphicsEngines>;
// In video memory, past the GPU's cache.
inline constexpr uint32_t kUncachedVideo = 1u << 2;
struct PromotedBuffer {
  uint64_t physical, address, size_bytes;  // the first and last where it is to be initialized
  uint32_t attributes;
  uint16_t id;
  uint8_t initialize, unmapped;
};
struct PromoteContext {
  uint32_t engine;
  Handle client;
  uint32_t channel_id;
  Handle channel_client, channel, memory;
  uint64_t address, size_bytes;
  uint32_t count, pad;
  std::array<PromotedBuffer, 16> buffers;
};
static_assert(sizeof(PromotedBuffer) == 32 && sizeof(PromoteContext) == 560);

// ---- page directories of a VA space whose lower part RM fills itself (ctrl90f1.h)

// Where RM has its own addresses in each such space.
inline constexpr uint64_t kReservedFirst = 1ull << 32, kReservedBytes = 512u << 20;
struct DirectoryLevel {
  uint64_t physical, size_bytes;
  uint32_t aperture;  // 1: video memory
  uint8_t page_shift, pad[3];
};
struct CopyReservedDirectories {
  Handle subdevice;
  uint32_t subdevice_id;
  uint64_t page_bytes, first, last;
  uint32_t count, pad;
  std::array<DirectoryLevel, 6> levels;
};
static_assert(sizeof(CopyReservedDirectories) == 184);
static_assert(sizeof(IdInfo) == 32 && sizeof(GidInfo) == 268 && sizeof(NameString) == 132 &&
              sizeof(GrInfo) == 32 && sizeof(MmuFaultInfo) == 104);

// ---- channels

inline constexpr uint32_t kUserdBytes = 512, kGpGet = 0x88, kGpPut = 0x8c;
inline constexpr uint32_t kUsermodeBytes = 64 << 10, kDoorbell = 0x90;
// In a doorbell's token of GB20x: it is for a list of channels (gb202/dev_vm.h, RUNLIST_DOORBELL).
inline constexpr uint32_t kRunlistDoorbell = 1u << 30;
// The record that an error of a channel leaves in the memory that its group or it was given.
struct ErrorNotifier {
  uint32_t time[2];
  uint32_t code;  // of nverror.h
  uint16_t engine, status;
};
static_assert(sizeof(ErrorNotifier) == 16);
inline constexpr uint16_t kNotified = 0xffff;
namespace channel_error {
inline constexpr uint32_t GraphicsException = 13, MmuFault = 31, Pbdma = 32, CopyEngine = 39,
                          ClassError = 69;
}

// ---- unified memory: bare numbers, and a status in the struct

namespace uvm {
inline constexpr unsigned long kInitialize = 0x30000001, kRegisterGpuVaSpace = 25,
                               kUnregisterGpuVaSpace = 26, kRegisterChannel = 27,
                               kUnregisterChannel = 28, kEnablePeerAccess = 29,
                               kMapExternal = 33, kFree = 34,
                               kRegisterGpu = 37, kUnregisterGpu = 38, kCreateExternalRange = 73,
                               kMmInitialize = 75;
struct Initialize {
  uint64_t flags;
  uint32_t status, pad;
};
struct MmInitialize {
  int32_t uvm_fd;
  uint32_t status;
};
struct RegisterGpu {
  Uuid gpu;
  uint8_t numa_enabled, pad[3];
  int32_t numa_node, control_fd;
  Handle client, partition;
  uint32_t status;
};
struct UnregisterGpu {  // also of a VA space
  Uuid gpu;
  uint32_t status;
};
struct RegisterVaSpace {
  Uuid gpu;
  int32_t control_fd;
  Handle client, va_space;
  uint32_t status;
};
struct RegisterChannel {
  Uuid gpu;
  int32_t control_fd;
  Handle client, channel;
  uint32_t pad;
  uint64_t base, length;
  uint32_t status, pad2;
};
struct UnregisterChannel {
  Uuid gpu;
  Handle client, channel;
  uint32_t status;
};
struct PeerAccess {
  Uuid a, b;
  uint32_t status;
};
struct Range {  // of CreateExternalRange and Free
  uint64_t base, length;
  uint32_t status, pad;
};
// MapExternal: this, the attributes of as many GPUs as the branch has room for, then the end.
struct MapExternalBegin {
  uint64_t base, length, offset;
};
struct GpuAttributes {
  Uuid gpu;
  uint32_t mapping, caching, format, element_bits, compression;
};
struct MapExternalEnd {
  uint64_t gpu_count;
  int32_t control_fd;
  Handle client, memory;
  uint32_t status;
};
static_assert(sizeof(RegisterGpu) == 40 && sizeof(UnregisterGpu) == 20 &&
              sizeof(RegisterVaSpace) == 32 && sizeof(RegisterChannel) == 56 &&
              sizeof(UnregisterChannel) == 28 && sizeof(PeerAccess) == 36 && sizeof(Range) == 24 &&
              sizeof(GpuAttributes) == 36);
constexpr uint32_t map_external_bytes(const Branch& b) {
  const uint32_t begin = sizeof(MapExternalBegin) + b.gpu_attributes * sizeof(GpuAttributes);
  return (begin + 7) / 8 * 8 + sizeof(MapExternalEnd);
}
static_assert(map_external_bytes(kBranches[0]) == 1200 && map_external_bytes(kBranches[1]) == 9264);
}  // namespace uvm

}  // namespace tuff::os::nvrm
