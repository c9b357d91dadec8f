// Tensors of files are read when they are used: once, together, and not at all if the file is no
// longer what was loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/io.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/os.h"
#include "base/os_transfer.h"
#include "engine/device.h"
#include "io/formats/sample_files.h"
#include "io/scratch_folder.h"

namespace tuff::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kCount = 1 << 20;  // elements of a weight, 4 MiB

std::vector<float> weight(int which) {
  std::vector<float> out(kCount);
  std::iota(out.begin(), out.end(), float(which) * 1000);
  return out;
}

class Lazy : public testing::Test {
 protected:
  Lazy() {
    TensorDict out;
    for (int i = 0; i < 8; i++)
      out.set(fmt::format("w{}", i), Tensor::from<float>(weight(i), {kCount}, {.device = "CPU"}));
    save(path, out);
  }
  static uint64_t bytes_read() { return os::transfers().stats().bytes; }
  static std::string damaged(const Tensor& t) {
    return error_text<IoError>([&] { Tensor(t).realize().data_ptr(); });
  }

  ScratchFolder folder;
  const std::string path = folder.path("w.safetensors");
  const LoadOptions cpu{.device = "CPU"};
};

TEST_F(Lazy, HeadersAloneAreReadUntilATensorIsUsed) {
  const uint64_t before = bytes_read();
  const TensorDict dict = load(path, cpu);
  EXPECT_EQ(dict.info().size(), 8u);
  const Tensor w = dict["w3"];
  EXPECT_EQ(w.device(), "CPU");
  EXPECT_FALSE(w.is_realized());
  EXPECT_LT(bytes_read() - before, 1u << 20);
  EXPECT_EQ(w.to_vector<float>(), weight(3));
  EXPECT_TRUE(w.is_realized());
  EXPECT_LT(bytes_read() - before, 5u << 20) << "one of eight was used";
}

TEST_F(Lazy, EachIsReadOnceByWhateverGraphComesFirst) {
  const TensorDict dict = load(path, cpu);
  const Tensor a = dict["w0"], b = dict["w1"];
  const uint64_t before = bytes_read();
  EXPECT_EQ((a + b).sum().item(), (a + b).sum().item());
  EXPECT_EQ(a.to_vector<float>(), weight(0));
  EXPECT_EQ(bytes_read() - before, 2 * 4u * kCount);
}

TEST_F(Lazy, TensorsOutliveTheirDictionaryAndItsFile) {
  Tensor a, b;
  {
    const TensorDict dict = load(path, cpu);
    a = dict["w0"];
    b = dict["w1"];
  }
  std::filesystem::remove(path);
  EXPECT_EQ(a.to_vector<float>(), weight(0));
  TensorDict other;
  other.set("w1", Tensor::zeros({3}, {.device = "CPU"}));
  save(path, other);
  EXPECT_EQ(b.to_vector<float>(), weight(1)) << "another file has its name";
}

TEST_F(Lazy, AFileIsSavedOverItself) {
  TensorDict dict = load(path, cpu);
  dict.set("w2", Tensor::zeros({2}, {.device = "CPU"}));
  save(path, dict);
  const TensorDict again = load(path, cpu);
  EXPECT_EQ(again["w2"].to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(again["w7"].to_vector<float>(), weight(7));
}

TEST_F(Lazy, AFileThatWasWrittenToIsAnError) {
  const TensorDict dict = load(path, cpu);
  const Tensor w = dict["w5"];
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file.write("abcd", 4);
  }
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT(damaged(w), AllOf(HasSubstr(path), HasSubstr("was written to since it was opened"),
                                HasSubstr("load it again")));
  EXPECT_FALSE(w.is_realized());
  EXPECT_THAT(error_text<IoError>([&] { (w + 1).sum().item(); }), HasSubstr("was written to"));
}

TEST_F(Lazy, AFileThatShrinksIsAnError) {
  const TensorDict dict = load(path, cpu);
  const Tensor first = dict["w0"], last = dict["w7"];
  std::filesystem::resize_file(path, 20 << 20);
  EXPECT_THAT(damaged(last), AllOf(HasSubstr(path), HasSubstr("ends at byte 20971520")));
  EXPECT_THAT(damaged(first), HasSubstr("has changed since it was opened"));
  Tensor::realize({first, dict["w3"], last});
  const Tensor sum = (first + last).sum();
  EXPECT_THAT(error_text<IoError>([&] { sum.item(); }), HasSubstr(path));
  EXPECT_THAT(error_text<IoError>([&] { dict["w3"].data_ptr(); }), HasSubstr(path));
}

TEST_F(Lazy, ThreadsUseTheSameTensors) {
  const TensorDict dict = load(path, cpu);
  std::vector<Tensor> tensors;
  for (const std::string& n : dict.names()) tensors.push_back(dict[n]);
  const uint64_t before = bytes_read();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      std::vector<Tensor> mine = tensors;
      std::ranges::rotate(mine, mine.begin() + t);
      Tensor::realize(mine);
      for (int i = 0; i < 8; i++) EXPECT_EQ(tensors[size_t(i)].to_vector<float>(), weight(i));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(bytes_read() - before, 8 * 4u * kCount);
}

TEST_F(Lazy, DamagedContentsAreToldWhenTheyAreUsed) {
  Bytes flags =
      safetensors_file(R"({"b": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}})", 4);
  std::fill(flags.end() - 4, flags.end(), uint8_t{2});
  const Tensor bools = load(folder.write("b.safetensors", flags), cpu)["b"];
  EXPECT_THAT(damaged(bools), HasSubstr("a bool of 2"));
}

// What needs more than its bytes, to every device: memory of some is out of the host's reach.
TEST_F(Lazy, EveryDeviceGetsWhatTheFileHas) {
  const Bytes turned = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
  folder.write("f.npy",
               npy_file("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", turned));
  for (const devices::Candidate& c : engine::list_devices()) {
    if (!c.usable || c.rank == 0) continue;
    SCOPED_TRACE(c.name);
    EXPECT_EQ(load(path, {.device = c.name})["w6"].to_vector<float>(), weight(6));
    EXPECT_THAT(load(folder.path("f.npy"), {.device = c.name})["f"].to_vector<int16_t>(),
                testing::ElementsAre(1, 3, 5, 2, 4, 6));
  }
}

}  // namespace
}  // namespace tuff::io
