// FspModel: registers of the processor of an emulated GPU that starts its GSP (Hopper, Blackwell),
// as far as the host's channel goes: a window into its memory, and two packets that wait to be
// taken. A script is called in the place of its firmware. What a driver must not do is told. Shares
// nothing with the driver. Source: open-gpu-kernel-modules @8ec351a (570.144), src/common/inc/
// swref/published/hopper/gh100/dev_fsp_pri.h. Never compared with hardware.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tuff::emu::nv {

class FspModel {
 public:
  static constexpr uint64_t kFirst = 0x8f2ac0, kEnd = 0x8f2c88;  // of its registers
  using Told = std::function<void(const std::string&)>;
  explicit FspModel(Told mistake) : mistake_(std::move(mistake)) {}
  uint32_t read(uint64_t offset);
  void write(uint64_t offset, uint32_t value);

  // What it does with a message: its kind and its payload in words. An error for the answer.
  std::function<uint32_t(uint32_t kind, const std::vector<uint32_t>& payload)> take =
      [](uint32_t, const std::vector<uint32_t>&) { return 0; };
  // The words of an answer before they are there; empty: there is none.
  std::function<std::vector<uint32_t>(std::vector<uint32_t>)> answer =
      [](std::vector<uint32_t> words) { return words; };
  uint32_t slowness = 2;  // reads until a packet is seen to be taken, and its answer is there

 private:
  void take_packet();
  void show_answer();
  uint32_t& word();
  const Told mistake_;
  std::vector<uint32_t> memory_ = std::vector<uint32_t>(256);
  uint32_t window_ = 0, sent_tail_ = 0, sent_head_ = 0, head_ = 0, tail_ = 0;
  uint32_t reads_ = 0;  // that are left
  bool has_packet_ = false;
  std::vector<uint32_t> answer_;  // that is not shown yet
};

}  // namespace tuff::emu::nv
