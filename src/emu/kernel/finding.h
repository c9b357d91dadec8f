// What the emulated machine reports of the programs and command streams that it runs: one record
// per kind and place. Kernels' own findings (rdna/finding.h) become these too. Handed to the
// opener of the machine, which prints them beside the hazard checker's.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace tuff::emu {

enum class FindingKind : uint8_t {
  Kernel,         // of a running kernel: `what` is rdna's text
  StaleData,      // read from a cache, or from memory, while the newest value is elsewhere
  StaleCode,      // executed from the instruction cache, while memory has other instructions
  ConcurrentUse,  // two engines or dispatches touch the same bytes, one writing, nothing between
  PageFault,      // an engine's access to what is not mapped for its GPU
  BadPacket,      // a packet, register or field that this GPU has not, or no driver uses so
  BadCall,        // a call that the kernel refuses
  Hang,           // a queue waits and nothing is left to signal
};

struct Finding {
  FindingKind kind;
  uint32_t gpu = 0, queue = 0;  // index of the GPU, id of the queue
  uint64_t address = 0;         // of the data, where there is one
  std::string what;             // a sentence with kernel, instruction and place as far as known
};

const char* name(FindingKind kind);
std::string to_text(const Finding& finding);

// Counts what the machine finds and hands it on; what repeats itself is told once, but for refused
// calls, of which each is one.
class Reports {
 public:
  explicit Reports(std::function<void(const Finding&)> sink) : sink_(std::move(sink)) {}
  void add(const Finding& finding);
  uint64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::function<void(const Finding&)> sink_;
  std::set<std::string> told_;
  uint64_t count_ = 0;
};

}  // namespace tuff::emu
