// Tensors that are views of mapped files: the same values as read ones, no copies, and errors
// instead of crashes or wrong values when the file changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/io.h>
#include <tuff/jit.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "base/check.h"
#include "base/os.h"
#include "base/os_transfer.h"
#include "engine/device.h"
#include "io/formats/sample_files.h"
#include "io/scratch_folder.h"
#include "tensor/impl.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kCount = 1 << 18;  // elements of a weight, 1 MiB
constexpr size_t kWeights = 8;
constexpr LoadOptions kRead{.device = "CPU"}, kMapped{.device = "CPU", .mmap = true};

std::vector<float> weight(size_t which) {
  std::vector<float> out(kCount);
  std::iota(out.begin(), out.end(), float(which + 1) * 1000);
  return out;
}

Bytes bytes_of(const Tensor& t) {
  Bytes out(size_t(int64_t(t.numel())) * size_bytes(t.dtype()));
  t.copy_to(out.data(), out.size());
  return out;
}

bool is_mapped(const Tensor& t) {
  const Ref<engine::Buffer> b = detail::buffer_of(t);
  return b && b->mapped();
}

class Mapped : public testing::Test {
 protected:
  Mapped() {
    TensorDict out;
    for (size_t i = 0; i < kWeights; i++)
      out.set(fmt::format("w{}", i), Tensor::from<float>(weight(i), {kCount}, {.device = "CPU"}));
    save(path, out);
  }
  static uint64_t bytes_read() { return os::transfers().stats().bytes; }
  void shrink_to(uint64_t size) const { std::filesystem::resize_file(path, size); }
  static std::string refused(const Tensor& t) {
    return error_text<IoError>([&] { bytes_of(t); });
  }

  ScratchFolder folder;
  const std::string path = folder.path("w.safetensors");
};

TEST_F(Mapped, NothingIsReadAndEverythingIsThere) {
  const TensorDict dict = load(path, kMapped);
  const uint64_t before = bytes_read();
  for (size_t i = 0; i < kWeights; i++) {
    const Tensor w = dict[fmt::format("w{}", i)];
    EXPECT_TRUE(is_mapped(w));
    EXPECT_EQ(w.device(), "CPU");
    EXPECT_EQ(w.to_vector<float>(), weight(i));
  }
  EXPECT_EQ((dict["w0"] * 2 + dict["w1"]).slice(0, 5, 6).item(), 1005 * 2 + 2005);
  EXPECT_EQ(bytes_read(), before);
}

// Types, shapes, strides, byte orders, blocks, archives: whatever readers know.
TEST_F(Mapped, FilesOfAllFormatsHaveTheBitsThatReadingGives) {
  size_t mapped = 0, all = 0;
  for (const SampleFile& sample : sample_files()) {
    SCOPED_TRACE(sample.format);
    const std::string file = folder.write(fmt::format("sample{}", all), sample.bytes);
    const TensorDict read = load(file, kRead), views = load(file, kMapped);
    for (const TensorInfo& t : read.info()) {
      if (t.dtype == DType::Void) continue;
      all++;
      const Tensor a = read[t.name], b = views[t.name];
      mapped += is_mapped(b);
      EXPECT_EQ(b.device(), "CPU");
      EXPECT_EQ(bytes_of(a), bytes_of(b)) << t.name;
    }
  }
  EXPECT_GE(mapped, 5u) << "of " << all;
}

