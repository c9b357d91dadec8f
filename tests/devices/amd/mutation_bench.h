// Runs what the encoders emit on emulated GPUs, whole or with one packet, or one bit that orders
// memory, taken away. For mutation_test.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "devices/amd/scene.h"
#include "emu/gpu_scene.h"

namespace tuff::devices::amd {

// What is taken from one encoded list.
struct Mutation {
  size_t list = ~size_t(0);  // in the order of encoding
  bool ring = false;         // of AQL: a packet of the ring, not of its indirect buffer
  uint32_t unit = 0;
  uint32_t dword = 0, clear = 0;  // bits of a dword of the unit; none: the whole unit
  // Which rule of an encoder has emitted it, and what is taken: the same for all lists.
  std::string kind;
};

class Bench {
 public:
  Bench(uint32_t gpus, uint64_t seed, const Mutation& mutation);

  struct Memory {
    emu::amd::GpuScene::Block block;
    hcq::MemoryBlock handle;
    hcq::Span span(size_t at = 0, size_t bytes = 128) const { return {&handle, at, bytes}; }
    uint32_t word(size_t i) const { return block.word(i); }
    void set(size_t i, uint32_t value) const { block.set(i, value); }
  };
  Memory& system(size_t bytes = 4096) { return keep(scene.system(bytes)); }
  Memory& vram(uint32_t gpu = 0, size_t bytes = 4096) { return keep(scene.vram(gpu, bytes)); }

  struct Queue {
    QueueKind kind;
    emu::amd::GpuScene::Ring* ring;
    TestSignal* timeline;
    uint64_t value = 0;
    uint32_t event;
    Memory *mailbox, *timestamps;
  };
  Queue& queue(QueueKind kind, uint32_t gpu = 0);
  TestSignal& signal();
  void raise(TestSignal& signal, uint32_t value);  // by the host
  TestProgram& program(Memory& code, const std::string& name);
  Memory& code(uint32_t gpu = 0) { return vram(gpu, 16384); }

  struct List {
    hcq::CommandList commands;
    void run(TestProgram& p, const hcq::Span& args, uint32_t groups = 1) {
      add(hcq::DispatchCmd{&p, args, {groups, 1, 1}, {}});
    }
    void barrier() { add(hcq::BarrierCmd{}); }
    void copy(const hcq::Span& dst, const hcq::Span& src) { add(hcq::CopyCmd{dst, src}); }
    void add(hcq::CommandBody body) { commands.commands.push_back({std::move(body), {}, {}}); }
    void wait(TestSignal& s, uint32_t slot) { add(hcq::WaitCmd{&s, slot}); }
    void raise(TestSignal& s, uint32_t slot) { add(hcq::SignalCmd{&s, slot}); }
  };
  struct Prepared {
    Queue* queue;
    Encoded encoded;
  };
  Prepared encode(Queue& queue, const List& list);
  // Returns the timeline's value at its end.
  uint64_t submit(const Prepared& prepared, const std::vector<uint64_t>& slots = {});
  bool finished(Queue& queue, uint64_t value);  // steps until then, false if nothing goes on
  void arguments(const Memory& args, size_t at, const Memory& dst, const Memory& src, uint32_t k);

  emu::amd::GpuScene scene;
  std::vector<Mutation> possible;  // what could be taken from the lists so far

 private:
  Memory& keep(emu::amd::GpuScene::Block block);
  void list_mutations(const Encoded& encoded, QueueKind kind);
  void add_mutations(const PacketStream& stream, bool ring, QueueKind kind);
  void mutate(Encoded& encoded, QueueKind kind) const;

  const Generation& generation_;
  TestBinding binding_;
  Mutation mutation_;
  size_t lists_ = 0;
  std::deque<Memory> memory_;
  std::deque<TestSignal> signals_;
  std::deque<TestProgram> programs_;
  std::deque<Queue> queues_;
};

}  // namespace tuff::devices::amd
