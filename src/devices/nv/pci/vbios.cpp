#include "devices/nv/pci/vbios.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/arith.h"
#include "devices/byte_reader.h"

namespace tuff::devices::nv {
namespace {

constexpr const char* kVbios = "VBIOS";

// ---- images

constexpr uint16_t kImageSignatures[] = {0xaa55, 0xbb77, 0x4e56};
constexpr uint32_t kDataSignatures[] = {0x52494350, 0x5344504e, 0x53494752};  // PCIR NPDS RGIS
constexpr uint32_t kExtensionSignature = 0x4544504e;                          // NPDE
constexpr uint64_t kBlock = 512;  // bytes: images are counted in these
constexpr uint8_t kBaseImage = 0x00, kExtensionImage = 0xe0, kLast = 0x80;

template <class T, size_t n>
bool is_one_of(T value, const T (&all)[n]) {
  return std::find(std::begin(all), std::end(all), value) != std::end(all);
}

// Before the images there may be values for registers (IFR), which say where the images begin.
uint64_t first_image(const ByteReader& rom) {
  constexpr uint32_t signature = 0x4947564e, directory_signature = 0x44524652;  // NVGI, RFRD
  constexpr const char* what = "the header of its values for registers";
  if (is_one_of(rom.u16(0, "the signature of its first image"), kImageSignatures)) return 0;
  if (rom.u32(0, what) != signature)
    rom.damaged("no image begins with {:#06x}, nor is there a table before them",
                rom.u16(0, what));
  const uint32_t fixed = rom.u32(4, what), version = fixed >> 8 & 0xff;
  if (version == 1 || version == 2) return rom.u32((fixed >> 16 & 0x7fff) + 4ull, what);
  if (version != 3) rom.damaged("values for registers of version {}", version);
  const uint64_t directory = 4096ull + rom.u32(rom.u32(8, what) & 0xfffff, what);
  if (rom.u32(directory, what) != directory_signature)
    rom.damaged("no directory is at {:#x}", directory);
  return rom.u32(directory + 8, what);
}

struct Image {
  uint8_t kind = 0;
  uint64_t size_bytes = 0;
  bool is_last = false;
};

Image read_image(const ByteReader& rom, uint64_t begin) {
  constexpr const char* what = "the data structure of an image";
  if (!is_one_of(rom.u16(begin, "an image"), kImageSignatures))
    rom.damaged("no image is at {:#x}", begin);
  const uint64_t data = begin + rom.u16(begin + 0x18, what);
  if (!is_one_of(rom.u32(data, what), kDataSignatures))
    rom.damaged("the image at {:#x} has no data structure at {:#x}", begin, data);
  uint32_t blocks = rom.u16(data + 0x10, what);
  Image image{rom.u8(data + 0x14, what), 0, (rom.u8(data + 0x15, what) & kLast) != 0};
  // NVIDIA's extension of it counts anew, where an image is split.
  const uint64_t extension = align_up(data + rom.u16(data + 0xa, what), 16);
  if (rom.has(extension, 12) && rom.u32(extension, what) == kExtensionSignature &&
      (rom.u16(extension + 4, what) & ~1u) == 0x100) {
    const uint32_t part = rom.u16(extension + 8, what);
    if (rom.u16(extension + 6, what) > 10)
      image.is_last = (rom.u8(extension + 10, what) & kLast) != 0;
    else
      image.is_last = image.is_last && part >= blocks;
    blocks = part;
  }
  image.size_bytes = blocks * kBlock;
  if (blocks == 0 && !image.is_last) rom.damaged("the image at {:#x} has no bytes", begin);
  return image;
}

// The images, without what comes before them; and what is to be added to offsets that count as if
// the extension lay directly behind the base image.
struct Images {
  std::span<const uint8_t> bytes;
  uint64_t extension = 0;
};

Images read_images(std::span<const uint8_t> all) {
  const ByteReader rom(all, kVbios);
  const uint64_t first = first_image(rom);
  if (first % 4) rom.damaged("the images begin at {:#x}", first);
  std::optional<uint64_t> base_bytes, extension;
  uint64_t at = first;
  for (bool is_last = false; !is_last;) {
    const Image image = read_image(rom, at);
    if (image.kind == kExtensionImage && !extension) extension = at - first;
    if (image.kind == kBaseImage && !base_bytes) base_bytes = image.size_bytes;
    at += image.size_bytes;
    is_last = image.is_last;
  }
  Images images{rom.range(first, at - first, "the last image"), 0};
  if (base_bytes && extension && *base_bytes <= *extension)
    images.extension = *extension - *base_bytes;
  return images;
}

// ---- the table of tables (BIT)

constexpr uint16_t kBitId = 0xb8ff;
constexpr uint32_t kBitSignature = 0x00544942;  // "BIT"
constexpr uint8_t kFalconToken = 0x70, kFalconVersion = 2;
constexpr uint8_t kFwsecOfOne = 0x05, kFwsecOfDebug = 0x45, kFwsecOfProduction = 0x85;

uint64_t find_bit(const ByteReader& images) {
  constexpr uint64_t least = 12;
  for (uint64_t at = 0; images.has(at, least); ++at) {
    if (images.u16(at, "") != kBitId || images.u32(at + 2, "") != kBitSignature) continue;
    const uint64_t header = images.u8(at + 8, "");
    if (header < least || !images.has(at, header)) continue;
    uint8_t sum = 0;
    for (const uint8_t byte : images.range(at, header, "")) sum = uint8_t(sum + byte);
    if (sum == 0) return at;
  }
  images.damaged("no table of tables (BIT) with a right checksum");
}

// Offset of FWSEC's descriptor among the programs of one table, if it is there.
std::optional<uint64_t> find_fwsec(const ByteReader& images, uint64_t table, uint64_t extension,
                                   bool debug) {
  constexpr const char* what = "the table of falcon programs";
  const uint64_t header = images.u8(table + 1, what), entry = images.u8(table + 2, what);
  if (images.u8(table, what) != 1 || header < 6 || entry < 6) return std::nullopt;
  const uint8_t wanted = debug ? kFwsecOfDebug : kFwsecOfProduction;
  for (uint64_t i = 0; i < images.u8(table + 3, what); ++i) {
    const uint64_t at = table + header + i * entry;
    const uint8_t application = images.u8(at, what);
    if (application == wanted || application == kFwsecOfOne)
      return extension + images.u32(at + 2, what);
  }
  return std::nullopt;
}

uint64_t find_descriptor(const ByteReader& images, uint64_t extension, bool debug) {
  constexpr const char* what = "an entry of its table of tables";
  const uint64_t bit = find_bit(images);
  const uint64_t header = images.u8(bit + 8, what), token_bytes = images.u8(bit + 9, what);
  for (uint64_t i = 0; i < images.u8(bit + 10, what); ++i) {
    const uint64_t token = bit + header + i * token_bytes;
    if (images.u8(token, what) != kFalconToken || images.u8(token + 1, what) != kFalconVersion ||
        images.u16(token + 2, what) < 4)
      continue;
    const uint64_t table = images.u32(images.u16(token + 4, what), what);
    if (const auto found = find_fwsec(images, extension + table, extension, debug)) return *found;
  }
  images.damaged("no program FWSEC for {} is among its falcon programs",
                 debug ? "development" : "production");
}

// ---- descriptors

std::vector<uint8_t> copy_of(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

// Words behind the first: stored and unpacked size, entry, interfaces, IMEM's physical address,
// size and virtual address, that of its secure part and its size, DMEM's offset, physical address
// and size.
Fwsec read_version_2(const ByteReader& images, uint64_t at, uint64_t descriptor_bytes) {
  const auto word = [&](uint64_t n) { return images.u32(at + 4 * n, "FWSEC's descriptor"); };
  Fwsec f;
  f.has_loader = true;
  f.entry = word(3);
  f.interface_offset = word(4);
  const uint64_t stored = at + descriptor_bytes;
  f.code = {copy_of(images.range(stored, word(6), "FWSEC's code")), word(5), word(7)};
  f.data = {copy_of(images.range(stored + word(10), word(12), "FWSEC's data")), word(11), 0};
  f.secure_offset = word(8) - word(7);
  f.secure_bytes = word(9);
  if (word(8) < word(7) || f.secure_offset > f.code.bytes.size() ||
      f.secure_bytes > f.code.bytes.size() - f.secure_offset)
    images.damaged("FWSEC's secure code ({} bytes at {:#x}) is none of its {} bytes at {:#x}",
                   f.secure_bytes, word(8), f.code.bytes.size(), word(7));
  return f;
}

// Words: stored size, place of the signature, interfaces, IMEM's physical address, size and virtual
// address, DMEM's physical address and size; then numbers of two bytes and of one.
Fwsec read_version_3(const ByteReader& images, uint64_t at, uint64_t descriptor_bytes) {
  constexpr uint64_t fixed = 44;
  constexpr const char* what = "FWSEC's descriptor";
  const auto word = [&](uint64_t n) { return images.u32(at + 4 * n, what); };
  Fwsec f;
  f.signature_offset = word(2);
  f.interface_offset = word(3);
  const uint64_t code = at + descriptor_bytes;
  f.code = {copy_of(images.range(code, word(5), "FWSEC's code")), word(4), word(6)};
  f.data = {copy_of(images.range(code + word(5), word(8), "FWSEC's data")), word(7), 0};
  f.engine_mask = images.u16(at + 36, what);
  f.ucode_id = images.u8(at + 38, what);
  f.signature_versions = images.u16(at + 40, what);
  const uint64_t count = images.u8(at + 39, what);
  if (count * sizeof(FalconSignature) > descriptor_bytes - fixed)
    images.damaged("{} signatures are in {} bytes", count, descriptor_bytes - fixed);
  for (uint64_t i = 0; i < count; ++i) {
    const auto from = images.range(at + fixed + i * sizeof(FalconSignature),
                                   sizeof(FalconSignature), "a signature");
    std::copy(from.begin(), from.end(), f.signatures.emplace_back().begin());
  }
  if (f.data.bytes.size() < sizeof(FalconSignature) ||
      f.signature_offset > f.data.bytes.size() - sizeof(FalconSignature))
    images.damaged("FWSEC's signature belongs to {:#x}, beyond {} bytes of data",
                   f.signature_offset, f.data.bytes.size());
  return f;
}

// ---- commands

// Where in the data a command goes, and what says which it is.
struct CommandPlace {
  uint64_t number_offset = 0, arguments_offset = 0;
};

CommandPlace find_commands(const ByteReader& data, uint32_t interface_offset,
                           uint64_t argument_bytes) {
  constexpr uint32_t mapper = 4;
  constexpr const char* what = "the table of its interfaces";
  const uint64_t header = std::max<uint64_t>(data.u8(interface_offset + 1ull, what), 4);
  const uint64_t entry = std::max<uint64_t>(data.u8(interface_offset + 2ull, what), 8);
  for (uint64_t i = 0; i < data.u8(interface_offset + 3ull, what); ++i) {
    const uint64_t at = interface_offset + header + i * entry;
    if (data.u32(at, what) != mapper) continue;
    const uint64_t found = data.u32(at + 4, what);
    const CommandPlace place{found + 44, data.u32(found + 8, "its interface of commands")};
    if (data.u32(found + 12, "its interface of commands") < argument_bytes)
      data.damaged("it takes commands of {} bytes, not of {}",
                   data.u32(found + 12, "its interface of commands"), argument_bytes);
    data.range(place.number_offset, 4, "a command's number");
    data.range(place.arguments_offset, argument_bytes, "a command's arguments");
    return place;
  }
  data.damaged("it has no interface of commands");
}

// What it reads of the VBIOS: version, size, then offset and size of an image that there is not,
// and flags; for Frts also the region: version, size, page number, pages, and that it is video
// memory.
std::vector<uint32_t> arguments_of(FwsecCommand command, uint64_t frts_offset) {
  constexpr uint32_t flags = 2, video_memory = 2;
  std::vector<uint32_t> words = {1, 24, 0, 0, 0, flags};
  if (command == FwsecCommand::Frts)
    words.insert(words.end(),
                 {1, 20, uint32_t(frts_offset >> 12), uint32_t(kFrtsBytes >> 12), video_memory});
  return words;
}

const FalconSignature& signature_of(const Fwsec& f, uint32_t version, const ByteReader& data) {
  constexpr uint32_t versions = 16;
  const bool is_signed = version < versions && (f.signature_versions >> version & 1);
  const auto below = is_signed ? f.signature_versions & ((1u << version) - 1) : 0;
  const auto index = size_t(std::popcount(below));
  if (!is_signed || index >= f.signatures.size())
    data.damaged("it is signed for versions {:#x} ({} signatures), the GPU's fuses ask for {}",
                 f.signature_versions, f.signatures.size(), version);
  return f.signatures[index];
}

}  // namespace

Fwsec read_fwsec(std::span<const uint8_t> rom, bool debug) {
  const Images all = read_images(rom.first(std::min(rom.size(), kVbiosBytes)));
  const ByteReader images(all.bytes, kVbios);
  const uint64_t at = find_descriptor(images, all.extension, debug);
  const uint32_t head = images.u32(at, "FWSEC's descriptor");
  const uint32_t version = head >> 8 & 0xff, bytes = head >> 16;
  const bool has_version = head & 1;
  if (has_version && version == 2 && bytes >= 60) return read_version_2(images, at, bytes);
  if (has_version && version == 3 && bytes >= 44) return read_version_3(images, at, bytes);
  images.damaged("FWSEC's descriptor begins with {:#010x}: none of versions 2 and 3", head);
}

std::vector<uint8_t> fwsec_data(const Fwsec& fwsec, FwsecCommand command, uint64_t frts_offset,
                                uint32_t fuse_version) {
  TUFF_CHECK(frts_offset % 4096 == 0 && frts_offset >> 44 == 0, "{:#x}", frts_offset);
  std::vector<uint8_t> bytes = fwsec.data.bytes;
  const ByteReader data(fwsec.data.bytes, "FWSEC");
  const auto arguments = arguments_of(command, frts_offset);
  const auto place = find_commands(data, fwsec.interface_offset, 4 * arguments.size());
  const auto number = uint32_t(command);
  std::memcpy(bytes.data() + place.number_offset, &number, sizeof number);
  std::memcpy(bytes.data() + place.arguments_offset, arguments.data(), 4 * arguments.size());
  if (!fwsec.has_loader) {
    const FalconSignature& signature = signature_of(fwsec, fuse_version, data);
    std::copy(signature.begin(), signature.end(), bytes.begin() + fwsec.signature_offset);
  }
  return bytes;
}

}  // namespace tuff::devices::nv
