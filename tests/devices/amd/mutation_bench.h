// Runs what the encoders emit on emulated GPUs, whole or with one packet, or one bit that orders
// memory, taken away. For mutation_test.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "devices/amd/order_model.h"
#include "emu/gpu_scene.h"

namespace tuff::devices::amd {

class Bench {
 public:
  Bench(uint32_t gpus, uint64_t seed, const Mutation& mutation);

  struct Memory {
    emu::amd::GpuScene::Block block;
    hcq::MemoryBlock handle;
    hcq::Span span(size_t at = 0, size_t bytes = 128) const { return {&handle, at, bytes}; }
    OrderModel* model = nullptr;
    uint32_t word(size_t i) const;
    void set(size_t i, uint32_t value) const;
    void touched_by_host(size_t at, size_t bytes, bool write) const;
  };
  Memory& system(size_t bytes = 4096) { return keep(scene.system(bytes), OrderModel::kSystem); }
  Memory& vram(uint32_t gpu = 0, size_t bytes = 4096) {
    return keep(scene.vram(gpu, bytes), int(gpu));
  }

  struct Queue {
    uint32_t index;
    QueueKind kind;
    emu::amd::GpuScene::Ring* ring;
    TestSignal* timeline;
    uint64_t value = 0;
    uint32_t event;
    Memory *mailbox, *timestamps;
    uint32_t submissions = 0;
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
    size_t list;
    Encoded encoded;
  };
  Prepared encode(Queue& queue, const List& list);
  // Returns the timeline's value at its end.
  uint64_t submit(const Prepared& prepared, const std::vector<uint64_t>& slots = {});
  bool reached(TestSignal& signal, uint64_t value);  // steps until then, false if nothing goes on
  bool finished(Queue& queue, uint64_t value) { return reached(*queue.timeline, value); }
  uint64_t timestamp(const Queue& queue, uint32_t index);
  void stand_still();  // steps as far as all queues get
  // Steps until all is done. Whether each submission has told the host.
  bool told_the_host();
  void arguments(const Memory& args, size_t at, const Memory& dst, const Memory& src, uint32_t k);

  emu::amd::GpuScene scene;
  OrderModel model;                // of what is run, if nothing is taken away
  std::vector<Mutation> possible;  // what could be taken from the lists so far

 private:
  bool whole() const { return mutation_.list == ~size_t(0); }
  Memory& keep(emu::amd::GpuScene::Block block, int home);
  void list_mutations(const Encoded& encoded, QueueKind kind);
  void add_mutations(const PacketStream& stream, bool ring, QueueKind kind);
  void mutate(Encoded& encoded, QueueKind kind) const;
  void tell(const Prepared& prepared, std::span<const uint32_t> packets,
            std::span<const uint32_t> ib, uint64_t ib_address);

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
