#include "io/formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/utf8.h"

namespace tuff::io {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kDirectoryMagic = 0x02014b50, kEndMagic = 0x06054b50,
                   kEnd64Magic = 0x06064b50, kLocatorMagic = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                   kLocatorBytes = 20;
constexpr uint32_t kIn64 = 0xffffffff;  // "look into the zip64 field"
constexpr uint16_t kExtra64 = 1;        // its id
constexpr uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8;
constexpr uint64_t kMaxComment = 0xffff;
// The best that deflate does: one bit each for a length of 258 and its distance.
constexpr uint64_t kMaxRatio = 1032;
constexpr uint64_t kPieceBytes = 1 << 20;
constexpr size_t kMaxMembers = 1'000'000;

// zlib takes a null pointer for a question for the first value.
uint32_t checksum(uint32_t so_far, std::span<const uint8_t> bytes) {
  return bytes.empty() ? so_far : uint32_t(crc32_z(so_far, bytes.data(), bytes.size()));
}

struct Directory {
  uint64_t offset = 0, size_bytes = 0, count = 0;
};

// The last record; its comment ends with the file.
uint64_t find_end(const ByteSource& source) {
  const uint64_t size = source.size_bytes();
  if (size < kEndBytes) fail_at(source, 0, "{} bytes are too few for a zip archive", size);
  const uint64_t window = std::min(size, kEndBytes + kMaxComment);
  const std::vector<uint8_t> tail = source.bytes(size - window, window);
  for (uint64_t at = window - kEndBytes + 1; at-- > 0;) {
    const auto word = [&](uint64_t i) {
      return uint32_t(tail[at + i]) | uint32_t(tail[at + i + 1]) << 8;
    };
    const bool magic = (word(0) | word(2) << 16) == kEndMagic;
    if (magic && at + kEndBytes + word(20) == window) return size - window + at;
  }
  fail_at(source, size, "no end of a zip archive's directory: truncated, or no such archive");
}

Directory read_end64(const ByteSource& source, uint64_t locator) {
  ByteReader at_locator(source, locator + 4, locator + kLocatorBytes);
  const auto first_disk = at_locator.little<uint32_t>();
  const auto end64 = at_locator.little<uint64_t>();
  const auto disks = at_locator.little<uint32_t>();
  if (first_disk != 0 || disks > 1) at_locator.fail("an archive of {} parts is not read", disks);
  if (end64 > locator || locator - end64 < kEnd64Bytes)
    fail_at(source, locator, "the zip64 record at {} does not stand before this", end64);
  ByteReader r(source, end64, locator);
  if (r.little<uint32_t>() != kEnd64Magic) fail_at(source, end64, "no zip64 record stands here");
  r.skip(8 + 2 + 2 + 4 + 4);
  const auto here = r.little<uint64_t>();
  Directory d;
  d.count = r.little<uint64_t>();
  if (here != d.count) r.fail("{} of {} members are in other parts", d.count - here, d.count);
  d.size_bytes = r.little<uint64_t>();
  d.offset = r.little<uint64_t>();
  if (d.offset > end64 || d.size_bytes != end64 - d.offset)
    r.fail("a directory of {} bytes at {} does not end at {}", d.size_bytes, d.offset, end64);
  return d;
}

Directory find_directory(const ByteSource& source) {
  const uint64_t end = find_end(source);
  if (end >= kLocatorBytes) {
    ByteReader locator(source, end - kLocatorBytes, end);
    if (locator.little<uint32_t>() == kLocatorMagic) return read_end64(source, end - kLocatorBytes);
  }
  ByteReader r(source, end + 4, source.size_bytes());
  const auto disk = r.little<uint16_t>(), first_disk = r.little<uint16_t>();
  const auto here = r.little<uint16_t>();
  Directory d;
  d.count = r.little<uint16_t>();
  d.size_bytes = r.little<uint32_t>();
  d.offset = r.little<uint32_t>();
  if (disk != 0 || first_disk != 0 || here != d.count) r.fail("an archive of parts is not read");
  if (d.offset > end || d.size_bytes != end - d.offset)
    r.fail("a directory of {} bytes at {} does not end at {}", d.size_bytes, d.offset, end);
  return d;
}

// Replaces what the 32-bit fields could not hold: size, stored size, offset, in this order.
void apply_zip64(ByteReader& r, uint16_t extra_bytes, ZipMember& m) {
  ByteReader extra(r.source(), r.offset(), r.offset() + extra_bytes);
  r.skip(extra_bytes);
  // Some writers pad with up to three bytes.
  while (extra.left() >= 4) {
    const auto id = extra.little<uint16_t>(), size = extra.little<uint16_t>();
    if (size > extra.left())
      extra.fail("an extra field of {} bytes, but {} are left", size, extra.left());
    ByteReader field(r.source(), extra.offset(), extra.offset() + size);
    extra.skip(size);
    if (id != kExtra64) continue;
    for (uint64_t* value : {&m.size_bytes, &m.stored_bytes, &m.header_offset})
      if (*value == kIn64) *value = field.little<uint64_t>();
  }
}

ZipMember read_entry(ByteReader& r) {
  if (r.little<uint32_t>() != kDirectoryMagic) r.fail("no member of the directory stands here");
  r.skip(4);
  const auto flags = r.little<uint16_t>(), method = r.little<uint16_t>();
  r.skip(4);
  ZipMember m;
  m.crc32 = r.little<uint32_t>();
  m.stored_bytes = r.little<uint32_t>();
  m.size_bytes = r.little<uint32_t>();
  const auto name = r.little<uint16_t>(), extra = r.little<uint16_t>(),
             comment = r.little<uint16_t>();
  r.skip(8);
  m.header_offset = r.little<uint32_t>();
  m.name = r.text(name);
  apply_zip64(r, extra, m);
  r.skip(comment);
  if (flags & kEncrypted) r.fail("'{}' is encrypted", shown(m.name));
  if (method != kStored && method != kDeflated)
    r.fail("'{}' is compressed by method {}; stored and deflated members are read", shown(m.name),
           method);
  m.deflated = method == kDeflated;
  const bool fits =
      m.deflated ? m.size_bytes / kMaxRatio <= m.stored_bytes : m.size_bytes == m.stored_bytes;
  if (!fits)
    r.fail("'{}' claims {} bytes of {} {} ones", shown(m.name), m.size_bytes, m.stored_bytes,
           m.deflated ? "deflated" : "stored");
  return m;
}

// Where the contents begin: after the member's own header, which has lengths of its own.
void place(const ByteSource& source, ZipMember& m, uint64_t directory_at) {
  if (m.header_offset > directory_at || directory_at - m.header_offset < kLocalBytes)
    fail_at(source, m.header_offset, "the header of '{}' is not before the directory at {}",
            shown(m.name), directory_at);
  ByteReader r(source, m.header_offset, directory_at);
  if (r.little<uint32_t>() != kLocalMagic) r.fail("no header of '{}' stands here", shown(m.name));
  r.skip(4);
  const auto method = r.little<uint16_t>();
  r.skip(16);
  const auto name = r.little<uint16_t>(), extra = r.little<uint16_t>();
  if (method != (m.deflated ? kDeflated : kStored) || r.text(name) != m.name)
    r.fail("the header of '{}' disagrees with the directory", shown(m.name));
  r.skip(extra);
  m.offset = r.offset();
}

}  // namespace

