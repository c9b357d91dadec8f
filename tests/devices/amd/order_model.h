// Which packets a scene needs, worked out from its data flow and apart from the emulator: which
// accesses of kernels, copies, engines and the host touch the same lines, which of them come one
// after the other, and which caches lie between them. It holds for all interleavings, where a run
// shows one.
//
// What has to hold of two accesses to a line, at least one a write, `a` before `b`:
//  order        b begins when a has ended and b's queue, or the host, knows it: by a wait for idle,
//               by the value of a signal, by a doorbell after those.
//  write-back   what a GPU wrote to VRAM is seen outside of it once its L2 was written back, after
//               a and before b; likewise where b writes, which would be overwritten later.
//  HDP          what the host wrote through the bar is seen by the GPU that it belongs to after a
//               flush of the HDP.
//  L2           a line of VRAM that the L2 may have from before an outside write is invalidated
//               between that fetch and b.
//  front        what the same GPU wrote is read through a cache before the L2 (scalar, vector,
//               instructions) once that and the L1 were invalidated after a, by b's queue; what
//               came from outside, where the cache may have it from before.
//  lost lines   the L2 is not invalidated, without a write-back, while it may have what memory has
//               not.
//
// A deletion that leaves all of this as it was is not needed in this scene; any other is. Used by
// mutation_test, told by mutation_bench what a scene does. Knows no encoder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/amd/scene.h"

namespace tuff::devices::amd {

// What is taken from one encoded list.
struct Mutation {
  size_t list = ~size_t(0);  // in the order of encoding
  bool ring = false;         // of AQL: a packet of the ring, not of its indirect buffer
  uint32_t unit = 0;
  uint32_t dword = 0, clear = 0;  // bits of a dword of the unit; none: the whole unit
  // Which rule of an encoder has emitted it, and what is taken: the same for all lists.
  std::string kind;
  bool orders = true;  // neither work nor a register
};

// One packet of gfx1100.
Packet decode(QueueKind kind, bool ring, std::span<const uint32_t> dwords);

// Operations by number.
class OpSet {
 public:
  bool has(uint32_t op) const { return op / 64 < bits_.size() && bits_[op / 64] >> op % 64 & 1; }
  void add(uint32_t op);
  void join(const OpSet& other);

 private:
  std::vector<uint64_t> bits_;
};

class OrderModel {
 public:
  enum class Path : uint8_t { L2, Vector, Scalar, Code };
  static constexpr int kSystem = -1;  // memory's home; else the GPU whose VRAM it is

  // A packet of one submission, its values filled in.
  struct Unit {
    size_t list = 0;
    bool ring = false;
    uint32_t unit = 0;
    std::optional<uint32_t> jump;  // the packet of the ring that runs it
    std::vector<uint32_t> dwords;
  };

  OrderModel();
  ~OrderModel();

  // ---- what a scene does, told in its order

  void add_memory(uint64_t address, size_t bytes, int home);
  void add_queue(QueueKind kind, uint32_t gpu);
  // It reads its code, arguments {dst, src} and, by `source`, what src points to; it writes dst.
  void add_kernel(const KernelCode& code, std::optional<Path> source);
  void set_arguments(uint64_t at, uint64_t dst, uint64_t src);
  void host_access(uint64_t address, size_t bytes, bool write);
  void host_raises(uint64_t address, uint32_t value);
  void host_waits(uint64_t address, uint32_t value);
  void host_sees_all_stand_still();
  void submit(uint32_t queue, std::vector<Unit> units);
  void finish();  // nothing more is told

  // ---- what it needs

  // Accesses that nothing orders, or that do not see one another, with all packets in place.
  std::string wrong() const;
  // A scene without these bits or this packet.
  struct Verdict {
    std::string broken;              // what goes wrong; empty: they are not needed
    std::vector<const char*> rules;  // else why not, a sentence each
  };
  Verdict without(const Mutation& mutation) const;

 private:
  struct Access {
    uint32_t op;
    Path path;
    bool write;
    bool whole;  // the line, all of it
    auto operator<=>(const Access&) const = default;
  };
  struct Kernel {
    KernelCode code;
    std::optional<Path> source;
  };
  struct Submission {
    uint32_t queue;
    std::vector<Unit> units;
    size_t next = 0;
  };
  struct Queue {
    QueueKind kind;
    uint32_t gpu;
    std::vector<uint32_t> submissions;
    size_t next = 0;
  };
  struct Step {
    enum class Kind : uint8_t { Ring, Begin, Packet, HostAccess, Raise, Wait, StandStill } kind;
    uint32_t submission = 0;
    size_t unit = 0;
    uint64_t address = 0;
    uint32_t value = 0;
    uint32_t first_op = 0;
  };
  struct Op {
    int gpu = -1;  // -1: the host
    uint32_t queue = 0;
  };
  struct Lines {  // with the same accesses
    int home;
    std::vector<Access> accesses;
    auto operator<=>(const Lines&) const = default;
  };
  class Run;
  class Judge;

  bool take(Step step);  // false: it waits
  bool take_all(Run& run) const;
  bool advance(uint32_t queue);
  void advance_all();
  void touch(uint32_t op, Path path, bool write, uint64_t address, uint64_t bytes);

  std::map<uint64_t, std::pair<uint64_t, int>> memory_;  // by address: end, home
  std::vector<Queue> queues_;
  std::vector<Kernel> kernels_;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> arguments_;
  std::vector<Submission> submissions_;
  std::vector<Step> steps_;  // in an order that all waits allow
  std::vector<Op> ops_;
  std::map<uint64_t, std::vector<Access>> by_line_;
  std::vector<Lines> lines_;
  std::unique_ptr<Run> whole_;         // with all packets in place
  std::optional<bool> host_accesses_;  // whether the host's latest operation, still open, writes
};

}  // namespace tuff::devices::amd
