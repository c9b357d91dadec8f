#include "devices/amd/pci/discovery.h"

#include <algorithm>

#include "base/check.h"
#include "devices/byte_reader.h"

namespace tuff::devices::amd {
namespace {

constexpr uint32_t kSignature = 0x28211407, kBlocksSignature = 0x53445049, kGcTable = 0x4347,
                   kHarvestSignature = 0x56524148;
constexpr uint64_t kSummedFrom = 10, kTables = 12, kTableBytes = 8;
enum Table : uint8_t { kBlocks = 0, kGc = 1, kHarvest = 2 };
constexpr uint16_t kHeaderMajor = 1, kNewestBlocks = 4, kMostDies = 16;
constexpr uint64_t kHarvestEntries = 32, kHarvestBytes = 8 + 4 * kHarvestEntries;

struct Place {
  uint64_t offset = 0;
  uint16_t checksum = 0;
};

Place place_of(const ByteReader& in, Table table) {
  const uint64_t at = kTables + table * kTableBytes;
  return {in.u16(at, "a table's place"), in.u16(at + 2, "a table's checksum")};
}

// The low half of the sum of its bytes.
void check_sum(const ByteReader& in, uint64_t offset, uint64_t size_bytes, uint16_t expected,
               const char* what) {
  uint16_t sum = 0;
  for (const uint8_t byte : in.range(offset, size_bytes, what)) sum = uint16_t(sum + byte);
  if (sum != expected) in.damaged("{}: the sum is {:#x}, not {:#x}", what, sum, expected);
}

void check_header(const ByteReader& in) {
  const uint32_t signature = in.u32(0, "the signature");
  if (signature != kSignature)
    in.damaged("the signature is {:#x}, not {:#x}", signature, kSignature);
  const uint16_t major = in.u16(4, "the version");
  if (major != kHeaderMajor) in.damaged("version {} of the header is not known", major);
  const uint16_t size = in.u16(10, "the size");
  if (size < kTables) in.damaged("it is {} bytes long", size);
  check_sum(in, kSummedFrom, size - kSummedFrom, in.u16(8, "the checksum"), "the whole");
}

// The entries of a die, one after the other.
void read_die(const ByteReader& in, uint64_t at, uint64_t base_bytes, Discovery& out) {
  const uint16_t count = in.u16(at + 2, "the number of blocks");
  at += 4;
  for (uint16_t n = 0; n < count; ++n) {
    IpBlock b;
    b.hw_id = in.u16(at, "a block");
    b.instance = in.u8(at + 2, "a block's instance");
    const uint8_t bases = in.u8(at + 3, "a block's number of segments");
    b.version = {in.u8(at + 4, "a version"), in.u8(at + 5, "a version"),
                 in.u8(at + 6, "a version")};
    at += 8;
    for (uint8_t i = 0; i < bases; ++i, at += base_bytes)
      b.bases.push_back(base_bytes == 8 ? in.number<uint64_t>(at, "a segment's base")
                                        : in.u32(at, "a segment's base"));
    out.blocks.push_back(std::move(b));
  }
}

void read_blocks(const ByteReader& in, Discovery& out) {
  const Place place = place_of(in, kBlocks);
  const uint32_t signature = in.u32(place.offset, "the list of blocks");
  if (signature != kBlocksSignature)
    in.damaged("the list of blocks has signature {:#x}, not {:#x}", signature, kBlocksSignature);
  const uint16_t version = in.u16(place.offset + 4, "the list's version");
  if (version > kNewestBlocks) in.damaged("version {} of the list is not known", version);
  check_sum(in, place.offset, in.u16(place.offset + 6, "the list's size"), place.checksum,
            "the list of blocks");
  const uint16_t dies = in.u16(place.offset + 12, "the number of dies");
  if (dies > kMostDies) in.damaged("there are {} dies, of at most {}", dies, kMostDies);
  const bool wide = version == 4 && (in.u8(place.offset + 78, "the width of bases") & 1);
  for (uint16_t die = 0; die < dies; ++die)
    read_die(in, in.u16(place.offset + 14 + 4 * die + 2, "a die's place"), wide ? 8 : 4, out);
}

void read_harvested(const ByteReader& in, Discovery& out) {
  const Place place = place_of(in, kHarvest);
  if (place.offset == 0) return;
  const uint32_t signature = in.u32(place.offset, "the list of what is fused off");
  if (signature != kHarvestSignature)
    in.damaged("the list of what is fused off has signature {:#x}, not {:#x}", signature,
               kHarvestSignature);
  check_sum(in, place.offset, kHarvestBytes, place.checksum, "the list of what is fused off");
  for (uint64_t n = 0; n < kHarvestEntries; ++n) {
    const uint64_t at = place.offset + 8 + 4 * n;
    const uint16_t id = in.u16(at, "what is fused off");
    if (id == 0) break;
    const uint8_t instance = in.u8(at + 2, "what is fused off");
    for (IpBlock& b : out.blocks) b.harvested |= b.hw_id == id && b.instance == instance;
  }
}

// Of version 1 (RDNA); 2 is CDNA's.
void read_gc(const ByteReader& in, Discovery& out) {
  const Place place = place_of(in, kGc);
  const auto word = [&](uint64_t offset) {
    return in.u32(place.offset + offset, "the graphics block");
  };
  if (word(0) != kGcTable)
    in.damaged("the graphics block has id {:#x}, not {:#x}", word(0), kGcTable);
  const uint16_t major = in.u16(place.offset + 4, "the graphics block's version");
  if (major != 1) in.damaged("version {} of the graphics block is not known", major);
  check_sum(in, place.offset, word(8), place.checksum, "the graphics block");
  GcShape& g = out.gc;
  const uint64_t wgps = uint64_t{word(16)} + word(20);
  g = {word(12), word(76), uint32_t(wgps), word(56), word(60), word(64), word(68)};
  constexpr uint32_t most = 64;
  const auto right = [&](uint64_t n) { return n > 0 && n <= most; };
  if (!right(g.engines) || !right(g.arrays_per_engine) || !right(wgps) ||
      !right(g.max_waves_per_simd))
    in.damaged("{} shader engines of {} arrays of {} workgroup processors, {} waves a SIMD",
               g.engines, g.arrays_per_engine, wgps, g.max_waves_per_simd);
}

}  // namespace

const char* name(Hwid id) {
  switch (id) {
    case Hwid::Mp1: return "MP1";
    case Hwid::Smuio: return "SMUIO";
    case Hwid::Gc: return "GC";
    case Hwid::Mmhub: return "MMHUB";
    case Hwid::Osssys: return "OSSSYS";
    case Hwid::Hdp: return "HDP";
    case Hwid::Sdma0: return "SDMA0";
    case Hwid::Nbif: return "NBIO";
    case Hwid::Mp0: return "MP0";
  }
  return "a block";
}

std::string to_text(const IpVersion& v) {
  return fmt::format("{}.{}.{}", v.major, v.minor, v.revision);
}

const IpBlock& Discovery::block(Hwid id, uint8_t instance) const {
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const IpBlock& b) {
    return b.hw_id == uint16_t(id) && b.instance == instance;
  });
  if (found == blocks.end()) fail<Unsupported>("AMD: the GPU has no {} {}", name(id), instance);
  if (found->harvested) fail<Unsupported>("AMD: the GPU's {} {} is fused off", name(id), instance);
  return *found;
}

Discovery read_discovery(std::span<const uint8_t> bytes) {
  const ByteReader in(bytes, "AMD: discovery table");
  check_header(in);
  Discovery out;
  read_blocks(in, out);
  read_harvested(in, out);
  read_gc(in, out);
  return out;
}

}  // namespace tuff::devices::amd