class ZipMemberReader::Inflater {
 public:
  Inflater(const ByteSource& source, const ZipMember& member) : source_(source), member_(member) {
    TUFF_CHECK(inflateInit2(&stream_, -MAX_WBITS) == Z_OK);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;

  // All of `out`; IoError if the stream ends before.
  void fill(std::span<uint8_t> out) {
    while (!out.empty()) {
      const size_t part = std::min<size_t>(out.size(), std::numeric_limits<int32_t>::max());
      stream_.next_out = out.data();
      stream_.avail_out = uInt(part);
      step();
      out = out.subspan(part - stream_.avail_out);
      if (ended_ && !out.empty())
        fail_at(source_, member_.offset, "'{}' inflates to {} bytes less than it claims",
                shown(member_.name), out.size());
    }
  }
  void require_end() {
    uint8_t more;
    stream_.next_out = &more;
    stream_.avail_out = 1;
    while (!ended_ && stream_.avail_out == 1) step();
    if (stream_.avail_out != 1)
      fail_at(source_, member_.offset, "'{}' inflates to more than the {} bytes that it claims",
              shown(member_.name), member_.size_bytes);
  }

 private:
  void step() {
    if (stream_.avail_in == 0 && taken_ < member_.stored_bytes) {
      piece_ = source_.bytes(member_.offset + taken_,
                             std::min(kPieceBytes, member_.stored_bytes - taken_));
      taken_ += piece_.size();
      stream_.next_in = piece_.data();
      stream_.avail_in = uInt(piece_.size());
    }
    const int status = inflate(&stream_, Z_NO_FLUSH);
    ended_ = status == Z_STREAM_END;
    if (status != Z_OK && !ended_)
      fail_at(source_, member_.offset + taken_ - stream_.avail_in, "'{}' is damaged ({})",
              shown(member_.name), stream_.msg ? stream_.msg : "the deflated stream ends early");
  }
  const ByteSource& source_;
  const ZipMember& member_;
  z_stream stream_{};
  std::vector<uint8_t> piece_;
  uint64_t taken_ = 0;
  bool ended_ = false;
};

ZipMemberReader::ZipMemberReader(const ByteSource& source, const ZipMember& member)
    : source_(source),
      member_(member),
      inflater_(member.deflated ? std::make_unique<Inflater>(source, member) : nullptr) {}
ZipMemberReader::~ZipMemberReader() = default;

void ZipMemberReader::fill(std::span<uint8_t> piece) {
  if (inflater_)
    inflater_->fill(piece);
  else
    source_.read(member_.offset + at_, piece);
  crc_ = checksum(crc_, piece);
  at_ += piece.size();
}

void ZipMemberReader::pass(uint64_t count) {
  std::vector<uint8_t> piece(std::min(count, kPieceBytes));
  while (count != 0) {
    const auto part = std::span(piece).first(std::min<uint64_t>(count, piece.size()));
    fill(part);
    count -= part.size();
  }
}

void ZipMemberReader::finish() {
  pass(member_.size_bytes - at_);
  if (inflater_) inflater_->require_end();
  if (crc_ != member_.crc32)
    fail_at(source_, member_.offset, "'{}' has the checksum {:08x}, but {:08x} is written down",
            shown(member_.name), crc_, member_.crc32);
}

bool is_zip(const ByteSource& source) {
  if (source.size_bytes() < kEndBytes) return false;
  const auto magic = ByteReader(source).little<uint32_t>();
  return magic == kLocalMagic || magic == kEndMagic;  // an empty archive is its end alone
}

std::vector<ZipMember> read_zip_directory(const ByteSource& source) {
  const Directory d = find_directory(source);
  if (d.count > d.size_bytes / kDirectoryBytes || d.count > kMaxMembers)
    fail_at(source, d.offset, "{} members in a directory of {} bytes", d.count, d.size_bytes);
  ByteReader r(source, d.offset, d.offset + d.size_bytes);
  std::vector<ZipMember> members;
  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < d.count; i++) {
    members.push_back(read_entry(r));
    if (!names.insert(members.back().name).second)
      r.fail("two members are named '{}'", shown(members.back().name));
  }
  if (!r.done()) r.fail("{} bytes follow the directory's last member", r.left());
  std::vector<ByteRange> ranges;
  for (ZipMember& m : members) {
    place(source, m, d.offset);
    if (m.stored_bytes > d.offset - m.offset)
      fail_at(source, m.offset, "'{}' has {} bytes here, but the directory begins at {}",
              shown(m.name), m.stored_bytes, d.offset);
    ranges.push_back({m.header_offset, m.offset - m.header_offset + m.stored_bytes, &m.name});
  }
  require_disjoint(source, ranges, 0, d.offset);
  return members;
}

