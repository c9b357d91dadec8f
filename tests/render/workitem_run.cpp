#include "render/workitem_run.h"

#include <ucontext.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "render/amdgpu_runs.h"
#include "render/c.h"
#include "base/compilers.h"

namespace tuff::render {
namespace {

// What the compiled text sees of the work-item that is running.
struct Item {
  int32_t group[3], local[3], lane, number;
  void (*barrier)();
  uint32_t (*shuffle)(uint32_t x, int32_t lane);
};

constexpr const char* kItem = R"c(
#pragma STDC FP_CONTRACT OFF
struct item {
  int group[3], local[3], lane, number;
  void (*barrier)(void);
  unsigned (*shuffle)(unsigned, int);
};
struct item* tuff_item;
)c";

// OpenCL C's words and as much of its library as kernels call, so that the dialect's own prelude is
// what runs.
constexpr const char* kOpenclLibrary = R"c(
#define __kernel
#define __global
#define __local static
#define reqd_work_group_size(x, y, z) visibility("default")
#define half _Float16
#define get_group_id(axis) tuff_item->group[axis]
#define get_local_id(axis) tuff_item->local[axis]
#define barrier(fences) tuff_item->barrier()
#define as_float(x) (((union { unsigned a; float b; }){x}).b)
#define as_uint(x) (((union { float a; unsigned b; }){x}).b)
#define as_double(x) (((union { unsigned long a; double b; }){x}).b)
#define clz(x) ((x) == 0 ? 64 : __builtin_clzl(x))
#define max(a, b) __builtin_elementwise_max(a, b)
#define fabs(x) __builtin_fabs(x)
#define fma(a, b, c) __builtin_elementwise_fma(a, b, c)
#define trunc(x) __builtin_elementwise_trunc(x)
#define sqrt(x) __builtin_elementwise_sqrt(x)
)c";

constexpr const char* kPrelude = R"c(
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef _Float16 f16; typedef float f32; typedef double f64;
enum { axis_x, axis_y, axis_z };
#define TUFF_KERNEL(x, y, z) __attribute__((visibility("default")))
#define TUFF_GLOBAL
#define TUFF_SHARED(T, name, count) static T name[count] __attribute__((aligned(16)))
#define TUFF_GROUP(axis) tuff_item->group[axis_##axis]
#define TUFF_LOCAL(axis) tuff_item->local[axis_##axis]
#define TUFF_BARRIER() tuff_item->barrier()
#define TUFF_SUBGROUP(item) ((item) / TUFF_SUBGROUP_SIZE)
static inline i32 tuff_lane(void) { return tuff_item->lane; }
static inline u32 tuff_broadcast(u32 x, i32 lane) { return tuff_item->shuffle(x, lane); }
static inline u32 tuff_shuffle(u32 x, i32 lane) { return tuff_item->shuffle(x, lane); }
static inline f32 f32_of_f16(f16 x) { return (f32)x; }
static inline f16 f16_of_f32(f32 x) { return (f16)x; }
static inline f32 f32_of_bf16(u16 h) {
  union { u32 u; f32 f; } r = {(u32)h << 16};
  if (r.f != r.f) r.u |= 0x400000u;
  return r.f; }
static inline u16 bf16_of_f32(f32 x) {
  union { f32 f; u32 u; } r = {x};
  if (x != x) return (u16)((r.u | 0x400000u) >> 16);
  const u32 low = r.u & 0xffffu, up = r.u >> 16;
  return (u16)(up + (low > 0x8000u || (low == 0x8000u && (up & 1)))); }
)c";

// The matrix instructions by what the ISA documents say of lanes and registers. A register's lane
// of another is read by the shuffle.
constexpr const char* kMatrixUnit = R"c(
#define TUFF_AS(T, x) ({ __typeof__(x) from = (x); T to; __builtin_memcpy(&to, &from, sizeof to); to; })
typedef struct { u32 word[8]; } unit_factor;
typedef struct { i32 word[8]; } unit_sums;
static unit_factor unit_of_lane(const unit_factor* mine, int words, int lane) {
  unit_factor r;
  for (int w = 0; w < words; w++) r.word[w] = tuff_shuffle(mine->word[w], lane);
  return r; }
/* Steps of the reduction of one row of a, or column of b: `bits` each, of all lanes that have some. */
static void unit_line(f64* to, const unit_factor* mine, int line, int lanes, int words, int kind) {
  int k = 0;
  for (int part = 0; part < lanes; part++) {
    const unit_factor f = unit_of_lane(mine, words, line + 16 * part);
    for (int w = 0; w < words; w++) for (int b = 0; b < (kind < 2 ? 2 : 4); b++) {
      const u16 half = (u16)(f.word[w] >> 16 * b);
      const u8 byte = (u8)(f.word[w] >> 8 * b);
      f16 h; __builtin_memcpy(&h, &half, 2);
      to[k++] = kind == 0 ? (f64)h : kind == 1 ? (f64)f32_of_bf16(half)
              : kind == 2 ? (f64)(i8)byte : (f64)byte;
    }
  } }
