// What the GPUs of one machine do in memory that several of them map, word by word, and what their
// semaphores tell of each other's operations. One for a machine of several; thread-safe. What a GPU
// does beside itself its own caches.h judges. Called by nv/world.cpp.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/memory/caches.h"

namespace tuff::emu {

// One GPU of the machine, and how often its serial numbers have begun again.
struct Peer {
  uint32_t gpu = 0;
  uint64_t restarts = 0;
};

// What is wrong with an access beside one of another GPU.
struct PeerConflict {
  Conflict conflict;
  std::string other;  // "kernel `add` of GPU 1"
};

class PeerMemory {
 public:
  explicit PeerMemory(uint32_t gpus);

  // From here on accesses to that buffer are looked at.
  void share(const std::shared_ptr<Buffer>& buffer);

  // A queue of `by`, which knows `order`, stores `value` in a buffer.
  void signalled(Peer by, const Order& order, const std::shared_ptr<Buffer>& buffer,
                 uint64_t offset, uint64_t value);
  // What stands still is known to whoever the host tells of it.
  void released(Peer by, const Order& order);
  // What a queue of `by` that finds `value` there knows from then on. A value that no queue has
  // stored comes from the host, who may have seen all that was released.
  void learn(Peer by, Order& order, const Buffer& buffer, uint64_t offset, uint64_t value) const;
  void learn_released(Peer by, Order& order) const;

  std::optional<PeerConflict> use(Peer by, const Accessor& who, const Mapping& mapping,
                                  const Request& request);

 private:
  // Serial number << 14 | slot << 8 | GPU << 4 | bytes of the word that it touched; 0: nobody.
  using Use = uint64_t;
  struct Word {
    Use writer = 0, reader = 0, other_reader = 0;
  };
  struct Signal {
    uint64_t value;
    PeerClock clock;
  };
  struct Entry {
    std::weak_ptr<Buffer> buffer;  // gone: the address means another one
    bool shared = false;
    std::map<uint64_t, std::vector<Word>> pages;  // by number
    std::map<uint64_t, Signal> signals;           // by offset
  };
  struct Judgement;
  Entry& entry_of(const std::shared_ptr<Buffer>& buffer);

  mutable std::mutex mutex_;
  std::map<const Buffer*, Entry> entries_;
  std::vector<std::map<uint64_t, std::string>> names_;  // of the latest operations here, by GPU
  PeerClock released_;
};

}  // namespace tuff::emu