const ZipMember* member_named(const std::vector<ZipMember>& members, std::string_view name) {
  const auto found = std::ranges::find(members, name, &ZipMember::name);
  return found == members.end() ? nullptr : &*found;
}

std::vector<uint8_t> zip_member_head(const ByteSource& source, const ZipMember& member,
                                     uint64_t count) {
  std::vector<uint8_t> out(std::min(count, member.size_bytes));
  ZipMemberReader(source, member).fill(out);
  return out;
}

std::vector<uint8_t> zip_member_bytes(const ByteSource& source, const ZipMember& member,
                                      uint64_t max_bytes) {
  if (member.size_bytes > max_bytes)
    fail_at(source, member.offset, "'{}' has {} bytes, more than {}", shown(member.name),
            member.size_bytes, max_bytes);
  std::vector<uint8_t> out(member.size_bytes);
  ZipMemberReader stream(source, member);
  stream.fill(out);
  stream.finish();
  return out;
}

namespace {

class Record {
 public:
  template <class T>
  Record& add(T value) {
    for (size_t i = 0; i < sizeof(T); i++) bytes_.push_back(uint8_t(uint64_t(value) >> (8 * i)));
    return *this;
  }
  Record& add(const std::string& text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

class Deflater {
 public:
  explicit Deflater(const ByteSink& out) : out_(out), piece_(kPieceBytes) {
    TUFF_CHECK(deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK);
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  void add(std::span<const uint8_t> in) {
    while (!in.empty()) {
      const size_t part = std::min<size_t>(in.size(), std::numeric_limits<int32_t>::max());
      stream_.next_in = const_cast<Bytef*>(in.data());
      stream_.avail_in = uInt(part);
      run(Z_NO_FLUSH);
      in = in.subspan(part);
    }
  }
  void finish() { run(Z_FINISH); }

 private:
  void run(int flush) {
    do {
      stream_.next_out = piece_.data();
      stream_.avail_out = uInt(piece_.size());
      deflate(&stream_, flush);
      if (const size_t made = piece_.size() - stream_.avail_out; made != 0)
        out_(std::span(piece_).first(made));
    } while (stream_.avail_out == 0);
  }
  const ByteSink& out_;
  std::vector<uint8_t> piece_;
  z_stream stream_{};
};

constexpr uint16_t kVersion = 20, kVersion64 = 45;
constexpr uint16_t kDay = 1 << 5 | 1;  // the format's first, so that files do not differ by date
constexpr uint16_t kUtf8 = 1 << 11;

uint32_t field32(uint64_t value, bool wide) { return wide ? kIn64 : uint32_t(value); }

// What a member takes at most: deflate stores what it cannot make smaller, in blocks with a header.
uint64_t most_stored_bytes(const ZipMember& m) {
  return m.deflated ? m.size_bytes + m.size_bytes / 1000 + 64 : m.size_bytes;
}

// The header in front of a member; `wide`: its sizes stand in the zip64 field.
Record local_header(const ZipMember& m, bool wide) {
  Record r;
  r.add(kLocalMagic).add(wide ? kVersion64 : kVersion).add(kUtf8);
  r.add(m.deflated ? kDeflated : kStored).add(uint16_t(0)).add(kDay).add(m.crc32);
  r.add(field32(m.stored_bytes, wide)).add(field32(m.size_bytes, wide));
  r.add(uint16_t(m.name.size())).add(uint16_t(wide ? 20 : 0)).add(m.name);
  if (wide) r.add(kExtra64).add(uint16_t(16)).add(m.size_bytes).add(m.stored_bytes);
  return r;
}

}  // namespace

void ZipWriter::put(std::span<const uint8_t> bytes) {
  output_.put(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, uint64_t size_bytes, const Contents& contents,
                    bool deflate) {
  if (name.size() > std::numeric_limits<uint16_t>::max())
    fail<InvalidArgument>("zip: a name of {} bytes; the format allows 65535", name.size());
  // Readers of archives end a name at its first zero, so that two could become one.
  if (!is_utf8(name) || name.find('\0') != std::string::npos)
    fail<InvalidArgument>("zip: the name '{}' is no UTF-8 or has a zero in it; rename it",
                          shown(name));
  ZipMember m{.name = name, .size_bytes = size_bytes, .deflated = deflate};
  m.header_offset = at_;
  const bool wide = zip64_ || most_stored_bytes(m) >= kIn64;
  put(local_header(m, wide).bytes());
  const uint64_t begin = at_;
  const ByteSink store = [&](std::span<const uint8_t> bytes) { put(bytes); };
  std::optional<Deflater> deflater;
  if (deflate) deflater.emplace(store);
  uint64_t given = 0;
  contents([&](std::span<const uint8_t> piece) {
    given += piece.size();
    m.crc32 = checksum(m.crc32, piece);
    deflater ? deflater->add(piece) : put(piece);
  });
  TUFF_CHECK(given == size_bytes, "'{}' has {} bytes, not {}", shown(name), given, size_bytes);
  if (deflater) deflater->finish();
  m.stored_bytes = at_ - begin;
  output_.replace(m.header_offset, local_header(m, wide).bytes());
  members_.push_back(std::move(m));
}

void ZipWriter::finish() {
  const uint64_t directory_at = at_;
  for (const ZipMember& m : members_) {
    const bool wide =
        zip64_ || m.size_bytes >= kIn64 || m.stored_bytes >= kIn64 || m.header_offset >= kIn64;
    Record r;
    r.add(kDirectoryMagic).add(kVersion64).add(wide ? kVersion64 : kVersion).add(kUtf8);
    r.add(m.deflated ? kDeflated : kStored).add(uint16_t(0)).add(kDay).add(m.crc32);
    r.add(field32(m.stored_bytes, wide)).add(field32(m.size_bytes, wide));
    r.add(uint16_t(m.name.size())).add(uint16_t(wide ? 28 : 0)).add(uint16_t(0));
    r.add(uint16_t(0)).add(uint16_t(0)).add(uint32_t(0)).add(field32(m.header_offset, wide));
    r.add(m.name);
    if (wide)
      r.add(kExtra64).add(uint16_t(24)).add(m.size_bytes).add(m.stored_bytes).add(m.header_offset);
    put(r.bytes());
  }
  end_records(directory_at);
}

void ZipWriter::end_records(uint64_t directory_at) {
  const uint64_t size = at_ - directory_at, end64_at = at_, count = members_.size();
  const bool wide = zip64_ || count >= 0xffff || size >= kIn64 || directory_at >= kIn64;
  Record r;
  if (wide) {
    r.add(kEnd64Magic).add(kEnd64Bytes - 12).add(kVersion64).add(kVersion64);
    r.add(uint32_t(0)).add(uint32_t(0)).add(count).add(count).add(size).add(directory_at);
    r.add(kLocatorMagic).add(uint32_t(0)).add(end64_at).add(uint32_t(1));
  }
  const auto count16 = uint16_t(wide ? 0xffff : count);
  r.add(kEndMagic).add(uint16_t(0)).add(uint16_t(0)).add(count16).add(count16);
  r.add(field32(size, wide)).add(field32(directory_at, wide)).add(uint16_t(0));
  put(r.bytes());
}

}  // namespace tuff::io