static void unit_multiply(const void* a, const void* b, const void* c, void* d, int lanes, int words,
                          int sums, int interleaved, int kind) {
  unit_factor fa, fb; unit_sums s;
  __builtin_memcpy(&fa, a, words * 4); __builtin_memcpy(&fb, b, words * 4);
  __builtin_memcpy(&s, c, sums * 4);
  const int lane = tuff_lane(), steps = lanes * words * (kind < 2 ? 2 : 4);
  f64 column[64], row[64];
  unit_line(column, &fb, lane % 16, lanes, words, kind);
  for (int i = 0; i < sums; i++) {
    const int r = interleaved ? 2 * i + lane / 16 : lane / 16 * sums + i;
    unit_line(row, &fa, r, lanes, words, kind);
    f64 sum = 0;
    for (int k = 0; k < steps; k++) sum += row[k] * column[k];
    if (kind < 2) { f32 x; __builtin_memcpy(&x, &s.word[i], 4); x = (f32)(x + sum);
                    __builtin_memcpy(&s.word[i], &x, 4); }
    else s.word[i] += (i32)sum;
  }
  __builtin_memcpy(d, &s, sums * 4); }
#define UNIT(a, b, c, lanes, words, sums, interleaved, kind) ({ \
  __typeof__(a) xa = (a); __typeof__(b) xb = (b); __typeof__(c) xc = (c), xd; \
  unit_multiply(&xa, &xb, &xc, &xd, lanes, words, sums, interleaved, kind); xd; })
#if defined(__GFX11__)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c) UNIT(a, b, c, 1, 8, 8, 1, 0)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c) UNIT(a, b, c, 1, 8, 8, 1, 1)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(s, a, t, b, c, u) \
  UNIT(a, b, c, 1, 4, 8, 1, (s) ? 2 : 3)
#elif defined(__GFX12__)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c) UNIT(a, b, c, 2, 4, 8, 0, 0)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c) UNIT(a, b, c, 2, 4, 8, 0, 1)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(s, a, t, b, c, u) \
  UNIT(a, b, c, 2, 2, 8, 0, (s) ? 2 : 3)
#elif defined(__gfx942__)
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, x, y, z) UNIT(a, b, c, 4, 2, 4, 0, 0)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, x, y, z) UNIT(a, b, c, 4, 2, 4, 0, 1)
#define __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, c, x, y, z) UNIT(a, b, c, 4, 2, 4, 0, 2)
#endif
)c";

// The macro by which clang says what it compiles for.
std::string family(const Target& t) {
  if (t.arch == "gfx942") return "#define __gfx942__ 1";
  return fmt::format("#define __GFX{}__ 1", t.arch.substr(3, 2));
}

constexpr size_t kStackBytes = 1 << 18;

using Kernel = void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t);
constexpr size_t kMostArguments = 16;

// One workgroup: its work-items run one after the other, each up to its next barrier or shuffle.
class Workgroup {
 public:
  Workgroup(Kernel kernel, Item** now, std::span<const uint64_t> arguments,
            std::array<uint32_t, 3> local, uint32_t subgroup_size)
      : kernel_(kernel), now_(now), subgroup_size_(subgroup_size) {
    std::copy(arguments.begin(), arguments.end(), arguments_.begin());
    for (uint32_t z = 0; z < local[2]; ++z)
      for (uint32_t y = 0; y < local[1]; ++y)
        for (uint32_t x = 0; x < local[0]; ++x) {
          const auto number = static_cast<int32_t>(fibers_.size());
          Fiber& f = *fibers_.emplace_back(std::make_unique<Fiber>());
          f.item = {{},
                    {int32_t(x), int32_t(y), int32_t(z)},
                    number % int32_t(subgroup_size),
                    number,
                    barrier,
                    shuffle};
          f.stack.resize(kStackBytes);
        }
  }

  void run(std::array<int32_t, 3> group) {
    current = this;
    for (auto& f : fibers_) {
      std::copy(group.begin(), group.end(), f->item.group);
      f->done = false;
      TUFF_CHECK(getcontext(&f->context) == 0, "getcontext");
      f->context.uc_stack.ss_sp = f->stack.data();
      f->context.uc_stack.ss_size = f->stack.size();
      f->context.uc_link = &scheduler_;
      makecontext(&f->context, start, 0);
    }
    size_t done = 0;
    while (done == 0) {
      for (auto& f : fibers_) {
        running_ = f.get();
        *now_ = &f->item;
        swapcontext(&scheduler_, &f->context);
        done += f->done;
      }
      TUFF_CHECK(done == 0 || done == fibers_.size(), "{} of {} work-items ended, the others wait",
                 done, fibers_.size());
      for (auto& f : fibers_) f->given = f->gives;
    }
    current = nullptr;
  }

