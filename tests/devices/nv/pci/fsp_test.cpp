// Messages to FSP through the emulated bus: what it gets, and answers that are none.
#include "devices/nv/pci/fsp.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <algorithm>
#include <span>

#include "base/error_of.h"
#include "devices/nv/pci/gsp_arguments.h"
#include "emu/nv/pci/fsp_model.h"
#include "emu/pci/bus.h"

namespace tuff::devices::nv {
namespace {

constexpr const char* kFspSlot = "0000:41:00.0";
constexpr uint64_t kReadyAt = 0x200bc;
using FspWords = std::vector<uint32_t>;

class FspGpu final : public emu::pci::Function {
 public:
  explicit FspGpu(emu::nv::FspModel::Told mistake) : model(std::move(mistake)) {}
  uint32_t read(size_t, uint64_t offset) override {
    return offset == kReadyAt ? (++looks < ready_after ? 0 : 0xff) : model.read(offset);
  }
  void write(size_t, uint64_t offset, uint32_t value) override { model.write(offset, value); }
  emu::nv::FspModel model;
  uint32_t looks = 0, ready_after = 3;
};

struct FspScene {
  FspScene() {
    bus->add({kFspSlot, 0x10de, 0x2330, 0x030200, "vfio-pci", "7", {1u << 24}, gpu});
    device = std::make_unique<PciDevice>(bus, pci_function(*bus, kFspSlot));
    gpu->model.take = [this](uint32_t kind, const FspWords& payload) {
      kinds.push_back(kind);
      taken.push_back(payload);
      return error;
    };
  }
  ~FspScene() { EXPECT_EQ(mistakes, std::vector<std::string>()); }
  Fsp fsp(uint64_t timeout_ms = 1000) const { return {*device, kReadyAt, timeout_ms}; }

  std::vector<std::string> mistakes;
  std::vector<uint32_t> kinds;
  std::vector<FspWords> taken;
  uint32_t error = 0;
  emu::Reports reports{[this](const emu::Finding& f) { mistakes.push_back(to_text(f)); }};
  std::shared_ptr<FspGpu> gpu =
      std::make_shared<FspGpu>([this](const std::string& why) { mistakes.push_back(why); });
  std::shared_ptr<emu::pci::Bus> bus = std::make_shared<emu::pci::Bus>(reports);
  std::unique_ptr<PciDevice> device;
};

TEST(NvFsp, MessagesOfAllSizes) {
  FspScene s;
  s.fsp().wait_until_ready();
  EXPECT_GE(s.gpu->looks, 3u);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4}, size_t{860}, Fsp::kMostPayload}) {
    Bytes payload(size);
    for (size_t i = 0; i < size; ++i) payload[i] = uint8_t(i * 7 + 1);
    s.fsp().call(FspMessage::ChainOfTrust, payload);
    Bytes padded = payload;
    padded.resize((size + 3) / 4 * 4);
    const FspWords& words = s.taken.back();
    ASSERT_EQ(4 * words.size(), padded.size());
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(words)),
                                   std::as_bytes(std::span(padded))))
        << size;
    EXPECT_EQ(s.kinds.back(), 0x14u);
  }
}

TEST(NvFsp, WhatItRefuses) {
  FspScene s;
  s.error = 0x3e;
  EXPECT_EQ(error_of<DeviceLost>([&] { s.fsp().call(FspMessage::ChainOfTrust, {}); }),
            "0000:41:00.0: FSP refused message 0x14: error 0x3e");
}

// Each word of an answer is looked at but the number of a task.
TEST(NvFsp, AnswersThatAreNone) {
  for (const size_t changed : {0u, 1u, 3u, 5u}) {
    FspScene s;
    s.gpu->model.answer = [&](FspWords words) {
      if (changed < words.size()) words[changed] ^= 1u << 30;
      else words.pop_back();
      return words;
    };
    const std::string text =
        error_of<DeviceLost>([&] { s.fsp().call(FspMessage::ChainOfTrust, {}); });
    EXPECT_TRUE(text.starts_with("0000:41:00.0: FSP did not answer message 0x14 but sent "))
        << text;
  }
}

TEST(NvFsp, OneThatDoesNotAnswerIsLost) {
  FspScene s;
  s.gpu->model.answer = [](const FspWords&) { return FspWords(); };
  EXPECT_EQ(error_of<DeviceLost>([&] { s.fsp(20).call(FspMessage::ChainOfTrust, {}); }),
            "0000:41:00.0: FSP did not answer within 20 ms");
  s.gpu->model.slowness = 1u << 30;  // and does not take the next packet
  EXPECT_THROW(s.fsp(20).call(FspMessage::ChainOfTrust, {}), DeviceLost);
  EXPECT_NE(error_of<DeviceLost>([&] { s.fsp(20).call(FspMessage::ChainOfTrust, {}); })
                .find("FSP did not take the packet before"),
            std::string::npos);
  s.gpu->ready_after = ~0u;
  EXPECT_EQ(error_of<DeviceLost>([&] { s.fsp(20).wait_until_ready(); }),
            "0000:41:00.0: FSP did not end its own start within 20 ms (register 0x200bc has 0x0)");
}

}  // namespace
}  // namespace tuff::devices::nv
