// GspEnd: the emulated GSP's end of its two rings: takes commands, of which every field is checked,
// and answers. Called by what emulates a GPU without its kernel driver, and by tests. Shares
// nothing with the driver's end. Source: open-gpu-kernel-modules @1739a20, message_queue_cpu.c and
// message_queue_priv.h as of version 570 (records have 48 bytes before the call).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tuff::emu::nv {

struct GspCommand {
  uint32_t function = 0;
  std::vector<uint8_t> payload;  // of all its records
};

class GspEnd {
 public:
  // The page of the host's memory at an address of the GPU's; null: there is none.
  using Page = std::function<std::byte*(uint64_t address)>;
  // `table` is the address of the table of pages. `mistake` is told what is wrong with commands.
  GspEnd(Page page, uint64_t table, std::function<void(const std::string&)> mistake);
  // Sets up the ring of answers.
  void start();
  // The next command, if it is there with all its records. What is wrong is told, and skipped.
  std::optional<GspCommand> take();
  // How many bytes a command has whose first record is this; without it those that it has.
  std::function<uint64_t(const GspCommand& first)> whole_bytes;
  // False: there is no room for its records.
  bool answer(uint32_t function, uint32_t result, const std::vector<uint8_t>& payload);

 private:
  std::byte* ring(bool status, uint32_t page) const;
  uint32_t get(bool status, uint32_t offset) const;
  void set(bool status, uint32_t offset, uint32_t value) const;
  bool take_record(uint32_t& function, std::vector<uint8_t>& payload);
  bool put_record(uint32_t function, uint32_t result, const uint8_t* payload, size_t bytes);

  const Page page_;
  const uint64_t table_;
  const std::function<void(const std::string&)> mistake_;
  uint32_t taken_ = 0, put_ = 0;  // pages
  uint32_t sequence_in_ = 0, sequence_out_ = 0;
  std::optional<GspCommand> partial_;
  uint64_t partial_bytes_ = 0;  // that it is to have
};

}  // namespace tuff::emu::nv
