// Operations: the serial numbers of what an emulated GPU does in its memory, the slots of those who
// do it, and what signals carry: which operations had ended when a value was stored. Base of
// amd/chip.h and nv/chip.h. Knows no packets.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "emu/memory/caches.h"

namespace tuff::emu {

class Operations {
 public:
  explicit Operations(uint32_t gpu) : index(gpu) {}

  uint32_t tick() { return ++serial_; }
  OpId begin(uint32_t slot, const std::string& name);
  uint32_t now() const { return serial_; }
  bool serials_run_out() const { return serial_ > (1u << kSerialBits) - (1u << 16); }

  uint32_t take_slot();
  void give_slot(uint32_t slot);

  // What had ended when a queue stored `value` there, and what an engine that finds a value there
  // knows. A value that no queue of this GPU has stored comes from outside, where all that was
  // released may have been seen.
  void signalled(uint64_t address, uint64_t value, const Order& order);
  const Order& learned(uint64_t address, uint32_t value) const;
  const Order& released() const { return released_; }

  // One sentence, for a conflict of `who`; `cache` is what stood before the L2. The other one is
  // an operation of this GPU, or has that name.
  std::string describe(const Accessor& who, const Request& request, const Conflict& c,
                       const char* cache) const;
  static std::string describe(const Accessor& who, const Request& request, const Conflict& c,
                              const char* cache, const std::string& other);

  const uint32_t index;

 protected:
  void restart();

 private:
  struct Signal {
    uint32_t value;
    Order order;
  };
  std::string name_of(OpId op) const;

  uint32_t serial_ = 0;
  uint64_t slots_ = 1;  // slot 0 is never given out
  Order released_;
  std::map<uint64_t, Signal> signals_;
  std::deque<std::pair<OpId, std::string>> names_;  // of the latest operations
};

}  // namespace tuff::emu
