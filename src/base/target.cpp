#include "base/target.h"

#include <cstdio>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"

namespace tuff {
namespace {

using nlohmann::json;

// The one list of fields, walked by writer and reader alike.
template <class T, class F>
void each_field(T& t, F f) {
  f("device", t.device);
  f("renderer", t.renderer);
  f("arch", t.arch);
  f("identity", t.identity);
  f("cores", t.cores);
  f("vector_bytes", t.vector_bytes);
  f("vector_registers", t.vector_registers);
  f("most_registers", t.most_registers);
  f("has_local", t.has_local);
  f("subgroup_size", t.subgroup_size);
  f("max_groups", t.max_groups);
  f("max_local", t.max_local);
  f("max_invocations", t.max_invocations);
  f("shared_bytes", t.shared_bytes);
  f("l1_bytes", t.l1_bytes);
  f("l2_bytes", t.l2_bytes);
  f("l3_bytes", t.l3_bytes);
  f("prefetch_bytes", t.prefetch_bytes);
  f("max_buffers", t.max_buffers);
  f("max_buffer_bytes", t.max_buffer_bytes);
  f("max_binding_bytes", t.max_binding_bytes);
  f("max_submission_ns", t.max_submission_ns);
  f("max_loop_trips", t.max_loop_trips);
  f("launch_cost_ns", t.launch_cost_ns);
  f("has_fast_shared", t.has_fast_shared);
  f("matrix_shapes", t.matrix_shapes);
}

template <class T, class F>
void each_feature(T& t, F f) {
#define TUFF_FEATURE(name) f(#name, t.name)
  TUFF_FEATURE(i8);
  TUFF_FEATURE(i16);
  TUFF_FEATURE(i64);
  TUFF_FEATURE(f16);
  TUFF_FEATURE(bf16);
  TUFF_FEATURE(f8);
  TUFF_FEATURE(f64);
  TUFF_FEATURE(f16_casts);
  TUFF_FEATURE(folds_f16_casts);
  TUFF_FEATURE(loses_wide_quotients);
  TUFF_FEATURE(u32_to_f32);
  TUFF_FEATURE(storage8);
  TUFF_FEATURE(storage16);
  TUFF_FEATURE(device_address);
  TUFF_FEATURE(subgroup_arithmetic);
  TUFF_FEATURE(subgroup_shuffle);
  TUFF_FEATURE(full_subgroups);
  TUFF_FEATURE(streaming_stores);
  TUFF_FEATURE(atomics);
  TUFF_FEATURE(atomic_f32_add);
  TUFF_FEATURE(signed_zero_inf_nan);
  TUFF_FEATURE(denormals);
  TUFF_FEATURE(known_zero_products);
  TUFF_FEATURE(exp2);
  TUFF_FEATURE(log2);
  TUFF_FEATURE(sin);
  TUFF_FEATURE(sqrt);
#undef TUFF_FEATURE
}

[[noreturn]] void bad_field(const std::string& path, const json& got, const char* wanted) {
  fail<InvalidArgument>("target: field '{}' is {}, but has to be {}", path, got.dump(), wanted);
}

void read(const std::string& path, const json& from, bool& to) {
  if (!from.is_boolean()) bad_field(path, from, "true or false");
  to = from.get<bool>();
}
void read(const std::string& path, const json& from, std::string& to) {
  if (!from.is_string()) bad_field(path, from, "a string");
  to = from.get<std::string>();
}
void read(const std::string& path, const json& from, uint64_t& to) {
  if (!from.is_number_unsigned()) bad_field(path, from, "an unsigned 64-bit integer");
  to = from.get<uint64_t>();
}
void read(const std::string& path, const json& from, uint32_t& to) {
  uint64_t wide = 0;
  if (from.is_number_unsigned()) wide = from.get<uint64_t>();
  if (!from.is_number_unsigned() || wide > UINT32_MAX)
    bad_field(path, from, "an unsigned 32-bit integer");
  to = uint32_t(wide);
}
void read(const std::string& path, const json& from, std::array<uint32_t, 3>& to) {
  if (!from.is_array() || from.size() != to.size()) bad_field(path, from, "an array of 3 integers");
  for (size_t i = 0; i < to.size(); ++i) read(fmt::format("{}[{}]", path, i), from[i], to[i]);
}

void refuse_unknown(const std::string& prefix, const json& object,
                    const std::set<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (!known.contains(key))
      fail<InvalidArgument>("target: there is no field '{}{}'", prefix, key);
}

template <class T, class F>
void each_shape_field(T& s, F f) {
  f("m", s.m);
  f("n", s.n);
  f("k", s.k);
  f("a", s.a);
  f("b", s.b);
  f("sum", s.sum);
}

void read(const std::string& path, const json& from, DType& to) {
  try {
    to = parse_dtype(from.is_string() ? from.get<std::string>() : "");
  } catch (const InvalidArgument&) {
    bad_field(path, from, "the name of a dtype");
  }
}
void read(const std::string& path, const json& from, std::vector<MatrixShape>& to) {
  if (!from.is_array()) bad_field(path, from, "an array of objects");
  to.assign(from.size(), {});
  for (size_t i = 0; i < from.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    if (!from[i].is_object()) bad_field(at, from[i], "an object");
    std::set<std::string> known;
    each_shape_field(to[i], [&](const char* name, auto& field) {
      known.insert(name);
      if (!from[i].contains(name))
        fail<InvalidArgument>("target: field '{}.{}' is missing", at, name);
      read(at + "." + name, from[i][name], field);
      if (from[i][name] == 0) bad_field(at + "." + name, from[i][name], "more than 0");
    });
    refuse_unknown(at + ".", from[i], known);
  }
}

void read_features(const json& object, TargetFeatures& features) {
  if (!object.is_object()) bad_field("features", object, "an object");
  std::set<std::string> known;
  each_feature(features, [&](const char* name, bool& field) {
    known.insert(name);
    if (object.contains(name)) read(std::string("features.") + name, object[name], field);
  });
  refuse_unknown("features.", object, known);
}

// What the GPUs below have in common.
Target gpu(const char* device, const char* renderer, const char* arch, const std::string& name) {
  Target t;
  t.device = device;
  t.renderer = renderer;
  t.arch = arch;
  t.identity = "builtin:" + name;
  t.vector_registers = 128;
  t.has_local = true;
  t.max_local = {128, 128, 64};
  t.max_invocations = 128;
  t.launch_cost_ns = 5000;
  t.has_fast_shared = true;
  return t;
}

// What every Vulkan 1.1 device has, and device addresses.
Target spirv_generic() {
  Target t = gpu("VULKAN", "spirv", "spirv1.3", "spirv-generic");
  t.shared_bytes = 16384;
  t.max_buffer_bytes = uint64_t{1} << 30;  // maxMemoryAllocationSize, VK_KHR_maintenance3
  t.features.device_address = t.features.atomics = true;
  t.features.known_zero_products = true;
  t.features.sqrt = true;
  return t;
}

Target spirv_lavapipe() {
  Target t = spirv_generic();  // Mesa 22.3.6 with 256-bit vectors, as vulkaninfo reports it
  t.arch = "spirv1.5";
  t.identity = "builtin:spirv-lavapipe";
  t.cores = 2;
  t.vector_bytes = 32;
  t.subgroup_size = 8;
  t.max_local = {1024, 1024, 1024};
  t.max_invocations = 1024;
  t.shared_bytes = 32768;
  t.max_buffer_bytes = uint64_t{1} << 31;
  t.max_loop_trips = 65535;  // LP_MAX_TGSI_LOOP_ITERATIONS: loops end silently there
  t.launch_cost_ns = 40000;  // a sleeping worker's wake-up
  TargetFeatures& f = t.features;
  f.i8 = f.i16 = f.i64 = f.f16 = f.f64 = f.f16_casts = f.u32_to_f32 = true;
  f.storage8 = f.storage16 = true;
  f.atomic_f32_add = true;
  f.subgroup_arithmetic = f.subgroup_shuffle = f.full_subgroups = true;
  f.signed_zero_inf_nan = true;
  f.known_zero_products = false;  // lp_build_mul
  return t;
}

Target c_x86_64() {
  Target t;  // the baseline instruction set: SSE2
  t.device = "CPU";
  t.renderer = "c";
  t.arch = "x86-64";
  t.identity = "builtin:c-x86-64";
  t.shared_bytes = 1 << 20;
  t.l1_bytes = 32 << 10;
  t.l2_bytes = 256 << 10;
  t.l3_bytes = 4 << 20;
  t.launch_cost_ns = 500;
  TargetFeatures& f = t.features;
  f.i8 = f.i16 = f.i64 = f.f64 = f.f16_casts = f.u32_to_f32 = true;
  f.storage8 = f.storage16 = f.device_address = true;
  f.signed_zero_inf_nan = f.known_zero_products = true;
  f.sqrt = true;
  return t;
}

// What every OpenCL 1.2 device of the full profile has, and no doubles: table 4.3 of its
// specification.
Target opencl_generic() {
  Target t = gpu("CL", "opencl", "opencl-c-1.2", "opencl-generic");
  t.shared_bytes = 32768;
  t.max_buffers = 60;  // of parameters in 1,024 bytes
  t.max_buffer_bytes = t.max_binding_bytes = uint64_t{128} << 20;
  TargetFeatures& f = t.features;
  f.i8 = f.i16 = f.i64 = f.f16_casts = f.u32_to_f32 = true;
  f.storage8 = f.storage16 = f.atomics = true;
  f.signed_zero_inf_nan = f.known_zero_products = true;
  return t;
}

// AMD's GPUs by name, as LLVM's -mcpu. Compute units and caches are those of the largest product
// with the chip; a device that is there fills in its own.
struct AmdGpu {
  const char* name;
  uint32_t wave_lanes, cores, l1_kib, l2_kib;
  bool matrices;
  bool is_rdna3() const { return std::string_view(name).starts_with("gfx11"); }
  // RDNA2 has no global_atomic_add_f32.
  bool adds_f32() const { return !std::string_view(name).starts_with("gfx10"); }
};
constexpr AmdGpu kAmdGpus[] = {
    {"gfx942", 64, 304, 32, 4096, true},  {"gfx1030", 32, 80, 16, 4096, false},
    {"gfx1031", 32, 40, 16, 3072, false}, {"gfx1032", 32, 32, 16, 2048, false},
    {"gfx1033", 32, 8, 16, 1024, false},  {"gfx1034", 32, 16, 16, 1024, false},
    {"gfx1035", 32, 12, 16, 2048, false}, {"gfx1036", 32, 2, 16, 256, false},
    {"gfx1100", 32, 96, 32, 6144, true},  {"gfx1101", 32, 60, 32, 4096, true},
    {"gfx1102", 32, 32, 32, 2048, true},  {"gfx1103", 32, 12, 32, 2048, true},
    {"gfx1150", 32, 16, 32, 2048, true},  {"gfx1151", 32, 40, 32, 2048, true},
    {"gfx1200", 32, 32, 32, 4096, true},  {"gfx1201", 32, 64, 32, 8192, true},
};
constexpr const char* kAmdGpuPrefix = "amdgpu-";

// WMMA of RDNA, MFMA of CDNA, which has no unsigned bytes.
std::vector<MatrixShape> amdgpu_matrices(bool cdna) {
  std::vector<MatrixShape> shapes = {{16, 16, 16, DType::F16, DType::F16, DType::F32},
                                     {16, 16, 16, DType::BF16, DType::BF16, DType::F32}};
  shapes.push_back({16, 16, cdna ? 32u : 16u, DType::I8, DType::I8, DType::I32});
  if (!cdna) shapes.push_back({16, 16, 16, DType::U8, DType::U8, DType::I32});
  return shapes;
}

// What all of them can do, by code of LLVM's. Sines and powers are the kernel room's, which have
// the same bits everywhere.
Target amdgpu(const AmdGpu& chip) {
  // 128 registers of 256, so that a SIMD unit has waves to turn to.
  Target t = gpu("AMD", "amdgpu", chip.name, std::string(kAmdGpuPrefix) + chip.name);
  t.most_registers = 256;
  t.cores = chip.cores;
  t.subgroup_size = chip.wave_lanes;
  t.max_local = {1024, 1024, 1024};
  t.max_invocations = 1024;
  t.max_groups = {UINT32_MAX / 1024, 65535, 65535};  // AQL counts work-items, in 32 bits
  t.shared_bytes = 65536;
  t.l1_bytes = uint64_t{chip.l1_kib} << 10;
  t.l2_bytes = uint64_t{chip.l2_kib} << 10;
  t.launch_cost_ns = 3000;
  TargetFeatures& f = t.features;
  f.i8 = f.i16 = f.i64 = f.f16 = f.f64 = f.f16_casts = f.u32_to_f32 = true;
  f.storage8 = f.storage16 = f.device_address = true;
  f.atomics = true;
  f.atomic_f32_add = chip.adds_f32();
  f.subgroup_shuffle = f.full_subgroups = true;
  f.signed_zero_inf_nan = f.known_zero_products = true;
  f.sqrt = true;
  if (chip.matrices) t.matrix_shapes = amdgpu_matrices(chip.wave_lanes == 64);
  return t;
}

constexpr const char* kAcoPrefix = "aco-";

// The same of RDNA3 by SPIR-V and Mesa's compiler, ACO, with what RADV reports.
Target aco(const AmdGpu& chip) {
  Target t = amdgpu(chip);
  t.renderer = "aco";
  t.identity = std::string("builtin:") + kAcoPrefix + chip.name;
  t.features.subgroup_arithmetic = true;
  t.matrix_shapes.clear();  // a driver newer than Debian 12's has some: aco_matrix_shapes()
  return t;
}

// NVIDIA's GPUs by architecture. Multiprocessors and L2 cache are those of the largest product with
// it (its architecture's whitepaper); a device that is there fills in its own. L1: the unified data
// cache of a multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities").
struct NvidiaGpu {
  const char* name;
  uint32_t cores, l1_kib, l2_mib;
};
constexpr NvidiaGpu kNvidiaGpus[] = {
    {"sm_75", 72, 96, 6},    {"sm_80", 108, 192, 40},   {"sm_86", 84, 128, 6},
    {"sm_89", 142, 128, 96}, {"sm_90a", 132, 256, 50}, {"sm_100", 148, 256, 126},
    {"sm_120", 188, 128, 128},
};
constexpr const char* kNvidiaGpuPrefix = "nvptx-";

// mma.sync since Ampere (PTX ISA, "mma": target notes).
std::vector<MatrixShape> nvptx_matrices() {
  return {{16, 8, 16, DType::F16, DType::F16, DType::F32},
          {16, 8, 16, DType::BF16, DType::BF16, DType::F32},
          {16, 8, 32, DType::I8, DType::I8, DType::I32},
          {16, 8, 32, DType::U8, DType::U8, DType::I32}};
}

// Limits that all of them have: CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability". Workgroup memory is the 48 KiB that a kernel declares; what is beyond has to be
// asked for at launch. Of 65,536 registers and 255 for one thread 128 leave room for 512 threads.
Target nvptx(const NvidiaGpu& chip) {
  Target t = gpu("CUDA", "nvptx", chip.name, std::string(kNvidiaGpuPrefix) + chip.name);
  t.most_registers = 255;
  t.cores = chip.cores;
  t.subgroup_size = 32;
  t.max_groups = {INT32_MAX, 65535, 65535};
  t.max_local = {1024, 1024, 64};
  t.max_invocations = 1024;
  t.shared_bytes = 48 << 10;
  t.l1_bytes = uint64_t{chip.l1_kib} << 10;
  t.l2_bytes = uint64_t{chip.l2_mib} << 20;
  t.launch_cost_ns = 3000;
  TargetFeatures& f = t.features;
  f.i8 = f.i16 = f.i64 = f.f16 = f.f64 = f.f16_casts = f.u32_to_f32 = true;
  f.storage8 = f.storage16 = f.device_address = true;
  f.atomics = f.atomic_f32_add = true;
  f.subgroup_shuffle = f.full_subgroups = true;
  f.signed_zero_inf_nan = f.known_zero_products = true;
  f.sqrt = true;
  if (chip.name != std::string_view("sm_75")) t.matrix_shapes = nvptx_matrices();
  return t;
}

template <class T>
const T& json_of(const T& field) {
  return field;
}
std::string json_of(const DType& t) { return name(t); }
nlohmann::ordered_json json_of(const std::vector<MatrixShape>& shapes) {
  auto out = nlohmann::ordered_json::array();
  for (const MatrixShape& s : shapes) {
    nlohmann::ordered_json& row = out.emplace_back();
    each_shape_field(s, [&](const char* key, const auto& field) { row[key] = json_of(field); });
  }
  return out;
}

}  // namespace

std::string to_string(const MatrixShape& s) {
  return fmt::format("{}x{}x{} {} {} {}", s.m, s.n, s.k, name(s.a), name(s.b), name(s.sum));
}

MatrixShape matrix_shape_from(const std::string& text) {
  MatrixShape s{};
  char a[16], b[16], sum[16];
  if (std::sscanf(text.c_str(), "%ux%ux%u %15s %15s %15s", &s.m, &s.n, &s.k, a, b, sum) != 6)
    fail<InvalidArgument>("'{}' is no shape of matrices, as 16x16x16 float16 float16 float32",
                          text);
  s.a = parse_dtype(a), s.b = parse_dtype(b), s.sum = parse_dtype(sum);
  return s;
}

std::string to_json(const Target& t) {
  nlohmann::ordered_json out;
  each_field(t, [&](const char* name, const auto& field) { out[name] = json_of(field); });
  nlohmann::ordered_json& features = out["features"];
  each_feature(t.features, [&](const char* name, bool field) { features[name] = field; });
  return out.dump(2) + "\n";
}

Target target_from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) fail<InvalidArgument>("target: the text is no JSON");
  if (!object.is_object()) fail<InvalidArgument>("target: the JSON is no object");
  Target t;
  std::set<std::string> known = {"features"};
  each_field(t, [&](const char* name, auto& field) {
    known.insert(name);
    if (object.contains(name)) read(name, object[name], field);
  });
  refuse_unknown("", object, known);
  if (object.contains("features")) read_features(object["features"], t.features);
  for (const char* required : {"device", "renderer"})
    if (!object.contains(required))
      fail<InvalidArgument>("target: field '{}' is missing", required);
  return t;
}

