#include "devices/nv/decoder.h"

#include <fmt/format.h>

namespace tuff::devices::nv {
namespace {

template <class... Args>
[[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) {
  throw BadStream(fmt::format(text, std::forward<Args>(args)...));
}

// Bits high:low of a block, as the headers' MW(high:low).
struct Field {
  const char* name;
  int high, low;
};

constexpr Field kV03[] = {{"QMD_GROUP_ID", 133, 128},
                          {"SM_GLOBAL_CACHING_ENABLE", 134, 134},
                          {"INVALIDATE_SHADER_DATA_CACHE", 189, 189},
                          {"INVALIDATE_SHADER_CONSTANT_CACHE", 191, 191},
                          {"CWD_MEMBAR_TYPE", 369, 368},
                          {"API_VISIBLE_CALL_LIMIT", 378, 378},
                          {"SAMPLER_INDEX", 382, 382},
                          {"CTA_RASTER_WIDTH", 415, 384},
                          {"CTA_RASTER_HEIGHT", 431, 416},
                          {"CTA_RASTER_DEPTH", 463, 448},
                          {"DEPENDENT_QMD_POINTER", 511, 480},
                          {"DEPENDENT_QMD_ENABLE", 512, 512},
                          {"DEPENDENT_QMD_ACTION", 515, 513},
                          {"DEPENDENT_QMD_PREFETCH", 516, 516},
                          {"SHARED_MEMORY_SIZE", 561, 544},
                          {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 567, 562},
                          {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 574, 569},
                          {"QMD_VERSION", 579, 576},
                          {"QMD_MAJOR_VERSION", 583, 580},
                          {"CTA_THREAD_DIMENSION0", 607, 592},
                          {"CTA_THREAD_DIMENSION1", 623, 608},
                          {"CTA_THREAD_DIMENSION2", 639, 624},
                          {"CONSTANT_BUFFER_VALID(0)", 640, 640},
                          {"REGISTER_COUNT_V", 656, 648},
                          {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 662, 657},
                          {"BARRIER_COUNT", 767, 763},
                          {"CONSTANT_BUFFER_ADDR_LOWER(0)", 1055, 1024},
                          {"CONSTANT_BUFFER_ADDR_UPPER(0)", 1072, 1056},
                          {"CONSTANT_BUFFER_SIZE_SHIFTED4(0)", 1087, 1075},
                          {"PROGRAM_ADDRESS_LOWER", 1567, 1536},
                          {"PROGRAM_ADDRESS_UPPER", 1584, 1568},
                          {"SHADER_LOCAL_MEMORY_HIGH_SIZE", 1623, 1600},
                          {"SASS_VERSION", 1663, 1656}};

constexpr Field kV04[] = {{"QMD_GROUP_ID", 21, 16},
                          {"QMD_TYPE", 25, 23},
                          {"API_VISIBLE_CALL_LIMIT", 568, 568},
                          {"DEPENDENT_QMD0_ENABLE", 368, 368},
                          {"DEPENDENT_QMD0_ACTION", 371, 369},
                          {"DEPENDENT_QMD0_PREFETCH", 372, 372},
                          {"CONSTANT_BUFFER_VALID(0)", 416, 416},
                          {"DEPENDENT_QMD0_POINTER", 479, 448},
                          {"SASS_VERSION", 543, 536},
                          {"SHADER_LOCAL_MEMORY_HIGH_SIZE", 567, 544},
                          {"SAMPLER_INDEX", 569, 569},
                          {"QMD_MINOR_VERSION", 579, 576},
                          {"QMD_MAJOR_VERSION", 583, 580},
                          {"SHARED_MEMORY_SIZE", 601, 584},
                          {"INVALIDATE_SHADER_DATA_CACHE", 605, 605},
                          {"INVALIDATE_SHADER_CONSTANT_CACHE", 607, 607},
                          {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 613, 608},
                          {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 619, 614},
                          {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 625, 620},
                          {"GRID_WIDTH", 1055, 1024},
                          {"GRID_HEIGHT", 1071, 1056},
                          {"GRID_DEPTH", 1103, 1088},
                          {"CWD_MEMBAR_TYPE", 1137, 1136},
                          {"CTA_THREAD_DIMENSION0", 1167, 1152},
                          {"CTA_THREAD_DIMENSION1", 1183, 1168},
                          {"CTA_THREAD_DIMENSION2", 1199, 1184},
                          {"REGISTER_COUNT", 1208, 1200},
                          {"BARRIER_COUNT", 1215, 1211},
                          {"PROGRAM_ADDRESS_LOWER", 1247, 1216},
                          {"PROGRAM_ADDRESS_UPPER", 1272, 1248},
                          {"CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6(0)", 1567, 1536},
                          {"CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6(0)", 1586, 1568},
                          {"CONSTANT_BUFFER_SIZE_SHIFTED4(0)", 1599, 1587}};

constexpr Field kV05[] = {{"QMD_GROUP_ID", 149, 144},
                          {"QMD_TYPE", 153, 151},
                          {"DEPENDENT_QMD0_ENABLE", 336, 336},
                          {"DEPENDENT_QMD0_ACTION", 339, 337},
                          {"DEPENDENT_QMD0_PREFETCH", 340, 340},
                          {"DEPENDENT_QMD0_POINTER", 415, 384},
                          {"SASS_VERSION", 455, 448},
                          {"API_VISIBLE_CALL_LIMIT", 456, 456},
                          {"SAMPLER_INDEX", 457, 457},
                          {"QMD_MINOR_VERSION", 467, 464},
                          {"QMD_MAJOR_VERSION", 471, 468},
                          {"INVALIDATE_SHADER_DATA_CACHE", 475, 475},
                          {"INVALIDATE_SHADER_CONSTANT_CACHE", 477, 477},
                          {"CWD_MEMBAR_TYPE", 625, 624},
                          {"PROGRAM_ADDRESS_LOWER_SHIFTED4", 1055, 1024},
                          {"PROGRAM_ADDRESS_UPPER_SHIFTED4", 1076, 1056},
                          {"CTA_THREAD_DIMENSION0", 1103, 1088},
                          {"CTA_THREAD_DIMENSION1", 1119, 1104},
                          {"CTA_THREAD_DIMENSION2", 1127, 1120},
                          {"REGISTER_COUNT", 1136, 1128},
                          {"BARRIER_COUNT", 1141, 1137},
                          {"SHARED_MEMORY_SIZE_SHIFTED7", 1162, 1152},
                          {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 1168, 1163},
                          {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 1174, 1169},
                          {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 1180, 1175},
                          {"SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4", 1215, 1200},
                          {"GRID_WIDTH", 1279, 1248},
                          {"GRID_HEIGHT", 1295, 1280},
                          {"GRID_DEPTH", 1327, 1312},
                          {"CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6(0)", 1375, 1344},
                          {"CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6(0)", 1394, 1376},
                          {"CONSTANT_BUFFER_SIZE_SHIFTED4(0)", 1407, 1395},
                          {"CONSTANT_BUFFER_VALID(0)", 1856, 1856}};

QmdFields decode(std::span<const uint32_t> dwords, std::span<const Field> fields, size_t size) {
  if (dwords.size() != size) bad("QMD of {} dwords", dwords.size());
  std::vector<uint32_t> left(dwords.begin(), dwords.end());
  QmdFields out;
  for (const Field& f : fields) {
    uint64_t value = 0;
    for (int bit = f.high; bit >= f.low; --bit) {
      value = value << 1 | (dwords[bit / 32] >> bit % 32 & 1);
      left[bit / 32] &= ~(1u << bit % 32);
    }
    if (value) out[f.name] = value;
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i]) bad("QMD, dword {}: bits {:#x} of no field", i, left[i]);
  }
  return out;
}

struct Run {
  uint32_t subchannel, first;
  size_t count;
  const char* names;
};
constexpr Run kRuns[] = {
    {1, 0x0, 1, "SET_OBJECT"},
    {4, 0x0, 1, "SET_OBJECT"},
    {0, 0x20, 1, "NON_STALL_INTERRUPT"},
    {0, 0x5c, 5, "SEM_ADDR_LO SEM_ADDR_HI SEM_PAYLOAD_LO SEM_PAYLOAD_HI SEM_EXECUTE"},
    {0, 0x78, 1, "WFI"},
    {1, 0x2a0, 2, "SET_SHADER_SHARED_MEMORY_WINDOW_A _B"},
    {1, 0x2b4, 1, "SEND_PCAS_A"},
    {1, 0x2c0, 1, "SEND_SIGNALING_PCAS2_B"},
    {1, 0x2e4, 3, "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A _B _C"},
    {1, 0x790, 2, "SET_SHADER_LOCAL_MEMORY_A _B"},
    {1, 0x7b0, 2, "SET_SHADER_LOCAL_MEMORY_WINDOW_A _B"},
    {1, 0x1698, 1, "INVALIDATE_SHADER_CACHES_NO_WFI"},
    {4, 0x300, 1, "LAUNCH_DMA"},
    {4, 0x400, 4, "OFFSET_IN_UPPER OFFSET_IN_LOWER OFFSET_OUT_UPPER OFFSET_OUT_LOWER"},
    {4, 0x418, 1, "LINE_LENGTH_IN"}};

const Run& known(const MethodRun& run) {
  for (const Run& r : kRuns) {
    if (r.subchannel != run.subchannel || r.first != run.first) continue;
    if (r.count != run.data.size()) bad("{}: {} words", r.names, run.data.size());
    return r;
  }
  bad("method {:#x} of subchannel {}", run.first, run.subchannel);
}

}  // namespace

