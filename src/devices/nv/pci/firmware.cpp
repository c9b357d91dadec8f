#include "devices/nv/pci/firmware.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "devices/byte_reader.h"

namespace tuff::devices::nv {
namespace {

constexpr uint32_t kContainerMagic = 0x10de;

std::vector<uint8_t> owned(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

// ---- containers

struct Container {
  uint64_t header = 0;
  std::span<const uint8_t> data;
};

// Magic, version, size of all, offset of the header, offset and size of the data.
Container read_container(const ByteReader& file) {
  constexpr const char* what = "its container's header";
  if (file.u32(0, what) != kContainerMagic || file.u32(4, what) != 1)
    file.damaged("it begins with {:#x} and version {}, not {:#x} and 1", file.u32(0, what),
                 file.u32(4, what), kContainerMagic);
  return {file.u32(12, what), file.range(file.u32(16, what), file.u32(20, what), "its data")};
}

void check_part(const ByteReader& file, const char* what, uint64_t offset, uint64_t size_bytes,
                uint64_t all) {
  if (offset > all || size_bytes > all - offset)
    file.damaged("{} ({} bytes at {:#x}) is no part of its {} bytes of data", what, size_bytes,
                 offset, all);
}

// ---- the ELF file

struct Section {
  uint32_t name = 0, type = 0;
  uint64_t offset = 0, size_bytes = 0;
};

// Little-endian; of any machine, since nothing of it runs here.
class Sections {
 public:
  // `bits`: 32 or 64.
  Sections(const ByteReader& file, uint32_t bits) : file_(file), wide_(bits == 64) {
    constexpr const char* what = "its ELF header";
    constexpr uint32_t magic = 0x464c457f;
    if (file.u32(0, what) != magic || file.u8(4, what) != (wide_ ? 2 : 1) || file.u8(5, what) != 1)
      file.damaged("it is no ELF file of {} bits", bits);
    const uint64_t entry_bytes_at = wide_ ? 0x3a : 0x2e;
    table_ = wide_ ? file.number<uint64_t>(0x28, what) : file.u32(0x20, what);
    entry_bytes_ = file.u16(entry_bytes_at, what);
    count_ = file.u16(entry_bytes_at + 2, what);
    if (count_ > 0 && entry_bytes_ != (wide_ ? 64 : 40))
      file.damaged("its table of sections has entries of {} bytes", entry_bytes_);
    file.range(table_, uint64_t(count_) * entry_bytes_, "its table of sections");
    names_ = at(file.u16(entry_bytes_at + 4, what));
  }
  std::optional<std::span<const uint8_t>> find(const std::string& name) const {
    for (uint16_t i = 0; i < count_; ++i) {
      const Section s = at(i);
      if (s.type != kNoBits && has_name(s, name))
        return file_.range(s.offset, s.size_bytes, name.c_str());
    }
    return std::nullopt;
  }
  std::span<const uint8_t> wanted(const std::string& name) const {
    const auto found = find(name);
    if (!found || found->empty()) file_.damaged("it has no section {}", name);
    return *found;
  }

 private:
  static constexpr uint32_t kNoBits = 8;
  Section at(uint16_t n) const {
    constexpr const char* what = "an entry of its table of sections";
    if (n >= count_) file_.damaged("it has {} sections and asks for number {}", count_, n);
    const uint64_t e = table_ + uint64_t(n) * entry_bytes_;
    const uint32_t name = file_.u32(e, what), type = file_.u32(e + 4, what);
    if (!wide_) return {name, type, file_.u32(e + 0x10, what), file_.u32(e + 0x14, what)};
    return {name, type, file_.number<uint64_t>(e + 0x18, what),
            file_.number<uint64_t>(e + 0x20, what)};
  }
  bool has_name(const Section& s, const std::string& name) const {
    const uint64_t bytes = name.size() + 1;  // with its zero
    if (s.name > names_.size_bytes || bytes > names_.size_bytes - s.name) return false;
    const auto text = file_.range(names_.offset, names_.size_bytes, "its sections' names");
    return std::memcmp(text.data() + s.name, name.c_str(), bytes) == 0;
  }

  const ByteReader& file_;
  const bool wide_;
  uint64_t table_ = 0;
  uint16_t entry_bytes_ = 0, count_ = 0;
  Section names_;
};

}  // namespace

// Its header, nine words: offset and size of the signatures, then where four numbers lie: the place
// in the data that a signature goes to, what is added to that of the signatures, the version,
// engines and id (three words, with their size), how many there are; offset and size of the load
// header. That one has offset and size of plain code and of data, a count, and offset and size of
// the secure code.
Booter read_booter(std::span<const uint8_t> bytes, const std::string& name) {
  constexpr const char* what = "its header";
  const ByteReader file(bytes, name);
  const Container c = read_container(file);
  const auto word = [&](uint64_t n) { return file.u32(c.header + 4 * n, what); };
  const uint32_t added = file.u32(word(3), "the offset of its signature");
  const auto signatures =
      file.range(uint64_t(word(0)) + added, word(1), "its signatures");
  const uint32_t count = file.u32(word(6), "the count of its signatures");
  const uint64_t meta = word(4), load = word(7);
  if (word(5) < 12 || word(8) < 28)
    file.damaged("its headers have {} and {} bytes", word(5), word(8));
  Booter b;
  b.image = owned(c.data);
  b.signature_offset = file.u32(word(2), "the place of its signature");
  b.engine_mask = file.u32(meta + 4, "its engines");
  b.ucode_id = file.u32(meta + 8, "its id");
  const auto part = [&](uint64_t n) { return file.u32(load + 4 * n, "its load header"); };
  b.data_offset = part(2);
  b.data_bytes = part(3);
  b.code_offset = part(5);
  b.code_bytes = part(6);
  if (part(4) == 0) file.damaged("it has no secure code");
  check_part(file, "its code", b.code_offset, b.code_bytes, b.image.size());
  check_part(file, "its data", b.data_offset, b.data_bytes, b.image.size());
  if (count == 0 || signatures.size() % count || signatures.size() < count)
    file.damaged("{} signatures are in {} bytes", count, signatures.size());
  const size_t each = signatures.size() / count;
  check_part(file, "its signature", b.signature_offset, each, b.image.size());
  if (b.signature_offset < b.data_offset)
    file.damaged("its signature belongs to {:#x}, before its data", b.signature_offset);
  for (size_t i = 0; i < count; ++i)
    b.signatures.push_back(owned(signatures.subspan(i * each, each)));
  return b;
}

std::vector<uint8_t> signed_image(const Booter& booter, uint32_t fuse_version) {
  const size_t count = booter.signatures.size();
  // One serves all versions; of several the last is the first version's.
  if (count > 1 && fuse_version >= count)
    fail<IoError>("booter: of {} signatures none is for version {}, which the GPU's fuses ask for",
                  count, fuse_version);
  const auto& signature = booter.signatures[count > 1 ? count - 1 - fuse_version : 0];
  std::vector<uint8_t> image = booter.image;
  std::copy(signature.begin(), signature.end(), image.begin() + booter.signature_offset);
  return image;
}

// Its header: 21 words (RM_RISCV_UCODE_DESC), of which the eighth to the 14th are the version,
// offset and size of the manifest, of the data and of the code.
Bootloader read_bootloader(std::span<const uint8_t> bytes, const std::string& name) {
  const ByteReader file(bytes, name);
  const Container c = read_container(file);
  const auto word = [&](uint64_t n) { return file.u32(c.header + 4 * n, "its header"); };
  Bootloader b;
  b.image = owned(c.data);
  b.app_version = word(7);
  b.manifest_offset = word(8);
  b.data_offset = word(10);
  b.code_offset = word(12);
  check_part(file, "its manifest", b.manifest_offset, word(9), b.image.size());
  check_part(file, "its data", b.data_offset, word(11), b.image.size());
  check_part(file, "its code", b.code_offset, word(13), b.image.size());
  return b;
}

GspImage read_gsp_image(std::span<const uint8_t> bytes, const std::string& name,
                        const std::string& family) {
  const ByteReader file(bytes, name);
  const Sections sections(file, 64);
  GspImage g;
  g.image = owned(sections.wanted(".fwimage"));
  g.signature = owned(sections.wanted(".fwsignature_" + family));
  if (const auto version = sections.find(".fwversion")) {
    const auto end = std::find(version->begin(), version->end(), 0);
    g.version.assign(version->begin(), end);
    if (g.version.size() > 32) file.damaged("its version has {} characters", g.version.size());
  }
  return g;
}

Fmc read_fmc(std::span<const uint8_t> bytes, const std::string& name) {
  constexpr size_t hash_bytes = 48, most = 384;  // SHA-384; what a message has room for
  const ByteReader file(bytes, name);
  const Sections sections(file, 32);
  Fmc f;
  f.image = owned(sections.wanted("image"));
  f.hash = owned(sections.wanted("hash"));
  f.public_key = owned(sections.wanted("publickey"));
  f.signature = owned(sections.wanted("signature"));
  if (f.hash.size() != hash_bytes || f.public_key.size() > most || f.signature.size() > most)
    file.damaged("its hash, key and signature have {}, {} and {} bytes", f.hash.size(),
                 f.public_key.size(), f.signature.size());
  return f;
}

}  // namespace tuff::devices::nv
