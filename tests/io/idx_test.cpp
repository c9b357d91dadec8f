// IDX files: there and back, plain and gzip; each kind of damage gives one clear error.
#include "io/idx.h"

#include <gmock/gmock.h>

#include "base/os.h"
#include "io/gzip.h"
#include "io/idx_files.h"
#include "scratch_folder.h"
#include "tuff/error.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ImageSet images(uint32_t count, uint32_t rows, uint32_t cols) {
  ImageSet set{count, rows, cols, {}, {}};
  for (uint32_t i = 0; i < count * rows * cols; ++i) set.pixels.push_back(i * 7 & 0xff);
  for (uint32_t i = 0; i < count; ++i) set.labels.push_back(i % 10);
  return set;
}

const char* const kTrainImages = "train-images-idx3-ubyte";
const char* const kTrainLabels = "train-labels-idx1-ubyte";

std::string folder_error(const ScratchFolder& folder) {
  return error_text<IoError>([&] { load_idx_folder(folder.path()); });
}
std::string parse_error(const std::vector<uint8_t>& file, uint32_t dims) {
  return error_text<IoError>([&] { parse_idx(file, "some.idx", dims); });
}

class IdxRoundTrip : public testing::TestWithParam<bool> {};
TEST_P(IdxRoundTrip, KeepsEveryByte) {
  const ScratchFolder folder;
  const ImageSplit split{images(50, 9, 7), images(20, 9, 7), ""};
  write_idx_folder(folder.path(), split, GetParam());
  EXPECT_EQ(os::exists(folder.path(std::string(kTrainImages) + ".gz")), GetParam());
  const ImageSplit read = load_idx_folder(folder.path());
  EXPECT_EQ(read.train.pixels, split.train.pixels);
  EXPECT_EQ(read.train.labels, split.train.labels);
  EXPECT_EQ(read.test.pixels, split.test.pixels);
  EXPECT_EQ(read.test.rows, 9u);
  EXPECT_EQ(read.test.cols, 7u);
  EXPECT_EQ(read.origin, folder.path());
}
INSTANTIATE_TEST_SUITE_P(PlainAndGzip, IdxRoundTrip, testing::Bool());

TEST(Idx, DamagedHeaders) {
  const auto whole = encode_idx({{2, 3, 3}, std::vector<uint8_t>(18)});
  EXPECT_EQ(parse_error(whole, 3), "");
  EXPECT_THAT(parse_error({0, 0}, 3), AllOf(HasSubstr("some.idx: at byte 0"),
                                            HasSubstr("4 bytes are wanted, but 2 are left")));
  EXPECT_THAT(parse_error(whole, 1), AllOf(HasSubstr("0x00000803"), HasSubstr("0x00000801")));
  auto floats = whole;
  floats[2] = 0x0d;
  EXPECT_THAT(parse_error(floats, 3), HasSubstr("magic number 0x00000d03"));
  EXPECT_THAT(parse_error({0, 0, 8, 3, 0, 0, 0, 2}, 3),
              AllOf(HasSubstr("at byte 8"), HasSubstr("but 0 are left")));
}

TEST(Idx, AbsurdExtents) {
  auto file = encode_idx({{2, 3, 3}, std::vector<uint8_t>(18)});
  file[4] = 0xff;
  EXPECT_THAT(parse_error(file, 3), HasSubstr("extent 4278190082 of dimension 0"));
  EXPECT_THAT(parse_error(encode_idx({{2, 0, 3}, {}}), 3), HasSubstr("extent 0 of dimension 1"));
  EXPECT_THAT(parse_error(encode_idx({{2, 3, 5000}, {}}), 3),
              HasSubstr("extent 5000 of dimension 2 is outside 1..1024"));
  EXPECT_THAT(parse_error(encode_idx({{10'000'000, 1024, 1024}, {}}), 3), HasSubstr("more than"));
}

TEST(Idx, WrongLength) {
  auto file = encode_idx({{2, 3, 3}, std::vector<uint8_t>(18)});
  file.pop_back();
  EXPECT_THAT(parse_error(file, 3),
              AllOf(HasSubstr("truncated: 33 bytes"), HasSubstr("exactly 34")));
  file.resize(40);
  EXPECT_THAT(parse_error(file, 3), HasSubstr("too long: 40 bytes"));
}

// Every prefix of a gzip file is refused, none crashes.
TEST(Idx, EveryTruncatedGzip) {
  const auto zipped = gzip_compress(encode_idx({{4, 5, 5}, images(4, 5, 5).pixels}));
  const ScratchFolder folder;
  for (size_t size = 0; size < zipped.size(); ++size) {
    const std::string path = folder.write("cut.gz", std::span(zipped).first(size));
    EXPECT_THAT(error_text<IoError>([&] { read_idx(path, 3); }), HasSubstr("cut.gz")) << size;
  }
}

TEST(Idx, EveryDamagedGzipByte) {
  const auto array = IdxArray{{4, 5, 5}, images(4, 5, 5).pixels};
  const auto zipped = gzip_compress(encode_idx(array));
  for (size_t at = 0; at < zipped.size(); ++at) {
    if (at >= 4 && at < 10) continue;  // time stamp and flags of the writer: no damage to the data
    auto damaged = zipped;
    damaged[at] ^= 0x55;
    const std::string text = error_text<IoError>([&] {
      const auto bytes = is_gzip(damaged) ? gzip_decompress(damaged, "x.gz", 1 << 20) : damaged;
      parse_idx(bytes, "x.gz", 3);
    });
    EXPECT_THAT(text, HasSubstr("x.gz")) << at;
  }
}

TEST(Gzip, JoinedMembersAndTheLimit) {
  const std::vector<uint8_t> half(700'000, 7);
  auto zipped = gzip_compress(half);
  const auto second = zipped;
  zipped.insert(zipped.end(), second.begin(), second.end());
  EXPECT_EQ(gzip_decompress(zipped, "two.gz", 1'400'000), std::vector<uint8_t>(1'400'000, 7));
  EXPECT_THAT(error_text<IoError>([&] { gzip_decompress(zipped, "two.gz", 1'399'999); }),
              HasSubstr("more than 1399999 bytes"));
  EXPECT_TRUE(gzip_decompress(gzip_compress({}), "none.gz", 0).empty());
}

TEST(IdxFolder, MissingParts) {
  const ScratchFolder folder;
  EXPECT_THAT(folder_error(folder), AllOf(HasSubstr(kTrainImages), HasSubstr("no such file")));
  EXPECT_THAT(error_text<IoError>([&] { load_idx_folder(folder.path("absent")); }),
              HasSubstr("not a folder"));
}

TEST(IdxFolder, PartsThatDisagree) {
  const ScratchFolder folder;
  write_idx_folder(folder.path(), {images(50, 9, 7), images(20, 8, 7), ""}, false);
  EXPECT_THAT(folder_error(folder), AllOf(HasSubstr("9 x 7"), HasSubstr("8 x 7")));
  write_idx(folder.path(kTrainLabels), {{49}, std::vector<uint8_t>(49)});
  EXPECT_THAT(folder_error(folder),
              AllOf(HasSubstr(kTrainLabels), HasSubstr("49 labels for the 50")));
  std::vector<uint8_t> labels(50);
  labels[13] = 10;
  write_idx(folder.path(kTrainLabels), {{50}, labels});
  EXPECT_THAT(folder_error(folder), HasSubstr("label 10 at index 13 is outside 0..9"));
}

}  // namespace
}  // namespace tuff::io
