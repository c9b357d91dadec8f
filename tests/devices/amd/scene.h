// A list of commands over memory, signals and kernels that exist as addresses alone, what was
// asked for in it as lines of text, and the same lines read back from packets.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "devices/amd/disassembler.h"
#include "devices/amd/encode/values.h"
#include "hcq/device.h"

namespace tuff::devices::amd {

enum class QueueKind { Pm4, Aql, Sdma };

class TestSignal : public hcq::Signal {
 public:
  explicit TestSignal(uint64_t at) : address(at), epoch(&slot) {}
  uint64_t value() const override { return epoch.value(); }
  bool wait(uint64_t, uint64_t) override { return false; }
  void set(uint64_t value) override { epoch.set(value); }
  uint64_t slot = 0;
  uint64_t address;
  SignalEpoch epoch;
};

class TestProgram : public hcq::Program {
 public:
  TestProgram(const std::string& name, const KernelCode& k) : Program(binary(name)), kernel(k) {}
  KernelCode kernel;

 private:
  static render::Binary binary(const std::string& name) {
    render::Binary b;
    b.name = name;
    return b;
  }
};

class TestBinding : public Binding {
 public:
  KernelCode kernel(const hcq::Program& p) const override {
    return dynamic_cast<const TestProgram&>(p).kernel;
  }
  uint64_t signal_address(const hcq::Signal& s) const override {
    return dynamic_cast<const TestSignal&>(s).address;
  }
};

class Scene {
 public:
  Scene(const Generation& generation, QueueKind kind, uint32_t xccs = 1);
  EncodeInput input() const;
  Encoded encode() const;
  // The dwords of one submission with `slots` (packets of AQL, ib).
  std::vector<uint64_t> values(const Encoded& encoded) const;
  std::vector<uint32_t> packets(const Encoded& encoded) const;
  std::vector<uint32_t> ib(const Encoded& encoded) const;

  hcq::Span span(uint64_t offset, uint64_t size) const { return {&block, offset, size}; }
  void add(hcq::CommandBody body) { list.commands.push_back({std::move(body), {}, {}}); }
  // A fixed list with every command that the queue takes, for goldens.
  void sample();
  void random(SplitMix64& random, int commands);

  // The list of another scene like this one, its slots' values in the commands themselves.
  void take_with_values(const Scene& other);

  // What was asked for, and what the packets do, one line each.
  std::vector<std::string> asked() const;
  std::vector<std::string> done(const Encoded& encoded) const;

  const Generation& generation;
  QueueKind kind;
  uint32_t xccs;
  Dialect dialect;
  TestBinding binding;
  hcq::MemoryBlock block;
  std::deque<TestSignal> signals;       // the first is the timeline
  std::deque<TestProgram> programs;
  hcq::CommandList list;
  std::vector<uint64_t> slots;
  uint64_t timeline_value = 7;
  uint64_t ib_address = 0x7f3000000000;
  ScratchArea scratch;

 private:
  void take_handles(hcq::CommandBody& body, const Scene& other);
  std::string word(const hcq::Signal* signal, uint64_t value) const;
  std::string asked_dispatch(const hcq::DispatchCmd& d) const;
  std::string asked_pm4_dispatch(const TestProgram& p, uint64_t args) const;
};

}  // namespace tuff::devices::amd
