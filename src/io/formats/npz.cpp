#include "io/formats/npz.h"

#include "io/formats/npy.h"

namespace tuff::io {
namespace {

// A member's first bytes with the size of the whole, so that a header is judged before its data
// are read.
class MemberHead : public ByteSource {
 public:
  MemberHead(const ByteSource& source, const ZipMember& member)
      : ByteSource(source.name() + "[" + shown(member.name) + "]", member.size_bytes),
        head_(zip_member_head(source, member, kHeadBytes)) {}

 private:
  static constexpr uint64_t kHeadBytes = kMaxNpyHeader + 64;
  void read_inside(uint64_t offset, std::span<uint8_t> into) const override {
    for (size_t i = 0; i < into.size(); i++)
      into[i] = offset + i < head_.size() ? head_[offset + i] : 0;
  }
  std::vector<uint8_t> head_;
};

}  // namespace

FileIndex read_npz(const ByteSource& source, std::vector<ZipMember> members) {
  constexpr std::string_view kEnding = ".npy";
  FileIndex index;
  index.format = "npz";
  for (size_t i = 0; i < members.size(); i++) {
    const ZipMember& m = members[i];
    if (!m.name.ends_with(kEnding))
      fail_at(source, m.header_offset, "'{}' is no .npy array; an .npz holds nothing else",
              shown(m.name));
    TensorEntry entry = read_npy_array(MemberHead(source, m));
    entry.name = m.name.substr(0, m.name.size() - kEnding.size());
    entry.member = uint32_t(i);
    index.tensors.push_back(std::move(entry));
  }
  index.members = std::move(members);
  return index;
}

}  // namespace tuff::io