TEST_F(Mapped, ElementsAtAnyOffset) {
  std::mt19937 random(3);
  Bytes bytes(30'000);
  for (uint8_t& b : bytes) b = uint8_t(random());
  const std::string file = folder.write("raw", bytes);
  for (const DType t : {DType::U8, DType::I16, DType::F16, DType::BF16, DType::F32, DType::I64})
    for (const uint64_t offset : {0, 1, 2, 4, 8, 4095, 4096, 8191, 12'345}) {
      const Tensor x = Tensor::from_file(file, {7, 11}, t, offset, {.mmap = true});
      EXPECT_EQ(x.device(), "CPU");
      EXPECT_EQ(is_mapped(x), offset % size_bytes(t) == 0) << name(t) << " at " << offset;
      EXPECT_EQ(bytes_of(x), Bytes(bytes.begin() + ptrdiff_t(offset),
                                   bytes.begin() + ptrdiff_t(offset + 77 * size_bytes(t))));
      if (t == DType::F32) continue;  // random bits are NaNs too
      EXPECT_EQ(bytes_of(x.slice(0, 3, 4)),
                Bytes(bytes.begin() + ptrdiff_t(offset + 33 * size_bytes(t)),
                      bytes.begin() + ptrdiff_t(offset + 44 * size_bytes(t))));
    }
  EXPECT_EQ(Tensor::from_file(file, {0, 3}, DType::F32, 30'000, {.mmap = true}).numel(), 0);
  EXPECT_THAT(error_text<IoError>(
                  [&] { Tensor::from_file(file, {2}, DType::F32, 29'996, {.mmap = true}); }),
              AllOf(HasSubstr(file), HasSubstr("8 bytes at byte 29996"), HasSubstr("has 30000")));
  folder.write("empty", "");
  EXPECT_EQ(Tensor::from_file(folder.path("empty"), {0}, DType::F32, 0, {.mmap = true}).numel(), 0);
}

TEST_F(Mapped, OtherDevicesGetCopies) {
  for (const devices::Candidate& c : engine::list_devices()) {
    if (!c.usable || c.rank == 0) continue;
    SCOPED_TRACE(c.name);
    const Tensor there = load(path, {.device = c.name, .mmap = true})["w6"];
    EXPECT_EQ(there.device(), c.name);
    EXPECT_EQ(there.to_vector<float>(), weight(6));
    EXPECT_EQ(load(path, kMapped)["w5"].to(c.name).to_vector<float>(), weight(5));
  }
}

TEST_F(Mapped, ViewsOutliveTheDictionaryAndTheFile) {
  Tensor a, b;
  {
    const TensorDict dict = load(path, kMapped);
    a = dict["w0"];
    b = dict["w1"] + 1;
  }
  std::filesystem::remove(path);
  folder.write("w.safetensors", "another file");
  EXPECT_EQ(a.to_vector<float>(), weight(0));
  EXPECT_EQ(b.slice(0, 0, 1).item(), 2001);
}

TEST_F(Mapped, WhatIsAssignedGoesToMemoryOfItsOwn) {
  const Bytes before = os::read_file(path);
  const TensorDict dict = load(path, kMapped);
  Tensor a = dict["w0"], b = dict["w1"], c = dict["w2"];
  const Tensor old = a * 1, other = load(path, kMapped)["w0"];
  a.assign(a + 1).realize();
  const std::vector<float> ones(kCount, 1);
  b.copy_from(ones.data(), ones.size() * 4);
  const Tensor at = Tensor::from<int32_t>({3}, {1}, {.device = "CPU"});
  c.index_put_({at}, Tensor::from<float>({7}, {1}, {.device = "CPU"}));
  c.realize();
  EXPECT_FALSE(is_mapped(a) || is_mapped(b) || is_mapped(c));
  EXPECT_EQ(a.slice(0, 1, 2).item(), 1002);
  EXPECT_EQ(dict["w0"].slice(0, 1, 2).item(), 1002) << "the same tensor";
  EXPECT_EQ(b.to_vector<float>(), ones);
  EXPECT_EQ(c.slice(0, 2, 4).to_vector<float>(), (std::vector<float>{3002, 7}));
  EXPECT_EQ(old.to_vector<float>(), weight(0));
  EXPECT_EQ(b.slice(0, 0, 1).item(), 1);
  EXPECT_EQ(other.to_vector<float>(), weight(0));
  EXPECT_EQ(os::read_file(path), before);
  shrink_to(100);
  EXPECT_EQ(a.slice(0, 1, 2).item(), 1002) << "what was assigned is not lost with the file";
}

TEST_F(Mapped, TrainsOnWhatItMapped) {
  Tensor w =
      Tensor::from_file(path, {4}, DType::F32, os::read_file(path).size() - 16, {.mmap = true});
  const std::vector<float> begin = w.to_vector<float>();
  Jit step([&](const std::vector<Tensor>& in) {
    w.assign(w * in[0]);
    return std::vector<Tensor>{w.sum()};
  });
  const Tensor two = Tensor::full({4}, 2.0f, {.device = "CPU"}).realize();
  for (int i = 0; i < 5; i++) step({two})[0].item();
  EXPECT_EQ(w.slice(0, 0, 1).item(), begin[0] * 32);
}

TEST_F(Mapped, AGraphThatWritesItsArgumentRefusesAMappedOne) {
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor x = in[0];
    x.assign(x + 1);
    return std::vector<Tensor>{x.sum()};
  });
  for (int i = 0; i < 3; i++) step({Tensor::ones({kCount}, {.device = "CPU"}).realize()});
  EXPECT_THAT(error_text<InvalidArgument>([&] { step({load(path, kMapped)["w0"]}); }),
              AllOf(HasSubstr("input 0"), HasSubstr("read-only"), HasSubstr("(x + 0).realize()")));
}

// ---- files that change

TEST_F(Mapped, AFileThatShrinksIsAnErrorAndWhatWasThereBeforeStays) {
  const TensorDict dict = load(path, kMapped);
  const Tensor first = dict["w0"], last = dict["w7"];
  const Tensor known = (first + last).realize();
  const std::vector<float> values = known.to_vector<float>();
  Tensor pending = last * 2;
  shrink_to(2 << 20);
  EXPECT_THAT(refused(last), AllOf(HasSubstr(path), HasSubstr("ends at byte 2097152"),
                                   HasSubstr("load it again")));
  EXPECT_THAT(refused(pending), HasSubstr("ends at byte"));
  EXPECT_THAT(refused(first), HasSubstr(path)) << "the file is another one";
  EXPECT_THAT(error_text<IoError>([&] { dict["w5"]; }), HasSubstr(path));
  EXPECT_EQ(known.to_vector<float>(), values) << "computed and waited for before";
  EXPECT_EQ((known - known).sum().item(), 0);
}

TEST_F(Mapped, WhatWasInFlightIsToldWhenItIsWaitedFor) {
  const Tensor last = load(path, kMapped)["w7"];
  Tensor y = (last * 3).realize();
  Tensor z = (y + 1).sum().realize();
  shrink_to(4096);
  Tensor after = (last * 5).realize();  // nobody knows yet
  EXPECT_THAT(refused(after), HasSubstr(path));
  EXPECT_THAT(error_text<IoError>([&] { (after + 1).realize(); }), HasSubstr(path));
  EXPECT_THAT(error_text<IoError>([&] { after.data_ptr(); }), HasSubstr(path));
  EXPECT_THAT(error_text<IoError>([&] { last.to("DISK:" + folder.path("out")).realize(); }),
              HasSubstr(path));
}

TEST_F(Mapped, AFileThatIsWrittenToIsAnError) {
  const Tensor w = load(path, kMapped)["w3"];
  EXPECT_EQ(w.slice(0, 0, 1).item(), 4000);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file.write("abcd", 4);
  }
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT(refused(w),
              AllOf(HasSubstr(path), HasSubstr("was written to"), HasSubstr("load it again")));
}

// Of from_file() only what is missing is an error: somebody may be writing there.
TEST_F(Mapped, AFileOfNumbersMayGrowAndBeWritten) {
  const std::string file = folder.write("raw", Bytes(8192, 1));
  const Tensor x = Tensor::from_file(file, {4096}, DType::U8, 4096, {.mmap = true});
  std::filesystem::resize_file(file, 100'000);
  EXPECT_EQ(bytes_of(x), Bytes(4096, 1));
  std::filesystem::resize_file(file, 8191);
  EXPECT_THAT(refused(x), HasSubstr("ends at byte 8191, 1 bytes early"));
}

// Whatever the moment: right values, or an error.
TEST_F(Mapped, AFileThatShrinksWhileKernelsRunNeverGivesWrongValues) {
  const double expected = [&] {
    const TensorDict dict = load(path, kRead);
    return (dict["w0"] * dict["w6"] - dict["w7"]).sum().item();
  }();
  const std::string copy = folder.path("copy.safetensors");
  int failed = 0, right = 0;
  for (int round = 0; round < 12; round++) {
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    const TensorDict dict = load(copy, kMapped);
    const Tensor a = dict["w0"], b = dict["w6"], c = dict["w7"];
    std::atomic<int> done = 0;
    std::thread shrinker([&] {
      while (done < 3 + round) std::this_thread::yield();
      std::filesystem::resize_file(copy, round % 2 ? 1000 : 5 << 20);
    });
    std::string why;
    while (why.empty()) {
      try {
        ASSERT_EQ((a * b - c).sum().item(), expected);
        right++;
      } catch (const IoError& e) {
        why = e.what();
      }
      done++;
    }
    failed++;
    EXPECT_THAT(why, HasSubstr(copy));
    shrinker.join();
  }
  EXPECT_EQ(failed, 12);
  EXPECT_GE(right, 12 * 3);
}

TEST_F(Mapped, ReplaysOfAFileThatShrinksSaySo) {
  const TensorDict dict = load(path, kMapped);
  const Tensor w = dict["w7"], scale = Tensor::full({1}, 2.0f, {.device = "CPU"}).realize();
  Jit fixed([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{(w * in[0]).sum()}; });
  Jit given([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{(in[0] + 1).sum()}; });
  std::vector<double> before;
  for (int i = 0; i < 4; i++) {
    before = {fixed({scale})[0].item(), given({w})[0].item()};
    EXPECT_EQ(before[1], weight(7)[0] * kCount + double(kCount) * (kCount - 1) / 2 + kCount);
  }
  const Tensor mine = Tensor::ones({kCount}, {.device = "CPU"}).realize();
  shrink_to(1 << 20);
  EXPECT_THAT(error_text<IoError>([&] { fixed({scale})[0].item(); }), HasSubstr(path));
  EXPECT_THAT(error_text<IoError>([&] { given({w})[0].item(); }), HasSubstr(path));
  EXPECT_EQ(scale.item(), 2) << "nobody wrote there";
  EXPECT_EQ(given({mine})[0].item(), 2 * kCount);
}

TEST_F(Mapped, AGraphOverTwoDevicesSaysSo) {
  for (const devices::Candidate& c : engine::list_devices()) {
    if (!c.usable || c.rank == 0 || c.name == "CPU" || c.name == "NULL") continue;
    SCOPED_TRACE(c.name);
    const std::string copy = folder.path("copy.safetensors");
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    const Tensor w = load(copy, kMapped)["w7"];
    Jit step([&](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{(w.to(c.name) * in[0].to(c.name)).sum()};
    });
    const Tensor one = Tensor::ones({1}, {.device = "CPU"}).realize();
    double right = 0;
    for (int i = 0; i < 3; i++) right = step({one})[0].item();
    EXPECT_NE(right, 0);
    std::filesystem::resize_file(copy, 1 << 20);
    EXPECT_THAT(error_text<Error>([&] { step({one})[0].item(); }), HasSubstr(copy));
    break;
  }
}

// ---- memory

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * os::page_size();
}

TEST_F(Mapped, ASliceOfALargeFileTakesNoMoreThanItself) {
  constexpr int64_t kRows = 1 << 18, kRow = 256;  // 256 MiB
  const std::string file = folder.write("large", Bytes(16, 0));
  std::filesystem::resize_file(file, kRows * kRow * 4);
  Tensor::zeros({1}, {.device = "CPU"}).realize();
  const uint64_t before = resident_bytes();
  const Tensor all = Tensor::from_file(file, {kRows, kRow}, DType::F32, 0, {.mmap = true});
  EXPECT_EQ((all.slice(0, kRows / 2, kRows / 2 + 1024) + 1).sum().item(), 1024.0 * kRow);
  EXPECT_LT(resident_bytes() - before, 32u << 20);
}

}  // namespace
}  // namespace tuff::io
