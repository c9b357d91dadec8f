// DISK: files as memory. Copies to and from every device of this machine, lists in flight against a
// model, captured graphs that read files while others compute, and what becomes of errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/jit.h>
#include <tuff/tensor.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/check.h"
#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "base/os_transfer.h"
#include "base/temporary_folder.h"
#include "devices/registry.h"
#include "engine/device.h"
#include "hcq/graph.h"
#include "hcq/order.h"

namespace tuff {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

std::vector<std::string> devices_to_test() {
  if (const std::string given = system_env("TUFF_TEST_DEVICES"); !given.empty()) return {given};
  std::vector<std::string> out;
  for (const devices::Candidate& c : engine::list_devices())
    if (c.usable && c.name != "DISK") out.push_back(c.name);
  return out;
}

std::vector<std::string> computing_devices() {
  std::vector<std::string> out = devices_to_test();
  std::erase(out, "NULL");
  return out;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, ':', '_');
  return name;
}

class Disk : public testing::Test {
 protected:
  Bytes random_bytes(size_t n) {
    Bytes out(n);
    for (uint8_t& b : out) b = uint8_t(random());
    return out;
  }
  std::string written(const std::string& name, const Bytes& bytes) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    return folder / name;
  }
  static Bytes bytes_of(const Tensor& t) {
    Bytes out(size_t(int64_t(t.numel())) * size_bytes(t.dtype()));
    t.copy_to(out.data(), out.size());
    return out;
  }

  TemporaryFolder folder;
  std::mt19937_64 random{11};
};

constexpr size_t kSeveralStaged = 40'000'003;  // pieces of staging memory

class DiskAndDevice : public Disk, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, DiskAndDevice, testing::ValuesIn(devices_to_test()), name_of);
// NULL takes part in copies alone: it computes nothing.
class DiskAndKernels : public DiskAndDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, DiskAndKernels, testing::ValuesIn(computing_devices()), name_of);

TEST_P(DiskAndDevice, CopiesToAndFromFilesAtAnyOffset) {
  for (const size_t size :
       {size_t(1), size_t(5), size_t(4096), size_t(3'000'003), kSeveralStaged}) {
    const Bytes bytes = random_bytes(size + 4099);
    const std::string path = written("in", bytes);
    for (const size_t offset : {size_t(1), size_t(0), size_t(4099)}) {
      if (size == kSeveralStaged && offset != 1) break;
      const Tensor t = Tensor::from_file(path, {int64_t(size)}, DType::U8, offset);
      const Tensor there = t.to(GetParam());
      ASSERT_EQ(bytes_of(there),
                Bytes(bytes.begin() + ptrdiff_t(offset), bytes.begin() + ptrdiff_t(offset + size)))
          << size << " at " << offset;
      const std::string out = folder / fmt::format("out{}_{}", size, offset);
      there.to("DISK:" + out).realize();
      ASSERT_EQ(os::read_file(out), bytes_of(there)) << size << " at " << offset;
    }
  }
}

