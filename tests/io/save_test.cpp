// save() holds pieces of tensors and never all of one: what was not read goes from file to file and
// stays unread, what is computed from it is computed and forgotten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/io.h>

#include <filesystem>
#include <map>

#include "base/check.h"
#include "base/os.h"
#include "base/os_transfer.h"
#include "engine/device.h"
#include "io/formats/sample_files.h"
#include "io/formats/zip.h"
#include "io/scratch_folder.h"
#include "io/tensor_pieces.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// More than one piece, and not a multiple of it.
constexpr int64_t kCount = int64_t(kTensorPieceBytes) / 4 + 12345;
constexpr int kWeights = 3;

// Tells its place by 256 elements, and is quickly deflated.
std::vector<float> weight(int which) {
  std::vector<float> out(kCount);
  for (size_t i = 0; i < out.size(); i++) out[i] = float(size_t(which) * 100'000 + i / 256);
  return out;
}

TensorDict weights() {
  TensorDict out;
  for (int i = 0; i < kWeights; i++)
    out.set(fmt::format("w{}", i), Tensor::from<float>(weight(i), {kCount}, {.device = "CPU"}));
  return out;
}

struct Conversion {
  const char *name, *from, *to;
  bool compress;
};

class SaveLazy : public testing::TestWithParam<Conversion> {
 protected:
  ScratchFolder folder;
  const std::string from = folder.path(GetParam().from), to = folder.path(GetParam().to);
  const SaveOptions options{.compress = GetParam().compress};
};

uint64_t live_bytes() { return engine::Device::get("CPU")->hcq().allocator().stats().live_bytes; }

TEST_P(SaveLazy, GoesFromFileToFile) {
  save(from, weights(), options);
  const TensorDict dict = load(from, {.device = "CPU"});
  std::vector<Tensor> tensors;
  for (const std::string& n : dict.names()) tensors.push_back(dict[n]);
  const uint64_t live = live_bytes(), read = os::transfers().stats().bytes;
  uint64_t most = live, last = 0, all = 0;
  SaveOptions watched = options;
  watched.progress = [&](uint64_t written, uint64_t total) {
    EXPECT_GT(written, last);
    last = written;
    all = total;
    most = std::max(most, live_bytes());
  };
  save(to, dict, watched);
  EXPECT_EQ(most, live) << "memory of tensors was used";
  EXPECT_EQ(last, uint64_t(kWeights * kCount * 4));
  EXPECT_EQ(all, last);
  EXPECT_LE(os::transfers().stats().bytes - read, all + (1u << 20)) << "more than once";
  for (const Tensor& t : tensors) EXPECT_FALSE(t.is_realized());
  const TensorDict again = load(to, {.device = "CPU"});
  for (int i = 0; i < kWeights; i++) {
    EXPECT_EQ(again[fmt::format("w{}", i)].to_vector<float>(), weight(i));
    EXPECT_EQ(tensors[size_t(i)].to_vector<float>(), weight(i)) << "read by whom it belongs to";
  }
}

TEST_P(SaveLazy, OverWhatIsRead) {
  save(from, weights(), options);
  const std::vector<uint8_t> before = os::read_file(from);
  for (int round = 0; round < 2; round++) save(from, load(from, {.device = "CPU"}), options);
  EXPECT_EQ(os::read_file(from), before);
  EXPECT_THAT(os::list_directory(folder.path()), ElementsAre(GetParam().from));
}

TEST_P(SaveLazy, WhatIsComputedIsNotKept) {
  save(from, weights(), options);
  const TensorDict dict = load(from, {.device = "CPU"});
  TensorDict halves;
  for (const std::string& n : dict.names()) halves.set(n, (dict[n] * 0.5).cast(DType::F64));
  const uint64_t live = live_bytes();
  uint64_t most = live;
  save(to, halves, {.progress = [&](uint64_t, uint64_t) { most = std::max(most, live_bytes()); }});
  constexpr uint64_t kKernel = 64 << 10;
  EXPECT_LT(live_bytes(), live + kKernel);
  EXPECT_LT(most, live + 4 * kCount + 8 * kCount + kKernel) << "one weight and its half";
  EXPECT_FALSE(dict["w0"].is_realized());
  EXPECT_FALSE(halves["w0"].is_realized());
  const TensorDict again = load(to, {.device = "CPU"});
  for (int i = 0; i < kWeights; i++) {
    const auto got = again[fmt::format("w{}", i)].to_vector<double>();
    const auto wanted = weight(i);
    for (size_t k = 0; k < wanted.size(); k += 997) ASSERT_EQ(got[k], double(wanted[k]) * 0.5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SaveLazy,
    testing::Values(Conversion{"safetensors_npz", "a.safetensors", "b.npz", false},
                    Conversion{"npz_safetensors", "a.npz", "b.safetensors", false},
                    Conversion{"deflated", "a.npz", "b.npz", true}),
    [](const auto& info) { return info.param.name; });

// A graph that writes to memory is realized where it is: its assignment happens once.
TEST(Save, AssignmentsHappenOnce) {
  const ScratchFolder folder;
  const std::string path = folder.path("a.safetensors");
  save(path, weights());
  Tensor w = load(path, {.device = "CPU"})["w1"];
  w.assign(w * 2);
  TensorDict out;
  out.set("w", w);
  out.set("y", w + 1);
  save(folder.path("b.safetensors"), out);
  const TensorDict again = load(folder.path("b.safetensors"), {.device = "CPU"});
  EXPECT_EQ(again["w"].to_vector<float>()[5], 200'000);
  EXPECT_EQ(again["y"].to_vector<float>()[5], 200'001);
  EXPECT_EQ(w.to_vector<float>()[5], 200'000);
}

// Whoever watches may end it.
TEST(Save, WhatIsThrownWhileSavingLeavesTheFileAsItWas) {
  const ScratchFolder folder;
  for (const char* name : {"a.safetensors", "a.npz"}) {
    folder.write(name, std::string("old"));
    const auto stop = [](uint64_t written, uint64_t) {
      if (written > kTensorPieceBytes) throw std::runtime_error("enough");
    };
    EXPECT_THROW(save(folder.path(name), weights(), {.progress = stop}), std::runtime_error);
    EXPECT_EQ(os::read_text(folder.path(name)), "old");
  }
  EXPECT_EQ(os::list_directory(folder.path()).size(), 2u);
}

TEST(Save, SourcesThatChangeMeanwhileAreAnError) {
  const ScratchFolder folder;
  const std::string from = folder.path("a.safetensors"), to = folder.path("b.npz");
  save(from, weights());
  folder.write("b.npz", std::string("old"));
  const TensorDict dict = load(from, {.device = "CPU"});
  const auto shrink = [&](uint64_t, uint64_t) { std::filesystem::resize_file(from, 9 << 20); };
  EXPECT_THAT(error_text<IoError>([&] { save(to, dict, {.progress = shrink}); }), HasSubstr(from));
  EXPECT_EQ(os::read_text(to), "old");
  EXPECT_EQ(os::list_directory(folder.path()).size(), 2u);
}

TEST(Save, DamagedMembersAreFoundWhileTheyAreCopied) {
  const ScratchFolder folder;
  for (const bool compress : {false, true}) {
    save(folder.path("a.npz"), weights(), {.compress = compress});
    std::vector<uint8_t> bytes = os::read_file(folder.path("a.npz"));
    bytes[bytes.size() / 2] ^= 1;
    folder.write("a.npz", bytes);
    const TensorDict dict = load(folder.path("a.npz"), {.device = "CPU"});
    const std::string text = error_text<IoError>([&] { save(folder.path("b.safetensors"), dict); });
    EXPECT_THAT(text, AllOf(HasSubstr("a.npz"), HasSubstr("w1.npy"))) << text;
    EXPECT_THAT(os::list_directory(folder.path()), ElementsAre("a.npz"));
  }
}

TEST(Save, MemoryOfEveryDeviceIsWrittenInPieces) {
  const ScratchFolder folder;
  for (const devices::Candidate& c : engine::list_devices()) {
    if (!c.usable || c.rank == 0) continue;
    SCOPED_TRACE(c.name);
    TensorDict out;
    out.set("w", Tensor::from<float>(weight(2), {kCount}, {.device = c.name}));
    out.set("rows", out["w"].narrow(0, 255, 11));
    for (const char* name : {"a.safetensors", "a.npz"}) {
      save(folder.path(name), out);
      const TensorDict again = load(folder.path(name), {.device = "CPU"});
      EXPECT_EQ(again["w"].to_vector<float>(), weight(2)) << name;
      EXPECT_EQ(again["rows"].to_vector<float>()[4], 200'001) << name;
    }
  }
}

// An archive of any size without its contents, which are zeros.
class Hollow : public ZipWriter::Output {
 public:
  void put(std::span<const uint8_t> bytes) override {
    if (bytes.size() < kTensorPieceBytes) kept_[size_].assign(bytes.begin(), bytes.end());
    size_ += bytes.size();
  }
  void replace(uint64_t offset, std::span<const uint8_t> bytes) override {
    kept_.at(offset).assign(bytes.begin(), bytes.end());
  }
  uint64_t size_bytes() const { return size_; }
  void read(uint64_t offset, std::span<uint8_t> into) const {
    std::ranges::fill(into, uint8_t{0});
    for (const auto& [at, bytes] : kept_)
      for (size_t i = 0; i < bytes.size(); i++)
        if (at + i >= offset && at + i < offset + into.size()) into[at + i - offset] = bytes[i];
  }

 private:
  std::map<uint64_t, Bytes> kept_;
  uint64_t size_ = 0;
};

class HollowBytes : public ByteSource {
 public:
  explicit HollowBytes(const Hollow& file) : ByteSource("hollow", file.size_bytes()), file_(file) {}

 private:
  void read_inside(uint64_t offset, std::span<uint8_t> into) const override {
    file_.read(offset, into);
  }
  const Hollow& file_;
};

// A member of 4 GiB less one byte has a size that 32 bits cannot tell from "look into zip64".
TEST(Zip, MembersOf4GiBAndWhatFollowsThem) {
  Hollow file;
  ZipWriter zip(file);
  const Bytes zeros(kTensorPieceBytes);
  const auto give = [&](uint64_t size) {
    return [&zeros, size](const ByteSink& sink) {
      for (uint64_t at = 0; at < size; at += zeros.size())
        sink(std::span(zeros).first(std::min<uint64_t>(zeros.size(), size - at)));
    };
  };
  constexpr uint64_t kLarge = (uint64_t{1} << 32) - 1;
  zip.add("large", kLarge, give(kLarge), false);
  zip.add("small", 5, give(5), false);
  zip.finish();
  const HollowBytes source(file);
  const std::vector<ZipMember> members = read_zip_directory(source);
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].size_bytes, kLarge);
  EXPECT_EQ(members[0].stored_bytes, kLarge);
  EXPECT_EQ(members[1].size_bytes, 5u);
  EXPECT_GT(members[1].header_offset, kLarge);
  EXPECT_EQ(zip_member_bytes(source, members[1], 5), Bytes(5));
}

}  // namespace
}  // namespace tuff::io
