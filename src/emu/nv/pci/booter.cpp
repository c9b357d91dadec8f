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

}  // namespace

BootedFirmware boot_firmware(pci::HostMemory& memory, uint64_t description, const GspFiles& files,
                             uint64_t video_bytes, uint64_t frts, uint64_t protected_end) {
  const auto refuse = [](const std::string& why) { return BootedFirmware{why, 0, 0}; };
  const auto bytes = read_bytes(memory, description, sizeof(Description));
  if (!bytes) return refuse("no description");
  Description d;
  std::memcpy(&d, bytes->data(), sizeof d);
  if (d.magic != 0xdc3aae21371a60b3 || d.revision != 1 || d.verified != 0 || d.boots != 0)
    return refuse(fmt::format("a description that begins with {:#x}", d.magic));
  if (const std::string wrong = check_places(d, video_bytes, frts, protected_end); !wrong.empty())
    return refuse(wrong);
  if (d.code_offset >= d.bootloader_bytes || d.data_offset >= d.bootloader_bytes ||
      d.manifest_offset >= d.bootloader_bytes)
    return refuse("offsets in the bootloader");
  if (read_bytes(memory, d.bootloader, d.bootloader_bytes) != files.bootloader)
    return refuse("another bootloader");
  auto signature = read_bytes(memory, d.signature, d.signature_bytes);
  std::vector<uint8_t> padded = files.signature;
  padded.resize((padded.size() + 255) / 256 * 256);
  if (signature != padded) return refuse("another signature");
  if (read_image(memory, d) != files.image) return refuse("another image");
  return {{}, d.begin, d.open_heap};
}

}  // namespace tuff::emu::nv
