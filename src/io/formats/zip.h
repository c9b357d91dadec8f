// Zip archives (PKWARE's APPNOTE 6.3.10), members stored or deflated, with zip64 where sizes ask
// for it. Called by npz, pytorch and tensor_bytes. Encrypted, split and prefixed archives are
// refused.
#pragma once

#include <functional>

#include "io/formats/index.h"

namespace tuff::io {

bool is_zip(const ByteSource& source);
// The central directory. IoError where members overlap, lie outside of the file, are encrypted or
// have one name, or where the directory and a member's own header disagree.
std::vector<ZipMember> read_zip_directory(const ByteSource& source);
const ZipMember* member_named(const std::vector<ZipMember>& members, std::string_view name);

// Contents [offset, offset + into.size()) of a member; all of it is read and its checksum compared.
void read_zip_member(const ByteSource& source, const ZipMember& member, uint64_t offset,
                     std::span<uint8_t> into);
// The first bytes alone, without the checksum: at most `count`.
std::vector<uint8_t> zip_member_head(const ByteSource& source, const ZipMember& member,
                                     uint64_t count);
// The whole contents; IoError above max_bytes.
std::vector<uint8_t> zip_member_bytes(const ByteSource& source, const ZipMember& member,
                                      uint64_t max_bytes);

// Writes an archive front to back.
class ZipWriter {
 public:
  using Sink = std::function<void(std::span<const uint8_t>)>;
  // zip64: also where sizes do not ask for it, for tests.
  explicit ZipWriter(Sink sink, bool zip64 = false) : sink_(std::move(sink)), zip64_(zip64) {}
  // The contents are `head`, then `body`.
  void add(const std::string& name, std::span<const uint8_t> head, std::span<const uint8_t> body,
           bool deflate);
  void finish();

 private:
  void put(std::span<const uint8_t> bytes);
  void end_records(uint64_t directory_at);
  Sink sink_;
  bool zip64_;
  uint64_t at_ = 0;
  std::vector<ZipMember> members_;
};

}  // namespace tuff::io
