#include "devices/nv/pci/gsp_arguments.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "devices/nv/pci/gsp_queue.h"
#include "devices/nv/pci/vbios.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kTablePage = 4096, kEntriesPerPage = kTablePage / sizeof(uint64_t);

template <std::integral T>
void put_at(Bytes& bytes, size_t offset, T value) {
  TUFF_CHECK(offset + sizeof value <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Pages of each level, the image's last.
std::array<size_t, 4> pages_of(size_t image_bytes) {
  std::array<size_t, 4> pages{};
  pages[3] = ceil_div(image_bytes, kTablePage);
  for (size_t i = 3; i > 0; --i) pages[i - 1] = ceil_div(pages[i], kEntriesPerPage);
  if (image_bytes == 0 || pages[0] != 1)
    fail<InvalidArgument>("NV: a GSP image of {} bytes fits no table of three levels", image_bytes);
  return pages;
}

uint64_t id_of(const std::string& name) {
  TUFF_CHECK(!name.empty() && name.size() <= sizeof(uint64_t), "{}", name);
  uint64_t id = 0;
  for (const char c : name) id = id << 8 | uint8_t(c);
  return id;
}

// Domain, bus and device as one number, without the function: "0000:01:00.0" is 0x100.
uint64_t number_of(const std::string& address) {
  uint32_t parts[4] = {};
  const char* at = address.data();
  const char* const end = at + address.size();
  for (uint32_t& part : parts) {
    const auto [next, error] = std::from_chars(at, end, part, 16);
    if (error != std::errc()) fail<InvalidArgument>("{} is no address of a PCI function", address);
    at = next == end ? end : next + 1;
  }
  return uint64_t{parts[0]} << 32 | parts[1] << 8 | parts[2];
}

}  // namespace

// ---- the image

size_t image_table_bytes(size_t image_bytes) {
  size_t pages = 0;
  for (const size_t level : pages_of(image_bytes)) pages += level;
  return pages * kTablePage;
}

void write_image_table(std::span<std::byte> memory, uint64_t address,
                       std::span<const uint8_t> image) {
  TUFF_CHECK(memory.size() >= image_table_bytes(image.size()) && address % kTablePage == 0);
  const auto pages = pages_of(image.size());
  size_t level_page = 0;
  for (size_t level = 0; level < 3; ++level) {
    const size_t next_page = level_page + pages[level];
    for (size_t i = 0; i < pages[level + 1]; ++i) {
      const uint64_t entry = address + (next_page + i) * kTablePage;
      std::memcpy(memory.data() + level_page * kTablePage + i * sizeof entry, &entry, sizeof entry);
    }
    level_page = next_page;
  }
  std::memcpy(memory.data() + level_page * kTablePage, image.data(), image.size());
}

// ---- what starts it

Bytes memory_description(const MemoryLayout& layout, const Bootloader& bootloader,
                         uint64_t image_table, uint64_t image_bytes, DmaRange bootloader_range,
                         DmaRange signature) {
  constexpr uint64_t magic = 0xdc3aae21371a60b3, revision = 1;
  const uint64_t words[] = {
      magic,
      revision,
      image_table,
      image_bytes,
      bootloader_range.address,
      bootloader_range.size_bytes,
      bootloader.code_offset,
      bootloader.data_offset,
      bootloader.manifest_offset,
      signature.address,
      signature.size_bytes,
      layout.open_heap,  // from where on the host leaves memory alone
      layout.open_heap,
      layout.protected_begin - layout.open_heap,
      layout.protected_begin,
      layout.heap,
      layout.heap_bytes,
      layout.image,
      layout.bootloader,
      layout.frts,
      kFrtsBytes,
      layout.protected_end,
      layout.total,
      layout.screen,
      layout.total - layout.screen,
  };
  static_assert(sizeof words == 200);  // the count of boots follows
  Bytes bytes(kDescriptionBytes);
  std::memcpy(bytes.data(), words, sizeof words);
  return bytes;
}

// ---- what FSP starts

Bytes memory_wish(const MemorySizes& sizes, const Bootloader& bootloader, uint64_t image_table,
                  uint64_t image_bytes, DmaRange bootloader_range, DmaRange signature) {
  constexpr uint64_t screen_bytes = 128u << 10;
  MemoryLayout nowhere;
  nowhere.heap_bytes = sizes.heap_bytes;
  nowhere.total = screen_bytes;
  Bytes bytes = memory_description(nowhere, bootloader, image_table, image_bytes, bootloader_range,
                                   signature);
  put_at(bytes, 104, sizes.open_heap_bytes);
  put_at(bytes, 176, uint64_t{0});  // the size of memory, which FSP knows
  put_at(bytes, 244, uint32_t(sizes.reserved_bytes));
  return bytes;
}

Bytes fmc_arguments(uint64_t description, uint64_t libos_arguments) {
  constexpr uint32_t coherent_host = 1;
  Bytes bytes(80);
  put_at(bytes, 8, coherent_host);
  put_at(bytes, 12, uint32_t{kDescriptionBytes});
  put_at(bytes, 16, description);
  put_at(bytes, 36, uint8_t{1});  // the resource manager, not something in its place
  put_at(bytes, 40, coherent_host);
  put_at(bytes, 48, libos_arguments);
  return bytes;
}

Bytes chain_of_trust(const Fmc& fmc, uint16_t version, uint64_t image, uint64_t arguments,
                     uint64_t end_bytes) {
  constexpr uint64_t alignment = 2u << 20;
  constexpr size_t hash_at = 36, key_at = 84, signature_at = 468;  // each packed behind the other
  Bytes bytes(860);
  put_at(bytes, 0, version);
  put_at(bytes, 2, uint16_t(bytes.size()));
  put_at(bytes, 4, image);
  put_at(bytes, 24, align_up(end_bytes, alignment));  // FRTS, from the end of video memory
  put_at(bytes, 32, uint32_t{kFrtsBytes});
  const auto put_bytes = [&](size_t at, std::span<const uint8_t> from) {
    TUFF_CHECK(at + from.size() <= bytes.size());
    std::copy(from.begin(), from.end(), bytes.begin() + ptrdiff_t(at));
  };
  put_bytes(hash_at, fmc.hash);
  put_bytes(key_at, fmc.public_key);
  put_bytes(signature_at, fmc.signature);
  put_at(bytes, 852, arguments);
  return bytes;
}

// ---- arguments

void write_log_header(std::span<std::byte> memory, uint64_t address) {
  TUFF_CHECK(memory.size() == kLogBytes);
  for (size_t page = 0; page < kLogBytes / kTablePage; ++page) {
    const uint64_t at = address + page * kTablePage;
    std::memcpy(memory.data() + (1 + page) * sizeof at, &at, sizeof at);
  }
}

Bytes libos_arguments(std::span<const std::pair<std::string, DmaRange>> ranges) {
  constexpr size_t bytes_each = 32;
  constexpr uint8_t contiguous = 1, in_host_memory = 1;
  Bytes bytes(bytes_each * ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const size_t at = i * bytes_each;
    put_at(bytes, at, id_of(ranges[i].first));
    put_at(bytes, at + 8, ranges[i].second.address);
    put_at(bytes, at + 16, ranges[i].second.size_bytes);
    put_at(bytes, at + 24, contiguous);
    put_at(bytes, at + 25, in_host_memory);
  }
  return bytes;
}

Bytes rm_arguments(DmaRange queues) {
  TUFF_CHECK(queues.size_bytes == GspQueues::kBytes);
  constexpr uint8_t stack_in_data_memory = 1;
  Bytes bytes(72);
  put_at(bytes, 0, queues.address);
  put_at(bytes, 8, uint32_t(GspQueues::kPages));
  put_at(bytes, 16, uint64_t(GspQueues::kCommands));
  put_at(bytes, 24, uint64_t(GspQueues::kStatus));
  put_at(bytes, 48, stack_in_data_memory);
  return bytes;
}

// ---- messages before its start

Bytes system_info(const PciFunction& function, const PciIdentity& identity) {
  // What is 0 is so for a GPU that no power management and no other driver knows.
  constexpr uint64_t end_of_user_addresses = 0x7ffffffff000;
  constexpr uint32_t mirror_of_configuration = 0x88000, host_page_bytes = 4096;  // in BAR 0
  Bytes bytes(928);
  put_at(bytes, 0, function.bar_address[0]);
  put_at(bytes, 8, function.bar_address[1]);
  put_at(bytes, 16, function.bar_address[3]);
  put_at(bytes, 32, number_of(function.address));
  put_at(bytes, 72, end_of_user_addresses);
  put_at(bytes, 80, mirror_of_configuration);
  put_at(bytes, 84, uint32_t{0x1000});
  put_at(bytes, 88, identity.device);
  put_at(bytes, 92, identity.subsystem);
  put_at(bytes, 96, uint32_t{identity.revision});
  put_at(bytes, 840, uint8_t{1});  // passed through, as to a virtual machine
  put_at(bytes, 920, uint64_t{host_page_bytes});
  return bytes;
}

Bytes registry() {
  struct Entry {
    const char* name;
    uint32_t value;
  };
  // It may be reset by its bus, keeps its configuration then, and starts on boards whose numbers it
  // does not know.
  constexpr Entry entries[] = {
      {"RMSecBusResetEnable", 1}, {"RMForcePcieConfigSave", 1}, {"RMDevidCheckIgnore", 1}};
  constexpr uint8_t is_number = 1;
  constexpr size_t header_bytes = 8, entry_bytes = 16;
  Bytes bytes(header_bytes + std::size(entries) * entry_bytes);
  for (size_t i = 0; i < std::size(entries); ++i) {
    const size_t at = header_bytes + i * entry_bytes;
    put_at(bytes, at, uint32_t(bytes.size()));
    put_at(bytes, at + 4, is_number);
    put_at(bytes, at + 8, entries[i].value);
    put_at(bytes, at + 12, uint32_t(sizeof entries[i].value));
    const char* const name = entries[i].name;
    bytes.insert(bytes.end(), name, name + std::strlen(name) + 1);
  }
  put_at(bytes, 0, uint32_t(bytes.size()));
  put_at(bytes, 4, uint32_t(std::size(entries)));
  return bytes;
}

}  // namespace tuff::devices::nv
