// Zip archives (PKWARE's APPNOTE 6.3.10), members stored or deflated, with zip64 where sizes ask
// for it. Called by npz, pytorch and tensor_bytes. Encrypted, split and prefixed archives are
// refused.
#pragma once

#include <functional>
#include <memory>

#include "io/formats/index.h"

namespace tuff::io {

bool is_zip(const ByteSource& source);
// The central directory. IoError where members overlap, lie outside of the file, are encrypted or
// have one name, or where the directory and a member's own header disagree.
std::vector<ZipMember> read_zip_directory(const ByteSource& source);
const ZipMember* member_named(const std::vector<ZipMember>& members, std::string_view name);

// The contents of a member piece by piece, and its checksum at the end. Source and member stay
// where they are as long as it lives.
class ZipMemberReader {
 public:
  ZipMemberReader(const ByteSource& source, const ZipMember& member);
  ~ZipMemberReader();
  void fill(std::span<uint8_t> piece);
  void pass(uint64_t count);
  void finish();  // passes what is left; IoError if the checksum is another

 private:
  class Inflater;
  const ByteSource& source_;
  const ZipMember& member_;
  std::unique_ptr<Inflater> inflater_;
  uint64_t at_ = 0;
  uint32_t crc_ = 0;
};

// The first bytes alone, without the checksum: at most `count`.
std::vector<uint8_t> zip_member_head(const ByteSource& source, const ZipMember& member,
                                     uint64_t count);
// The whole contents; IoError above max_bytes.
std::vector<uint8_t> zip_member_bytes(const ByteSource& source, const ZipMember& member,
                                      uint64_t max_bytes);

// Writes an archive, member after member.
class ZipWriter {
 public:
  // Where the archive goes, from its first byte on. What is known of a member when it ends takes
  // the place of zeros that were put in front of it.
  class Output {
   public:
    virtual ~Output() = default;
    virtual void put(std::span<const uint8_t> bytes) = 0;
    virtual void replace(uint64_t offset, std::span<const uint8_t> bytes) = 0;
  };
  // zip64: also where sizes do not ask for it, for tests.
  explicit ZipWriter(Output& output, bool zip64 = false) : output_(output), zip64_(zip64) {}
  // A member of so many bytes, which `contents` gives one piece after the other.
  using Contents = std::function<void(const ByteSink&)>;
  void add(const std::string& name, uint64_t size_bytes, const Contents& contents, bool deflate);
  void finish();

 private:
  void put(std::span<const uint8_t> bytes);
  void end_records(uint64_t directory_at);
  Output& output_;
  bool zip64_;
  uint64_t at_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace tuff::io
