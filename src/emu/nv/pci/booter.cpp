#include "emu/nv/pci/booter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace tuff::emu::nv {
namespace {

constexpr uint64_t kBooterPage = 4096, kBooterMiB = 1u << 20;

// Its words of 64 bits, by name.
struct Description {
  uint64_t magic, revision, image_table, image_bytes, bootloader, bootloader_bytes, code_offset,
      data_offset, manifest_offset, signature, signature_bytes, reserved_begin, open_heap,
      open_heap_bytes, begin, heap, heap_bytes, image_place, bootloader_place, frts, frts_bytes,
      end, video_bytes, screen, screen_bytes, boots, partition[4], counts, verified;
};
static_assert(sizeof(Description) == 256);

std::optional<std::vector<uint8_t>> read_bytes(pci::HostMemory& memory, uint64_t address,
                                               uint64_t size_bytes) {
  std::vector<uint8_t> bytes(size_bytes);
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t in_page = kBooterPage - (address + done) % kBooterPage;
    const uint64_t piece = std::min(size_bytes - done, in_page);
    const std::byte* const at = memory.at(address + done, piece);
    if (!at) return std::nullopt;
    std::memcpy(bytes.data() + done, at, piece);
    done += piece;
  }
  return bytes;
}

std::optional<uint64_t> entry_of(pci::HostMemory& memory, uint64_t table, uint64_t index) {
  const std::byte* const at = memory.at(table + 8 * index, 8);
  if (table % kBooterPage || !at) return std::nullopt;
  uint64_t entry = 0;
  std::memcpy(&entry, at, sizeof entry);
  return entry;
}

// Each page by its own way down three tables.
std::optional<std::vector<uint8_t>> read_image(pci::HostMemory& memory, const Description& d) {
  std::vector<uint8_t> image;
  for (uint64_t page = 0; page * kBooterPage < d.image_bytes; ++page) {
    std::optional<uint64_t> at = d.image_table;
    for (const uint32_t shift : {18, 9, 0})
      if (at) at = entry_of(memory, *at, page >> shift & 511);
    if (!at || *at % kBooterPage) return std::nullopt;
    const uint64_t left = d.image_bytes - page * kBooterPage;
    const auto bytes = read_bytes(memory, *at, std::min(kBooterPage, left));
    if (!bytes) return std::nullopt;
    image.insert(image.end(), bytes->begin(), bytes->end());
  }
  return image;
}

// The first thing that is wrong with where everything is to lie.
std::string check_places(const Description& d, uint64_t video_bytes, uint64_t frts, uint64_t end) {
  if (d.video_bytes != video_bytes) return "another size of video memory";
  if (d.frts != frts || d.end != end || d.frts_bytes != end - frts)
    return "another place of the region that FWSEC has protected";
  if (d.screen + d.screen_bytes != video_bytes || d.end > d.screen || d.end % 0x20000)
    return "what is protected ends elsewhere";
  if (d.bootloader_place % kBooterPage || d.bootloader_place + d.bootloader_bytes > d.frts)
    return "the bootloader's place";
  if (d.image_place % 0x10000 || d.image_place + d.image_bytes > d.bootloader_place)
    return "the image's place";
  if (d.heap % kBooterMiB || d.heap_bytes % kBooterMiB || d.heap + d.heap_bytes > d.image_place ||
      d.heap_bytes < 88 * kBooterMiB)
    return "the heap's place";
  if (d.begin % 0x20000 || d.begin + sizeof d > d.heap) return "where protected memory begins";
  if (d.open_heap % kBooterMiB || d.open_heap != d.reserved_begin ||
      d.open_heap_bytes < kBooterMiB || d.open_heap + d.open_heap_bytes != d.begin)
    return "the place of the heap that is not protected";
  return {};
}

// Files by their contents; then where all is to lie is as the caller says.
std::string check_files(pci::HostMemory& memory, const Description& d, const GspFiles& files) {
  if (d.magic != 0xdc3aae21371a60b3 || d.revision != 1 || d.verified != 0 || d.boots != 0)
    return fmt::format("a description that begins with {:#x}", d.magic);
  if (d.code_offset >= d.bootloader_bytes || d.data_offset >= d.bootloader_bytes ||
      d.manifest_offset >= d.bootloader_bytes)
    return "offsets in the bootloader";
  if (read_bytes(memory, d.bootloader, d.bootloader_bytes) != files.bootloader)
    return "another bootloader";
  std::vector<uint8_t> padded = files.signature;
  padded.resize((padded.size() + 255) / 256 * 256);
  if (read_bytes(memory, d.signature, d.signature_bytes) != padded) return "another signature";
  if (read_image(memory, d) != files.image) return "another image";
  return {};
}