std::string MethodRun::text() const {
  return fmt::format("{} {:#x}", known(*this).names, fmt::join(data, " "));
}

std::vector<MethodRun> decode_methods(std::span<const uint32_t> dwords) {
  std::vector<MethodRun> out;
  for (size_t at = 0; at < dwords.size();) {
    const uint32_t head = dwords[at++];
    if (head == 0x60030002) {  // three words of NOP (clc56f.h: 0x8), not increasing
      at += 3;
      continue;
    }
    if (head >> 29 != 1) bad("word {:#x} is no increasing run of methods", head);
    if (head & 0x1000) bad("word {:#x}: reserved bits", head);
    const size_t count = head >> 16 & 0x1fff;
    MethodRun run{head >> 13 & 7, (head & 0xfff) * 4, {}};
    if (at + count > dwords.size()) bad("{:#x} is cut off", run.first);
    run.data.assign(dwords.begin() + at, dwords.begin() + at + count);
    known(run);
    at += count;
    out.push_back(std::move(run));
  }
  return out;
}

QmdFields decode_qmd(int version, std::span<const uint32_t> dwords) {
  if (version == 3) return decode(dwords, kV03, 64);
  return version == 4 ? decode(dwords, kV04, 96) : decode(dwords, kV05, 96);
}

}  // namespace tuff::devices::nv