 private:
  struct Fiber {
    Item item;
    ucontext_t context;
    std::vector<char> stack;
    uint32_t gives = 0, given = 0;
    bool done = false;
  };
  static void start() {
    Workgroup& w = *current;
    const auto& a = w.arguments_;
    w.kernel_(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
              a[13], a[14], a[15]);
    w.running_->done = true;
  }
  static void barrier() { swapcontext(&current->running_->context, &current->scheduler_); }
  static uint32_t shuffle(uint32_t x, int32_t lane) {
    Fiber& self = *current->running_;
    self.gives = x;
    barrier();
    const int32_t first = self.item.number - self.item.lane;
    return current->fibers_.at(static_cast<size_t>(first + lane))->given;
  }

  static Workgroup* current;
  Kernel kernel_;
  Item** now_;
  uint32_t subgroup_size_;
  std::array<uint64_t, kMostArguments> arguments_{};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  ucontext_t scheduler_{};
};
Workgroup* Workgroup::current = nullptr;

Prelude amdgpu_prelude() {
  Prelude p;
  p.add(kPrelude);
  add_arithmetic(p);
  p.add(kMatrixUnit);
  add_amdgpu_matrices(p);
  return p;
}

}  // namespace

WorkitemRun::WorkitemRun(std::span<const Source> sources, const Target& t)
    : subgroup_size_(std::max(t.subgroup_size, 1u)), opencl_(t.renderer == "opencl") {
  std::string text = kItem;
  if (opencl_)
    text += fmt::format("{}{}{}", t.features.f16 ? "#define TUFF_F16\n" : "", kOpenclLibrary,
                        c_opencl().prelude.whole());
  else
    text += fmt::format("#define TUFF_SUBGROUP_SIZE {}\n{}\n{}", subgroup_size_, family(t),
                        amdgpu_prelude().whole());
  std::set<std::string> known;
  for (const Source& s : sources)
    if (known.insert(s.symbol).second) text += s.text;
  const std::string stem = fmt::format(
      "{}/tuff_items_{}", std::filesystem::temp_directory_path().string(), os::monotonic_ns());
  os::write_file(stem + ".o", compile_c({&text, 1})[0]);
  const std::string library = stem + ".so";
  const os::ProcessResult linked =
      os::Process({*find_c_compiler(), "-shared", "-o", library, stem + ".o", "-lm"}).wait();
  TUFF_CHECK(linked.exit_code == 0, "{}", linked.err);
  std::string why;
  library_ = os::Library::open({&library, 1}, &why);
  TUFF_CHECK(library_, "{}", why);
  std::filesystem::remove(stem + ".o");
  std::filesystem::remove(library);
}

void WorkitemRun::run(const Source& source, std::span<const uint64_t> buffers,
                      std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) const {
  const auto kernel = reinterpret_cast<Kernel>(library_->symbol(source.symbol.c_str()));
  auto** now = static_cast<Item**>(library_->symbol("tuff_item"));
  TUFF_CHECK(kernel && now, "kernel {} is not in the library", source.symbol);
  std::vector<uint64_t> arguments;
  for (const uint64_t b : buffers) {
    arguments.push_back(b);
    if (opencl_) arguments.push_back(0);  // bytes into it
  }
  for (const int32_t s : scalars) arguments.push_back(static_cast<uint32_t>(s));
  TUFF_CHECK(arguments.size() <= kMostArguments, "{} arguments", arguments.size());
  Workgroup workgroup(kernel, now, arguments, source.local, subgroup_size_);
  for (uint32_t z = 0; z < groups[2]; ++z)
    for (uint32_t y = 0; y < groups[1]; ++y)
      for (uint32_t x = 0; x < groups[0]; ++x) workgroup.run({int32_t(x), int32_t(y), int32_t(z)});
}

namespace {

class HostRunner : public KernelRunner {
 public:
  HostRunner(std::span<const Source> sources, const Target& t) : run_(sources, t) {}
  void run(const Source& source, std::span<const std::span<uint8_t>> buffers,
           std::span<const int32_t> scalars, std::array<uint32_t, 3> groups) override {
    std::vector<uint64_t> addresses;
    for (const auto& b : buffers) addresses.push_back(reinterpret_cast<uint64_t>(b.data()));
    run_.run(source, addresses, scalars, groups);
  }

 private:
  WorkitemRun run_;
};

}  // namespace

std::unique_ptr<KernelRunner> on_the_host(std::span<const Source> sources, const Target& t) {
  return std::make_unique<HostRunner>(sources, t);
}

}  // namespace tuff::render