TEST_P(DiskAndDevice, ManyTensorsAreReadTogether) {
  const Bytes bytes = random_bytes(3 << 20);
  const std::string path = written("in", bytes);
  std::vector<Tensor> many;
  for (size_t at = 0; at + 5000 < bytes.size(); at += 20'001)
    many.push_back(Tensor::from_file(path, {5000}, DType::U8, at).to(GetParam()));
  Tensor::realize(many);
  for (size_t i = 0; i < many.size(); i++)
    ASSERT_EQ(std::memcmp(bytes_of(many[i]).data(), &bytes[i * 20'001], 5000), 0) << i;
}

TEST_F(Disk, AnyTypeAndShape) {
  const Bytes bytes = random_bytes(1000);
  const std::string path = written("in", bytes);
  const Tensor t = Tensor::from_file(path, {5, 7}, DType::I32, 12);
  EXPECT_EQ(t.device(), "DISK:" + path);
  const std::vector<int32_t> all = t.to("CPU").to_vector<int32_t>();
  EXPECT_EQ(std::memcmp(all.data(), &bytes[12], 140), 0);
  const std::vector<int32_t> rows = t.to("CPU").slice(0, 2, 4).to_vector<int32_t>();
  EXPECT_EQ(std::memcmp(rows.data(), &bytes[12 + 2 * 28], 56), 0);
  const std::vector<int32_t> turned = t.to("CPU").permute({1, 0}).contiguous().to_vector<int32_t>();
  EXPECT_EQ(turned[1], all[7]);
}

TEST_F(Disk, TensorsFollowOneAnotherInAFileAndStayThere) {
  const std::string path = folder / "out", name = "DISK:" + path;
  Tensor::from<int32_t>({1, 2, 3}, {3}, {.device = "CPU"}).to(name).realize();
  Tensor::from<int32_t>({4, 5}, {2}, {.device = "CPU"}).to(name).realize();
  EXPECT_EQ(std::filesystem::file_size(path), 4096u + 8);
  EXPECT_EQ(Tensor::from_file(path, {3}, DType::I32).to("CPU").to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2, 3}));
  Tensor last = Tensor::from_file(path, {2}, DType::I32, 4096);
  EXPECT_EQ(last.to_vector<int32_t>(), (std::vector<int32_t>{4, 5}));
  const int32_t other[] = {6, 7};
  last.copy_from(other, sizeof other);
  EXPECT_EQ(last.to_vector<int32_t>(), (std::vector<int32_t>{6, 7}));
  // Another file of that name is begun anew.
  std::filesystem::remove(path);
  Tensor::from<int32_t>({8}, {1}, {.device = "CPU"}).to(name).realize();
  EXPECT_EQ(std::filesystem::file_size(path), 4u);
}

TEST_F(Disk, BetweenTwoFiles) {
  const Bytes bytes = random_bytes(20'000'001);
  const std::string path = written("in", bytes);
  const Tensor t = Tensor::from_file(path, {int64_t(bytes.size())}, DType::U8);
  t.to("DISK:" + folder / "out").realize();
  EXPECT_EQ(os::read_file(folder / "out"), bytes);
}

TEST_F(Disk, ComputesNothing) {
  const Tensor t = Tensor::from_file(written("in", Bytes(64)), {4, 4});
  EXPECT_THAT(error_of<Unsupported>([&] { (t + 1).realize(); }),
              AllOf(HasSubstr("computes nothing"), HasSubstr("to(\"CPU\")")));
  EXPECT_THAT(error_of<Unsupported>(
                  [] { Tensor::from<float>({1, 2}, {2}, {.device = "CPU"}).to("DISK").realize(); }),
              HasSubstr("DISK:PATH"));
}

TEST_F(Disk, AFileThatShrinksIsAnErrorAndNothingElseIsLost) {
  const Bytes bytes = random_bytes(1 << 20);
  const std::string path = written("in", bytes);
  const Tensor first = Tensor::from_file(path, {1000}, DType::U8);
  Tensor last = Tensor::from_file(path, {1000}, DType::U8, (1 << 20) - 1000).to("CPU");
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(error_of<IoError>([&] { last.realize(); }),
              AllOf(HasSubstr(path), HasSubstr("ends at byte 5000"), HasSubstr("load it again")));
  EXPECT_EQ(bytes_of(first.to("CPU")), Bytes(bytes.begin(), bytes.begin() + 1000));
  {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), 1 << 20);
  }
  EXPECT_EQ(bytes_of(last), Bytes(bytes.end() - 1000, bytes.end()));
}

// ---- the queue

class DiskQueue : public Disk {
 protected:
  hcq::Span range(const std::shared_ptr<const os::DataFile>& file, size_t offset, size_t size) {
    return device->allocator().adopt(device->files()->over_file(file, offset, size, false), size);
  }
  hcq::Span host(size_t size) {
    return device->allocator().allocate(size, hcq::MemoryKind::Upload);
  }
  static hcq::Command copy(const hcq::Span& dst, const hcq::Span& src) {
    return {hcq::CopyCmd{dst, src}, {{src, false}, {dst, true}}, "copy"};
  }
  uint64_t submit(const hcq::CommandList& list) {
    hcq::Queue& q = device->compute_queue();
    return q.submit_once(q.encode(list, hcq::EncodeUse::Once));
  }
  std::unique_ptr<hcq::Device> device = [] {
    for (const devices::DeviceKind& k : devices::device_kinds())
      if (std::string(k.kind) == "DISK") return k.open("");
    return std::unique_ptr<hcq::Device>();
  }();
};

// Copies among a file's ranges and the host's, in lists that are all submitted before the first has
// ended, are what they are one after the other.
TEST_F(DiskQueue, RandomListsInFlightAreWhatAModelSays) {
  constexpr size_t kParts = 12, kPart = 300'000;
  const Bytes bytes = random_bytes(kParts * kPart + 5);
  const auto file =
      std::make_shared<const os::DataFile>(written("a", bytes), os::DataFile::Mode::ReadWrite);
  std::vector<hcq::Span> spans;
  std::vector<Bytes> model;
  for (size_t i = 0; i < kParts; i++) {
    spans.push_back(range(file, 5 + i * kPart, kPart));
    model.emplace_back(bytes.begin() + ptrdiff_t(5 + i * kPart),
                       bytes.begin() + ptrdiff_t(5 + (i + 1) * kPart));
  }
  for (size_t i = 0; i < kParts; i++) {
    spans.push_back(host(kPart));
    model.push_back(random_bytes(kPart));
    std::memcpy(spans.back().host(), model.back().data(), kPart);
  }
  uint64_t value = 0;
  for (int n = 0; n < 40; n++) {
    hcq::CommandList list;
    for (size_t c = 1 + random() % 8; c-- > 0;) {
      const size_t to = random() % spans.size(), from = random() % spans.size();
      const size_t size = 1 + random() % (kPart / 2), at = random() % (kPart - size),
                   of = random() % (kPart - size);
      if (to == from) continue;
      list.commands.push_back(copy(spans[to].sub(at, size), spans[from].sub(of, size)));
      std::memcpy(&model[to][at], &model[from][of], size);
    }
    hcq::insert_barriers(list);
    value = submit(list);
  }
  device->compute_queue().wait(value);
  Bytes back(kPart);
  for (size_t i = 0; i < spans.size(); i++) {
    device->download(spans[i], back.data());
    ASSERT_EQ(back, model[i]) << "part " << i;
  }
}

