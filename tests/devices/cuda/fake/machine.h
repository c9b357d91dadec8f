// The library that stands in for NVIDIA's driver in tests: what libcuda.so.1 exports of
// devices/cuda/functions.def, over emulated GPUs that execute PTX. It is strict where a driver may
// be lenient: memory that a kernel or copy has no right to, handles that are gone, calls without a
// context are errors, and a fault ends a context for good. Streams run on a thread of their own, in
// an order drawn from a seed. Options: FAKE_CUDA, name:value pairs, comma-separated (Options).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "devices/cuda/types.h"
#include "emu/api.h"

namespace tuff::devices::cuda {

struct Machine;

// Streams hold operations; what one did.
enum class Progress : uint8_t { Done, More, Blocked };
using Operation = std::function<Progress()>;

struct CUctx_st {
  int device = 0;
  uint32_t retained = 0;
  CUresult error = CUDA_SUCCESS;  // once there is one, every call returns it
  std::set<const CUctx_st*> reaches;  // contexts whose memory it was let into
};
struct CUstream_st {
  CUctx_st* context = nullptr;
  std::deque<Operation> queued;
};
struct CUevent_st {
  CUctx_st* context = nullptr;
  bool recorded = false;
  uint32_t pending = 0;  // records that have not been reached
  uint64_t records = 0, reached = 0;  // in their order
  bool destroyed = false;
  uint64_t ns = 0;       // of the last one
};
struct CUfunc_st {
  CUmod_st* module = nullptr;
  emu_api::PtxKernelInfo info;
};
struct CUmod_st {
  CUctx_st* context = nullptr;
  std::unique_ptr<emu_api::PtxModule> code;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

struct Launch {
  CUfunc_st* function = nullptr;
  std::array<uint32_t, 3> grid{}, block{};
  std::vector<uint8_t> parameters;
};
struct Copy {
  uint64_t dst = 0, src = 0;
  size_t size_bytes = 0;
};
struct CUgraphNode_st {
  CUgraph_st* graph = nullptr;
  size_t index = 0;
};
struct Node {
  std::optional<Launch> launch;  // else a copy
  Copy copy;
  std::vector<size_t> after;
  bool enabled = true;
};
struct CUgraph_st {
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<CUgraphNode_st>> handles;
};
struct CUgraphExec_st {
  CUctx_st* context = nullptr;
  const CUgraph_st* graph = nullptr;
  std::vector<Node> nodes;  // as instantiated, and as updated since
};

// Memory as kernels and copies see it. GPUs' addresses are nowhere in the process, and are not used
// again; a host's address is the same for all.
struct Allocation {
  uint64_t address = 0;
  size_t size_bytes = 0;
  uint8_t* bytes = nullptr;
  std::unique_ptr<uint8_t[]> own;
  const CUctx_st* owner = nullptr;  // of a GPU's memory; null: of the host's
  bool registered = false;
};

struct Options {
  int gpus = 1;
  uint64_t vram_mib = 1024;
  int capability = 86;
  uint64_t seed = 1;
  bool peers = true, integrated = false, memory_operations = true;
  uint64_t fail = 0;  // which call fails, counted from 1; 0: none
  CUresult code = CUDA_ERROR_UNKNOWN;
};

struct Machine {
  Machine();
  std::mutex mutex;  // of all that follows
  std::condition_variable changed;
  Options options;
  bool initialized = false;
  std::vector<CUctx_st> contexts;  // the primary one of each GPU
  std::map<uint64_t, Allocation> memory;
  std::map<uint64_t, size_t> freed;
  // The default streams of contexts: 1 of all of its threads, 2 of one, which here is the only one.
  std::map<std::pair<const CUctx_st*, int>, std::unique_ptr<CUstream_st>> defaults;
  uint64_t next_address = uint64_t{1} << 44, used_bytes = 0;
  std::set<const void*> handles;  // that are there
  std::vector<CUstream_st*> streams;
  std::vector<CUstream_st*> destroyed;  // that still run
  std::mt19937_64 random;
  uint64_t calls = 0;  // since the options were set
  std::map<std::string, uint64_t> counts;  // of each function

  bool is(const void* handle) const { return handles.contains(handle); }
  void push(CUstream_st* stream, Operation operation);
  bool empty() const;  // nothing is queued
  bool idle(const CUctx_st* context) const;
  // Blocks until nothing of the context's streams is left, or it has an error.
  void drain(std::unique_lock<std::mutex>& lock, const CUctx_st* context);
  // The bytes of a range that the context may touch; null after fault().
  uint8_t* bytes_of(CUctx_st* context, uint64_t address, size_t size_bytes, const char* what);
  void fault(CUctx_st* context, CUresult code, const std::string& why);
  void run(CUctx_st* context, const Launch& launch);
  void run(CUctx_st* context, const Copy& copy);
  Operation graph_run(CUctx_st* context, std::vector<Node> nodes);

 private:
  void serve();
  bool step(std::unique_lock<std::mutex>& lock);
};

Options parse_options(const std::string& text);
Machine& machine();
const emu_api::Api& emulator_api();
uint64_t now_ns();

}  // namespace tuff::devices::cuda
