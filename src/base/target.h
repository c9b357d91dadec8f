// Target: what a device can do, as plain data. Filled by a device, read by sched, kernel and
// render; written to and read from a file so that kernels compile for devices that are absent. Must
// never hold a handle, a pointer or anything of one process.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tuff/dtype.h>

namespace tuff {

// What a device does natively; what is absent is decomposed by `kernel` or refused by name.
struct TargetFeatures {
  bool i8 = false, i16 = false, i64 = false;    // arithmetic
  bool f16 = false, bf16 = false, f64 = false;  // arithmetic
  bool f8 = false;                              // arithmetic of both floats of 8 bits
  bool f16_casts = false;                       // f16 to and from f32, to nearest even
  // A float that becomes f16 and float again keeps its digits, unless the f16 is hidden from the
  // device's compiler in between.
  bool folds_f16_casts = false;
  // A 64-bit quotient is lost where something is added to it, unless it is hidden likewise.
  bool loses_wide_quotients = false;
  bool u32_to_f32 = false;                      // rounds once, to nearest even
  bool storage8 = false, storage16 = false;     // loads and stores of that width
  bool device_address = false;                  // buffers by 64-bit address
  bool subgroup_arithmetic = false, subgroup_shuffle = false;
  bool full_subgroups = false;  // of a workgroup along one axis, where a kernel counts on them
  bool streaming_stores = false;     // past the caches, of whole lines
  bool atomics = false;              // on 32-bit words of buffers: add, max, compare-exchange
  bool atomic_f32_add = false;       // without a loop of compare-exchange
  bool signed_zero_inf_nan = false;  // f32 arithmetic keeps NaN, Inf and -0
  bool denormals = false;            // f32 arithmetic keeps denormals where a kernel asks for it
  // A product with a factor that the device's compiler knows to be 0 is NaN where the other is NaN
  // or infinite. Without it renderers hide their zeros from that compiler.
  bool known_zero_products = false;
  // Accurate enough to be used as they are.
  bool exp2 = false, log2 = false, sin = false, sqrt = false;
  bool operator==(const TargetFeatures&) const = default;
};

// A product of small matrices that the lanes of a subgroup compute together (a cooperative matrix):
// m x k of dtype `a` times k x n of dtype `b`, summed into m x n of dtype `sum`.
struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  DType a = DType::Void, b = DType::Void, sum = DType::Void;
  bool operator==(const MatrixShape&) const = default;
};
std::string to_string(const MatrixShape& s);  // "16x16x16 float16 float16 float32"
MatrixShape matrix_shape_from(const std::string& text);  // the other way; InvalidArgument

struct Target {
  std::string device;    // kind: "CPU", "VULKAN", "NULL"
  std::string renderer;  // row of the renderer registry: "c", "spirv", "amdgpu", "nvptx", "aco" ...
  std::string arch;      // "x86-64:znver4", "spirv1.5", "gfx1100", "sm_86"
  std::string identity;  // driver, version, UUID, CPU features: part of disk-cache keys

  uint32_t cores = 1;              // CPU threads, or compute units where known
  uint32_t vector_bytes = 16;      // widest useful vector register (CPU) or load (GPU)
  uint32_t vector_registers = 16;  // how many of them; of a GPU, 32-bit ones of an invocation
  uint32_t most_registers = 0;     // of a GPU: that an invocation can have at all; 0: unknown
  bool has_local = false;          // workgroups of several invocations, shared memory and barriers
  uint32_t subgroup_size = 1;
  std::array<uint32_t, 3> max_groups{65535, 65535, 65535};
  std::array<uint32_t, 3> max_local{1, 1, 1};
  uint32_t max_invocations = 1;  // product of the local size
  // Workgroup memory; where a group is one thread, the scratch memory it packs operands into.
  uint32_t shared_bytes = 0;
  // Data caches that one core reaches, 0: unknown. L3 is shared by the cores.
  uint64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  // How far ahead of a walk through memory its lines are worth asking for, where it is longer than
  // the L2 cache; 0: the device needs no asking.
  uint32_t prefetch_bytes = 0;
  // False where no cache is known.
  bool exceeds_caches(int64_t bytes) const {
    const uint64_t last = l3_bytes ? l3_bytes : l2_bytes;
    return last && uint64_t(bytes) > last;
  }
  // Neighbouring elements that one access of a GPU's buffer takes: up to a vector of 32-bit words.
  // One where the buffer is bound, and where arithmetic of that width is lacking: elements may be
  // loaded, stored and converted then, but not taken from words.
  int64_t elements_together(size_t bytes) const {
    const TargetFeatures& f = features;
    const bool native = bytes == 1   ? f.storage8 && f.i8
                        : bytes == 2 ? f.storage16 && f.i16
                                     : bytes == 4;
    if (!f.device_address || !native) return 1;
    return std::max<int64_t>(std::min<int64_t>(vector_bytes, 16) / int64_t(bytes), 1);
  }
  uint32_t max_buffers = 64;  // buffers of one kernel
  uint64_t max_buffer_bytes = UINT64_MAX;
  uint64_t max_binding_bytes = UINT64_MAX;  // of one buffer as a kernel's argument
  uint64_t max_loop_trips = 0;              // loop iterations of one invocation in all; 0: no limit
  // How long a submission may take: drivers end what runs too long. 0: for ever.
  uint64_t max_submission_ns = 0;
  uint64_t launch_cost_ns = 1000;  // measured or typical cost of one dispatch
  // Workgroup memory is faster than the caches: copies there gain something.
  bool has_fast_shared = false;
  // An element's bytes in a register, and so in workgroup memory: narrow ones that the device does
  // not compute with are words.
  int64_t held_bytes(DType t) const {
    const size_t bytes = size_bytes(t);
    const bool native = bytes >= 4 || (bytes == 1         ? features.i8
                                       : t == DType::F16 ? features.f16
                                                         : features.i16);
    return native ? int64_t(bytes) : 4;
  }
  int64_t held_per_word(DType t) const { return held_bytes(t) < 4 ? 4 / held_bytes(t) : 1; }
  // What subgroups of subgroup_size lanes multiply; empty: nothing. Never saturating.
  std::vector<MatrixShape> matrix_shapes;
  TargetFeatures features;

  bool operator==(const Target&) const = default;
  std::string describe() const { return device + " (" + identity + ")"; }  // for errors
};

// JSON both ways; from_json throws InvalidArgument naming the field that is wrong.
std::string to_json(const Target& t);
Target target_from_json(const std::string& text);
// A Target to compile for without hardware: "spirv-generic", "spirv-lavapipe", "c-x86-64",
// "opencl-generic", and
// "amdgpu-" or "aco-" with a processor's name for AMD's GPUs by direct submission, compiled by clang
// or by Mesa, "nvptx-" with one ("sm_86") for NVIDIA's; throws InvalidArgument.
Target builtin_target(const std::string& name);
std::vector<std::string> builtin_target_names();

}  // namespace tuff