std::optional<Description> read_description(pci::HostMemory& memory, uint64_t address) {
  const auto bytes = read_bytes(memory, address, sizeof(Description));
  if (!bytes) return std::nullopt;
  Description d;
  std::memcpy(&d, bytes->data(), sizeof d);
  return d;
}

BootedFirmware refused_firmware(const std::string& why) { return {why, 0, 0, 0}; }

}  // namespace

BootedFirmware boot_firmware(pci::HostMemory& memory, uint64_t description, const GspFiles& files,
                             uint64_t video_bytes, uint64_t frts, uint64_t protected_end) {
  const auto d = read_description(memory, description);
  if (!d) return refused_firmware("no description");
  for (const std::string& wrong :
       {check_places(*d, video_bytes, frts, protected_end), check_files(memory, *d, files)})
    if (!wrong.empty()) return refused_firmware(wrong);
  return {{}, d->begin, d->end, d->open_heap};
}

// Downwards from what is to be kept free.
BootedFirmware place_firmware(pci::HostMemory& memory, uint64_t description, const GspFiles& files,
                              uint64_t video_bytes, uint64_t end_bytes) {
  const auto d = read_description(memory, description);
  if (!d) return refused_firmware("no description");
  if (const std::string wrong = check_files(memory, *d, files); !wrong.empty())
    return refused_firmware(wrong);
  if (d->reserved_begin || d->begin || d->heap || d->image_place || d->end || d->video_bytes ||
      d->screen)
    return refused_firmware("places, where FSP decides on them");
  if (d->heap_bytes < 88 * kBooterMiB || d->open_heap_bytes < 2 * kBooterMiB ||
      d->frts_bytes != kBooterMiB || d->screen_bytes != 0x20000)
    return refused_firmware("sizes that are too small");
  const uint64_t end = video_bytes - end_bytes;
  const uint64_t all = d->frts_bytes + d->bootloader_bytes + d->image_bytes + d->heap_bytes;
  const uint64_t begin = (end - all) / kBooterMiB * kBooterMiB - kBooterMiB;
  return {{}, begin, end, begin - d->open_heap_bytes};
}

// Packed: version and bytes, image, FRTS in the host's memory, FRTS from the end of video memory,
// hash, key, signature, arguments.
FspRequest read_request(pci::HostMemory& memory, const std::vector<uint32_t>& payload,
                        const FmcFiles& files) {
  constexpr size_t hash = 36, key = 84, signature = 468, arguments = 852, all = 860;
  FspRequest r;
  std::vector<uint8_t> bytes(4 * payload.size());
  if (!payload.empty()) std::memcpy(bytes.data(), payload.data(), bytes.size());
  const auto number = [&](size_t at, size_t size_bytes) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size_bytes);
    return value;
  };
  const auto has = [&](size_t at, const std::vector<uint8_t>& wanted) {
    return std::equal(wanted.begin(), wanted.end(), bytes.begin() + ptrdiff_t(at));
  };
  if (bytes.size() != all || number(0, 2) != files.version || number(2, 2) != all)
    return r.refusal = "another form of message", r;
  if (!has(hash, files.hash) || !has(key, files.public_key) || !has(signature, files.signature) ||
      read_bytes(memory, number(4, 8), files.image.size()) != files.image)
    return r.refusal = "another first program", r;
  r.end_bytes = number(24, 8);
  if (number(12, 8) || number(20, 4) || r.end_bytes % (2 * kBooterMiB) ||
      number(32, 4) != kBooterMiB)
    return r.refusal = "another region", r;
  r.arguments = number(arguments, 8);
  const auto boot = read_bytes(memory, r.arguments, 80);
  if (!boot) return r.refusal = "no arguments", r;
  uint64_t words[10];
  std::memcpy(words, boot->data(), sizeof words);
  if (words[1] != (256ull << 32 | 1) || words[4] != 1ull << 32 || words[5] != 1)
    return r.refusal = "other arguments", r;
  r.description = words[2];
  r.libos_arguments = words[6];
  return r;
}

}  // namespace tuff::emu::nv