TEST_F(DiskQueue, AListThatFailsTellsWhoeverWaitsForItAndNobodyElse) {
  const auto file = std::make_shared<const os::DataFile>(written("a", random_bytes(100'000)),
                                                         os::DataFile::Mode::ReadWrite);
  const hcq::Span good = range(file, 0, 1000), bad = range(file, 90'000, 1000), memory = host(1000);
  std::filesystem::resize_file(folder / "a", 2000);
  const std::unique_ptr<hcq::Signal> raised = device->create_signal();
  hcq::CommandList list;
  list.slot_count = 1;
  list.commands.push_back(copy(memory, bad));
  list.commands.push_back({hcq::SignalCmd{raised.get(), 0}, {}, ""});
  hcq::Queue& q = device->compute_queue();
  const uint64_t slots[] = {7};
  const uint64_t failing = q.submit_once(q.encode(list, hcq::EncodeUse::Once), slots);
  hcq::CommandList fine;
  fine.commands.push_back(copy(memory, good));
  q.wait(submit(fine));
  EXPECT_TRUE(raised->wait(7, 0));
  EXPECT_THAT(error_of<IoError>([&] { q.wait(failing); }), HasSubstr("ends at byte 2000"));
  q.wait(failing);  // told once
}

TEST_F(DiskQueue, WaitsForSignalsOfTheHostAndRunsNoKernels) {
  const auto file =
      std::make_shared<const os::DataFile>(written("a", Bytes(10)), os::DataFile::Mode::ReadWrite);
  const std::unique_ptr<hcq::Signal> go = device->create_signal();
  hcq::CommandList list;
  list.slot_count = 1;
  list.commands.push_back({hcq::WaitCmd{go.get(), 0}, {}, ""});
  const hcq::Span to = range(file, 0, 10), memory = host(10);
  std::memset(memory.host(), 9, 10);
  list.commands.push_back(copy(to, memory));
  hcq::Queue& q = device->compute_queue();
  const uint64_t slots[] = {3};
  const uint64_t value = q.submit_once(q.encode(list, hcq::EncodeUse::Once), slots);
  EXPECT_FALSE(q.timeline().wait(value, 20'000'000));
  EXPECT_EQ(os::read_file(folder / "a"), Bytes(10));
  go->set(3);
  q.wait(value);
  EXPECT_EQ(os::read_file(folder / "a"), Bytes(10, 9));
  hcq::CommandList kernel;
  kernel.commands.push_back({hcq::DispatchCmd{}, {}, "k"});
  EXPECT_THROW(q.encode(kernel, hcq::EncodeUse::Once), Unsupported);
}

// ---- captured graphs

TEST_P(DiskAndKernels, CapturedGraphsReadWhatTheyAreGivenAndWriteResults) {
  const std::string device = GetParam();
  std::vector<float> numbers(8000);
  for (size_t i = 0; i < numbers.size(); i++) numbers[i] = float(i % 97);
  const std::string path = folder / "in";
  os::write_file(path, {reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * 4});
  const Tensor out = Tensor::zeros({1000}, {.device = device}).realize();
  const std::string results = folder / "out";
  Jit step([&](const std::vector<Tensor>& in) {
    const Tensor x = in[0].to(device) * 2 + 1;
    return std::vector<Tensor>{x, x.to("DISK:" + results)};
  });
  for (size_t i = 0; i < 8; i++) {
    const std::vector<Tensor> y = step({Tensor::from_file(path, {1000}, DType::F32, i * 4000)});
    const std::vector<float> got = y[0].to_vector<float>(), kept = y[1].to_vector<float>();
    for (size_t k = 0; k < got.size(); k++)
      ASSERT_EQ(got[k], numbers[i * 1000 + k] * 2 + 1) << "step " << i << " element " << k;
    ASSERT_EQ(kept, got) << "step " << i;
  }
  EXPECT_GT(step.stats().host_copies, 0u);
}

TEST_P(DiskAndKernels, AGraphWhoseFileShrinksSaysSoWhenItsResultIsRead) {
  const std::string path = written("in", Bytes(8000));
  Jit step(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0].to(GetParam()) + 1}; });
  const std::vector<Tensor> parts = {Tensor::from_file(path, {1000}, DType::F32),
                                     Tensor::from_file(path, {500}, DType::F32, 2000),
                                     Tensor::from_file(path, {1000}, DType::F32, 4000)};
  for (int i = 0; i < 3; i++) step({parts[0]})[0].to_vector<float>();
  std::filesystem::resize_file(path, 4004);
  EXPECT_THAT(error_of<Error>([&] { step({parts[2]})[0].to_vector<float>(); }),
              AllOf(HasSubstr(path), HasSubstr("ends at byte 4004")));
}

}  // namespace
}  // namespace tuff
