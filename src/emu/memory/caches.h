// The memory of one GPU as its engines see it: the L2 by value, the caches before it (L0, K, I, L1)
// by what they may rely on, the host's view of VRAM, page faults. Called by kernel_memory.h for
// lanes and runs of lanes and by queues for their engines; by one thread at a time.
//
// The L2 keeps bytes from the first use on: what others write to memory is not seen before an
// invalidation, what is written here is seen outside after a write-back alone. Nothing is evicted
// by itself, so that what is missing shows. The caches before it hold copies that would be found by
// chance alone, hence by rule: a word that another operation wrote may be read once that has ended
// and the cache was invalidated after it; a word that changed in memory, once it was invalidated
// since the last read through the same cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "emu/memory/address_space.h"
#include "emu/memory/memory.h"
#include "emu/memory/order.h"

namespace tuff::emu {

enum class Path : uint8_t { L2, Vector, Scalar, Code };

struct Request {
  uint64_t address = 0;
  uint32_t bytes = 0;  // at most kPageBytes, as much as there is of poison
  Path path = Path::L2;
  bool read = false, write = false;
};

// What is wrong with an access that is carried out all the same.
struct Conflict {
  enum class Kind : uint8_t {
    None,
    Concurrent,  // `other` may still run
    Unseen,      // `other` has ended, a cache may hold what was there before
    Changed,     // memory was changed from outside, a cache holds what was there before
  } kind = Kind::None;
  OpId other = 0;
  bool other_writes = false;
  uint64_t address = 0;
};

// What an access by that path may rely on to be there.
const Order& visible_to(const Accessor& who, Path path);

class Caches {
 public:
  Caches(uint32_t gpu, AddressSpace& space);
  ~Caches();
  // Before a step: mappings may have changed. `now` is the serial number that accesses happen at.
  void begin(uint32_t now);

  // The bytes of an access; null: a page fault, see fault(). What is stale reads as poison.
  uint8_t* reach(const Accessor& who, const Request& request, Conflict& conflict);
  // The same where there is no conflict. Else, or for a page fault, null, and reach() for each part
  // of the request finds what it would have found without this call.
  uint8_t* reach_if_clean(const Accessor& who, const Request& request);
  const MemoryFault& fault() const { return fault_; }
  // What engines read of their own: rings, buffers of packets, words that they poll.
  const uint8_t* peek(uint64_t address, uint32_t bytes);
  // A word of 4 or 8 bytes to memory, past the caches. False: a page fault.
  bool store(uint64_t address, uint64_t value, uint32_t bytes);
  bool mapped(uint64_t address, uint64_t bytes, bool write);
  // Null if nothing is; until the next step.
  const Mapping* mapping_at(uint64_t address) {
    const Shadow* s = shadow_of(address);
    return s ? s->mapping.get() : nullptr;
  }

  // Dirty lines to memory; all lines are stale. How many dirty ones invalidate() has dropped: none
  // after write_back().
  void write_back();
  size_t invalidate();
  void flush_hdp() { ++hdp_epoch_; }
  // What the caches hold of a mapping that ends.
  void forget(uint64_t mapping_serial);
  // Writes back and forgets everything, serial numbers as well.
  void clear();
  void drop();  // without writing back: the GPU was reset

 private:
  // 64 bytes of a mapping.
  struct Line {
    uint64_t dirty;  // bytes that memory does not have yet
    uint32_t epoch;  // of the L2 when it was fetched; 0: never
    uint32_t hdp;    // of the HDP when the host's view was looked at
    // By the caches before the L2, vector [0] and scalar [1]: when they fetched it, and words that
    // have changed in memory since.
    uint32_t fetched[2];
    uint16_t changed[2];
    uint16_t seen;  // words that `bytes` holds, of uncached lines
    // What need not be looked at again: the last operations to read and write here, and the words
    // that they read or wrote as a whole, without conflict and with no other operation between.
    uint16_t clean_reads, clean_writes;
    uint32_t last_reader;  // operation << 4 | path
    uint32_t last_writer;  // operation << 4
  };
  // A word: operation << 4 | bytes of the word that it touched.
  struct Tag {
    uint32_t writer, reader, other_reader;
  };
  struct Shadow {
    std::shared_ptr<const Mapping> mapping;
    uint8_t* bytes = nullptr;  // of cached mappings the L2, of others what was last seen
    Line* lines = nullptr;
    Tag* tags = nullptr;
    uint8_t* home = nullptr;  // where uncached accesses go
    size_t reserved_bytes = 0;
  };
  struct Translation {
    uint64_t page = ~0ull;
    Shadow* shadow = nullptr;
  };
  struct LineRange;
  Shadow* shadow_of(uint64_t address);
  Shadow* make_shadow(std::shared_ptr<const Mapping> mapping);
  void release(Shadow& shadow);
  Shadow* reachable(uint64_t address, uint32_t bytes, bool write, bool execute);
  void fetch(Shadow& s, uint32_t line);
  void observe(Shadow& s, const LineRange& range, bool whole);
  void touch(Shadow& s, const LineRange& range, const Accessor& who, const Request& request,
             Conflict& conflict);
  void tag_reads(Shadow& s, const LineRange& range, const Accessor& who, Path path,
                 Conflict& conflict);
  void tag_writes(Shadow& s, const LineRange& range, const Accessor& who, Conflict& conflict);
  static void tag_read(Tag& tag, uint32_t bytes, const Accessor& who, const Order& visible,
                       Conflict& conflict);
  static void tag_write(Tag& tag, uint32_t bytes, const Accessor& who, Conflict& conflict);
  static bool may_write(const Shadow& s, const LineRange& range, const Accessor& who);
  uint8_t* access(Shadow& s, const Accessor& who, const Request& request, Conflict& conflict);
  void write_back(Shadow& s, uint32_t line);

  uint32_t gpu_;
  AddressSpace& space_;
  uint64_t generation_ = ~0ull;
  uint32_t now_ = 0, epoch_ = 1, hdp_epoch_ = 0;
  std::map<uint64_t, std::unique_ptr<Shadow>> shadows_;  // by the mapping's serial
  std::array<Translation, 256> translations_;
  std::vector<std::pair<Shadow*, uint32_t>> dirty_;
  std::vector<uint8_t> poison_;
  MemoryFault fault_;
};

}  // namespace tuff::emu
