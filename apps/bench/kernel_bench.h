// What `tuff bench matmul|gemv|...` measures: one function of tensors at a time, captured and
// replayed, its result checked against double precision on the host. A row of the table says what
// is computed and what it needs; measure() runs any of them. Called by bench_command. Must never
// parse options or print.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tuff/jit.h>

#include "bench/bench_peer.h"
#include "bench/machine_limits.h"

namespace tuff::bench {

using Extents = std::vector<int64_t>;
std::string to_string(const Extents& e);      // "509x1021x767"
Extents extents_from(std::string_view text);  // the reverse; empty where it is none

struct KernelOptions {
  std::string device;
  DType dtype = DType::F32;
  std::string transposed;  // of matmul's operands: "", "a", "b" or "ab"
  std::string weights;     // the GGUF type that the weights are packed as; "": they are of dtype
  double seconds = 0.5;    // about how long a case is timed
};

// What one element of the result has to be, and how far from it rounding may lead.
struct Expected {
  double value = 0, tolerance = 0;
};

// One case, ready to run.
struct KernelCase {
  std::vector<Tensor> inputs;
  Jit::Function function;
  double flops = 0, bytes = 0;
  // By element of its results, one result after the other, in row-major order.
  std::function<Expected(int64_t)> expected;
};

enum class Unit : uint8_t { Gflops, Gbps };  // decimal, per second

struct KernelRow {
  const char* name;
  const char* summary;
  const char* axes;  // of --sizes: "MxNxK, BxMxNxK or N for a cube"
  Unit unit;
  std::vector<Extents> sizes;  // where none are given
  // The row's own extents from what was given ("N" is NxNxN); empty where they do not fit.
  Extents (*complete)(const Extents& given);
  KernelCase (*make)(const Extents& extents, const KernelOptions& options);
  bool transposes = false;   // knows KernelOptions::transposed
  bool has_weights = false;  // knows KernelOptions::weights
};
std::span<const KernelRow> kernel_rows();

struct KernelFigures {
  std::string device, driver;
  uint32_t kernels = 0;
  double ms_median = 0, ms_min = 0, ms_max = 0;
  double device_us_median = 0;  // by the device's own clock, without the launch; 0: unknown
  double rate = 0;            // in the row's unit, of the median
  double limit = 0;           // the same of the machine, measured at the same time; 0: not asked for
  std::string wrong;          // the first element that is not what it has to be; empty if all are
  double peer_ms_median = 0;  // where there is one
  std::string peer_wrong;     // as `wrong`, where its result can be seen
  double fraction_of_limit() const { return rate / limit; }
};

// The first of some elements that is not what it has to be; empty if all are.
std::string first_wrong(const std::function<Expected(int64_t)>& expected,
                        const std::vector<float>& got);

// A peer for the case, or none.
using MakePeer = std::function<std::unique_ptr<BenchPeer>(const KernelCase&)>;
// With a peer the two are timed in turns.
KernelFigures measure(const KernelRow& row, const Extents& extents, const KernelOptions& options,
                      MachineLimits& limits, const MakePeer& make_peer = {});

}  // namespace tuff::bench
