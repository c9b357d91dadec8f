// Compressed files: no memory grows with what they inflate to, and headers are held against it.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuff/io.h>
#include "io/formats/npy.h"
#include "io/gzip.h"
#include "io/idx_files.h"
#include "io/idx.h"
#include "io/scratch_folder.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Bytes = std::vector<uint8_t>;

// Members of a megabyte of zeros each, behind `head`: `count` of them inflate to as many megabytes.
Bytes zeros_behind(const Bytes& head, size_t count) {
  Bytes out = gzip_compress(head);
  const Bytes member = gzip_compress(Bytes(1 << 20));
  for (size_t i = 0; i < count; i++) out.insert(out.end(), member.begin(), member.end());
  return out;
}

Bytes npy_of(DType dtype, std::vector<int64_t> shape, size_t contents) {
  Bytes out = encode_npy_header(dtype, shape);
  for (size_t i = 0; i < contents; i++) out.push_back(uint8_t(i * 7 % 251));
  return out;
}

// What `call` says where this process may take no more than `megabytes` of memory.
std::string with_memory(size_t megabytes, const std::function<std::string()>& call) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      rlimit limit{megabytes << 20, megabytes << 20};
      ::setrlimit(RLIMIT_DATA, &limit);
      text = call();
    } catch (const std::exception& e) {
      text = e.what();
    }
    const ssize_t n = ::write(ends[1], text.data(), text.size());
    ::_exit(n == ssize_t(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char piece[256];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, size_t(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

std::string listed(const std::string& path) {
  std::string out;
  for (const TensorInfo& t : load(path).info())
    out += fmt::format("{} {} ({});", t.name, t.type, fmt::join(t.shape, ","));
  return out;
}

// 2 GiB in 2 MB. An index needs the header alone, whatever follows.
TEST(Compressed, AnIndexNeedsNoMemoryForContents) {
  const ScratchFolder folder;
  const int64_t count = int64_t{2} << 30;
  const auto npy = zeros_behind(npy_of(DType::U8, {count}, 0), 2048);
  const Bytes idx_header{0, 0, 8, 1, 0x7f, 0xf0, 0, 0};
  const std::string a = folder.write("a.npy.gz", npy);
  const std::string b = folder.write("b-idx.gz", zeros_behind(idx_header, 2047));
  EXPECT_EQ(with_memory(200, [&] { return listed(a); }), "a |u1 (2147483648);");
  EXPECT_EQ(with_memory(200, [&] { return listed(b); }), "b-idx uint8 (2146435072);");
}

TEST(Compressed, WhatIsNoArrayTakesNoMemoryEither) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.gz", zeros_behind(Bytes(8, 'x'), 2048));
  EXPECT_THAT(with_memory(200, [&] { return listed(path); }), HasSubstr("begin with none of"));
  const std::string zip = folder.write("b.gz", zeros_behind({'P', 'K', 3, 4}, 2048));
  EXPECT_THAT(with_memory(200, [&] { return listed(zip); }),
              HasSubstr("inflates to more than 1073741824 bytes"));
}

TEST(Compressed, MnistFilesTakeNoMoreThanTheyDeclare) {
  const ScratchFolder folder;
  const Bytes header = encode_idx({{2, 3, 3}, Bytes(18)});
  const std::string path = folder.write("a.gz", zeros_behind(header, 2048));
  EXPECT_THAT(with_memory(200,
                          [&] {
                            read_idx(path, 3);
                            return std::string("no error");
                          }),
              HasSubstr("inflates to more than 34 bytes"));
}

TEST(Compressed, ContentsArriveInOrderAndAgain) {
  const ScratchFolder folder;
  const Bytes plain = npy_of(DType::U8, {3, 400'000}, 1'200'000);
  const std::string path = folder.write("a.npy.gz", gzip_compress(plain));
  const Bytes wanted(plain.end() - 1'200'000, plain.end());
  const TensorDict dict = load(path, {.device = "CPU"});
  EXPECT_EQ(dict.at("a").to_vector<uint8_t>(), wanted);
  save(folder.path("b.npy"), dict);
  EXPECT_EQ(load(folder.path("b.npy"), {.device = "CPU"}).at("b").to_vector<uint8_t>(), wanted);
}

TEST(Compressed, EveryRangeInAnyOrder) {
  Bytes plain(700'000);
  for (size_t i = 0; i < plain.size(); i++) plain[i] = uint8_t(i * i >> 7);
  const auto zipped = std::make_shared<Bytes>(gzip_compress(plain));
  const auto source = std::make_shared<MemoryBytes>("a.gz", *zipped);
  const std::vector<std::pair<size_t, size_t>> ranges{
      {0, 10},           {131'000, 200'000}, {400'000, 1}, {100, 200'000}, {0, 131'072},
      {200'100, 99'900}, {500'000, 200'000}, {5, 699'995}, {300'000, 7},   {699'999, 1}};
  for (size_t first = 0; first < ranges.size(); first++) {
    const GzipBytes bytes(source, plain.size());
    for (size_t i = 0; i < ranges.size(); i++) {
      const auto [offset, size] = ranges[(first + i * 3) % ranges.size()];
      EXPECT_EQ(bytes.bytes(offset, size), Bytes(plain.begin() + ptrdiff_t(offset),
                                                 plain.begin() + ptrdiff_t(offset + size)))
          << offset;
    }
  }
}

// The lie shows to whoever reads the contents, in the head already where it is that short.
TEST(Compressed, HeadersThatLieAreErrors) {
  const ScratchFolder folder;
  const auto error_of = [&](int64_t claimed, size_t contents) {
    const Bytes plain = npy_of(DType::U8, {claimed}, contents);
    const std::string path = folder.write("a.npy.gz", gzip_compress(plain));
    return error_text<IoError>([&] { load(path, {.device = "CPU"}).at("a").to_vector<uint8_t>(); });
  };
  EXPECT_EQ(error_of(300'000, 300'000), "");
  EXPECT_THAT(error_of(300'000, 299'999), HasSubstr("1 bytes less than its header declares"));
  EXPECT_THAT(error_of(300'000, 300'001), HasSubstr("more than the 300128 bytes"));
  EXPECT_THAT(error_of(10, 300'000), HasSubstr("too long"));
  EXPECT_THAT(error_of(10, 11), HasSubstr("too long"));
  EXPECT_THAT(error_of(10, 9), HasSubstr("truncated"));
  EXPECT_THAT(error_of(int64_t{1} << 40, 300'000),
              AllOf(HasSubstr("declares 1099511627904 bytes"), HasSubstr("can hold")));
}

TEST(Compressed, DamageIsAnErrorOfWhoReads) {
  const ScratchFolder folder;
  Bytes zipped = gzip_compress(npy_of(DType::U8, {300'000}, 300'000));
  zipped[zipped.size() - 6] ^= 1;  // of the checksum
  const std::string path = folder.write("a.npy.gz", zipped);
  const TensorDict dict = load(path, {.device = "CPU"});
  EXPECT_THAT(error_text<IoError>([&] { dict.at("a").to_vector<uint8_t>(); }),
              HasSubstr("damaged gzip stream (incorrect data check)"));
  zipped.resize(zipped.size() / 2);
  EXPECT_THAT(error_text<IoError>([&] {
                load(folder.write("b.npy.gz", zipped), {.device = "CPU"})
                    .at("b")
                    .to_vector<uint8_t>();
              }),
              HasSubstr("ends early"));
}

}  // namespace
}  // namespace tuff::io
