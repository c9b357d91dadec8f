// Emulated GPUs without a kernel driver: memory, queues and kernels placed by hand, what the GPUs
// tell, and steps in a seeded order. For tests of packets and caches.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "emu/amd/gpu.h"
#include "emu/rdna/code_object.h"

namespace tuff::emu::amd {

// Kernels in assembly, each with arguments {dst, src, k}, groups of 32.
// add: dst[i] = src[i] + k. scalar: dst[i] = src[0] + k, by the scalar cache. set: dst[i] = k.
// set2: the same with k + 1, in as many bytes. twice: dst[i] = 2 * src[i] + k.
std::string scene_kernels();

class GpuScene : public GpuEvents {
 public:
  struct Block {
    uint64_t address = 0;
    size_t bytes = 0;
    std::shared_ptr<Buffer> buffer;
    std::byte* host = nullptr;  // as the host maps it
    uint32_t word(size_t i) const;
    void set(size_t i, uint32_t value) const;
    void set64(size_t at, uint64_t value) const;
  };
  class Ring {
   public:
    QueueSetup setup;
    uint32_t gpu = 0;
    Block ring, pointers, eop;
    uint64_t doorbell = ~0ull, written = 0;          // in the queue's unit
    void push(const std::vector<uint32_t>& dwords);  // SDMA, PM4: dwords; AQL: whole packets
    void announce();
    uint64_t read_pointer() const;
  };

  explicit GpuScene(uint32_t gpus, uint64_t seed, const emu_api::ProfileOptions& profile = {});
  ~GpuScene() override;
  // Mapped on all GPUs: system memory uncached, VRAM cached.
  Block system(size_t bytes);
  Block vram(uint32_t gpu, size_t bytes, bool bar = true);
  Ring& queue(uint32_t gpu, QueueKind kind, uint32_t ring_bytes = 4096);
  Ring& attach(uint32_t gpu, Ring ring);
  // What the host sees of a kernel of `file`, whose image lies in `block`.
  rdna::Kernel place(const Block& block, const std::vector<uint8_t>& file, const std::string& name);

  bool step();
  void run();  // until nothing can
  std::string findings_text() const;
  size_t count(FindingKind kind) const;

  AddressSpace& space(uint32_t gpu) { return *spaces_[gpu]; }
  Gpu& gpu(uint32_t i) { return *gpus_[i]; }
  std::vector<Finding> findings;
  std::vector<uint32_t> interrupts;
  std::vector<MemoryFault> faults;
  std::vector<std::string> errors;
  std::map<uint64_t, std::string> names;  // of kernels, by entry
  uint64_t packets_left = ~0ull;          // that engines may take

 private:
  void interrupt(uint32_t, uint32_t event) override { interrupts.push_back(event); }
  void memory_fault(uint32_t, const MemoryFault& f) override { faults.push_back(f); }
  void queue_error(uint32_t, uint32_t, const std::string& why) override { errors.push_back(why); }
  bool may_take_packet(uint32_t, uint32_t) override;
  void report(Finding finding) override { findings.push_back(std::move(finding)); }
  std::string kernel_at(uint64_t entry) override;
  Block make(size_t bytes, Buffer::Home home, uint32_t gpu, bool bar);

  SplitMix64 random_;
  size_t fast_ = 0;      // the GPU that is mostly stepped; else all alike
  bool evicts_ = false;  // L2s drop lines now and then
  uint64_t next_address_ = 0x7f0000000000;
  uint32_t next_queue_ = 1;
  std::deque<std::vector<std::byte>> memory_;
  std::deque<std::unique_ptr<AddressSpace>> spaces_;
  std::deque<std::unique_ptr<Gpu>> gpus_;
  std::deque<Ring> rings_;
};

}  // namespace tuff::emu::amd