std::vector<std::string> builtin_target_names() {
  std::vector<std::string> names = {"spirv-generic", "spirv-lavapipe", "c-x86-64",
                                    "opencl-generic"};
  for (const AmdGpu& chip : kAmdGpus) names.push_back(std::string(kAmdGpuPrefix) + chip.name);
  for (const AmdGpu& chip : kAmdGpus)
    if (chip.is_rdna3()) names.push_back(std::string(kAcoPrefix) + chip.name);
  for (const NvidiaGpu& chip : kNvidiaGpus)
    names.push_back(std::string(kNvidiaGpuPrefix) + chip.name);
  return names;
}

Target builtin_target(const std::string& name) {
  if (name == "spirv-generic") return spirv_generic();
  if (name == "spirv-lavapipe") return spirv_lavapipe();
  if (name == "c-x86-64") return c_x86_64();
  if (name == "opencl-generic") return opencl_generic();
  for (const AmdGpu& chip : kAmdGpus)
    if (name == std::string(kAmdGpuPrefix) + chip.name) return amdgpu(chip);
  for (const AmdGpu& chip : kAmdGpus)
    if (chip.is_rdna3() && name == std::string(kAcoPrefix) + chip.name) return aco(chip);
  for (const NvidiaGpu& chip : kNvidiaGpus)
    if (name == std::string(kNvidiaGpuPrefix) + chip.name) return nvptx(chip);
  fail<InvalidArgument>("'{}' is no built-in target; there are {}", name,
                        fmt::join(builtin_target_names(), ", "));
}

}  // namespace tuff
