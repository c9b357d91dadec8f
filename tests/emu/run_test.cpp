// Kernels that clang compiles for gfx1100, interpreted, against the same C on this machine.
#include <gtest/gtest.h>
#include <string_view>
#include <unistd.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/narrow_float.h"
#include "base/os.h"
#include "base/split_mix.h"
#include "emu/llvm_tools.h"
#include "emu/random_values.h"
#include "emu/rdna/code_object.h"
#include "emu/rdna/decode.h"

namespace tuff::emu::rdna {
namespace {

using namespace testing;

constexpr uint32_t kItems = 256, kGroup = 64;
constexpr uint64_t kCodeAddress = 0x100000000, kKernargAddress = 0x200000000;

struct Case {
  const char* name;
  Type in, out;
};

const Case kCases[] = {
    {"u32_three", kI32, kI32},
    {"i32_fields", kI32, kI32},
    {"i32_med3", kI32, kI32},
    {"u32_min3", kI32, kI32},
    {"u32_ubytes", kI32, kSingle},
    {"i32_wide_mad", kI32, kI64},
    {"u32_wide_mad", kI32, kI64},
    {"i32_mul24", kI32, kI32},
    {"u32_mul24", kI32, kI32},
    {"f32_copysign", kSingle, kSingle},
    {"f32_ldexp", kSingle, kSingle},
    {"f64_ldexp", kDouble, kDouble},
    {"f64_class", kDouble, kI32},
    {"f16_class", kHalf, kI32},
    {"f16_minmax", kHalf, kHalf},
    {"u64_choice", kI64, kI64},
    {"f64_to_u32", kDouble, kI32},
    {"f16_to_u16", kHalf, kI16},
    {"u16_to_f16", kI16, kHalf},
    {"i64_minmax", kI64, kI64},
    {"i32_arithmetic", kI32, kI32},
    {"i32_shifts", kI32, kI32},
    {"i32_choice", kI32, kI32},
    {"i32_divide", kI32, kI32},
    {"u32_divide", kI32, kI32},
    {"u32_bits", kI32, kI32},
    {"u32_rotate", kI32, kI32},
    {"u32_mulhi", kI32, kI32},
    {"u32_minmax", kI32, kI32},
    {"u32_bytes", kI32, kI32},
    {"u32_hash", kI32, kI32},
    {"i64_arithmetic", kI64, kI64},
    {"i64_shifts", kI64, kI64},
    {"i64_choice", kI64, kI64},
    {"i64_divide", kI64, kI64},
    {"u64_divide", kI64, kI64},
    {"u64_to_f32", kI64, kSingle},
    {"i64_to_f32", kI64, kSingle},
    {"i64_to_f64", kI64, kDouble},
    {"u64_bits", kI64, kI64},
    {"u8_arithmetic", kI8, kI8},
    {"i8_arithmetic", kI8, kI8},
    {"i16_arithmetic", kI16, kI16},
    {"u16_arithmetic", kI16, kI16},
    {"i16_minmax", kI16, kI16},
    {"i16_to_f32", kI16, kSingle},
    {"u8_to_f32", kI8, kSingle},
    {"f32_arithmetic", kSingle, kSingle},
    {"f32_fma", kSingle, kSingle},
    {"f32_divide", kSingle, kSingle},
    {"f32_sqrt", kSingle, kSingle},
    {"f32_round", kSingle, kSingle},
    {"f32_choice", kSingle, kSingle},
    {"f32_class", kSingle, kI32},
    {"f32_to_i32", kSingle, kI32},
    {"f32_to_u32", kSingle, kI32},
    {"f32_to_f64", kSingle, kDouble},
    {"f32_to_i64", kSingle, kI64},
    {"f32_to_f16", kSingle, kHalf},
    {"i32_to_f32", kI32, kSingle},
    {"i32_to_f64", kI32, kDouble},
    {"f64_arithmetic", kDouble, kDouble},
    {"f64_fma", kDouble, kDouble},
    {"f64_divide", kDouble, kDouble},
    {"f64_round", kDouble, kDouble},
    {"f64_choice", kDouble, kDouble},
    {"f64_to_i32", kDouble, kI32},
    {"f64_to_i64", kDouble, kI64},
    {"f64_to_f32", kDouble, kSingle},
    {"f16_arithmetic", kHalf, kHalf},
    {"f16_choice", kHalf, kHalf},
    {"f16_to_f32", kHalf, kSingle},
    {"f16_divide", kHalf, kHalf},
    {"f16_round", kHalf, kHalf},
    {"f16_fma", kHalf, kHalf},
    {"f16_mixed", kHalf, kSingle},
    {"i16_to_f16", kI16, kHalf},
    {"i8_choice", kI8, kI32},
    {"u16_choice", kI16, kI16},
    {"f64_sqrt", kDouble, kDouble},
    {"f32_minmax", kSingle, kSingle},
    {"f64_minmax", kDouble, kDouble},
    {"f16_to_i16", kHalf, kI16},
    {"collatz", kI32, kI32},
    {"histogram", kI32, kI32},
    {"f16_negated_pair", kSingle, kI32},
    {"f16_signs_of_a_pair", kSingle, kI32},
    {"f16_sum", kHalf, kHalf},
    {"f16_product", kHalf, kHalf},
    {"f32_product", kSingle, kSingle},
    {"f16_pair_of_sums", kI32, kI32},
    {"f16_mixed_low", kHalf, kHalf},
    {"buffer_load_words", kI32, kI32},
    {"buffer_load_bytes", kI32, kI32},
    {"buffer_load_shorts", kI32, kI32},
    {"buffer_load_vectors", kI32, kI32},
    {"buffer_store_words", kI32, kI32},
    {"buffer_store_bytes", kI32, kI32},
    {"buffer_store_vectors", kI32, kI32},
    {"wave_readlane", kI32, kI32},
    {"wave_readfirstlane", kI32, kI32},
    {"wave_writelane", kI32, kI32},
    {"wave_permlane16", kI32, kI32},
    {"wave_permlanex16", kI32, kI32},
    {"wave_quad_perm", kI32, kI32},
    {"wave_row_shl", kI32, kI32},
    {"wave_row_shl_zero", kI32, kI32},
    {"wave_row_shr", kI32, kI32},
    {"wave_row_shr_zero", kI32, kI32},
    {"wave_row_ror", kI32, kI32},
    {"wave_row_mirror", kI32, kI32},
    {"wave_row_half_mirror", kI32, kI32},
    {"wave_row_share", kI32, kI32},
    {"wave_row_xmask", kI32, kI32},
    {"wave_dpp_of_a_row", kI32, kI32},
    {"wave_dpp_of_banks", kI32, kI32},
    {"wave_dpp8", kI32, kI32},
    {"wave_dpp_in_a_sum", kI32, kI32},
    {"wave_dpp_of_floats", kSingle, kSingle},
    {"wave_swizzle_quad", kI32, kI32},
    {"wave_swizzle_mask", kI32, kI32},
    {"wave_bpermute", kI32, kI32},
    {"wave_permute", kI32, kI32},
    {"wave_mbcnt", kI32, kI32},
    {"wave_mbcnt_hi", kI32, kI32},
    {"wave_ballot", kI32, kI32},
    {"wave_odd_readfirstlane", kI32, kI32},
    {"wave_odd_ballot", kI32, kI32},
    {"wave_odd_bpermute", kI32, kI32},
    {"wave_odd_swizzle", kI32, kI32},
    {"wave_odd_dpp", kI32, kI32},
    {"wave_odd_dpp_zero", kI32, kI32},
    {"wave_odd_permlane16", kI32, kI32},
    {"wave_odd_permlane16_zero", kI32, kI32},
    {"wave_odd_permlanex16_all", kI32, kI32},
    {"atomic_global_u32", kI32, kI32},
    {"atomic_global_u32_old", kI32, kI32},
    {"atomic_global_u64", kI64, kI64},
    {"atomic_global_u64_old", kI64, kI64},
    {"atomic_flat_u32", kI32, kI32},
    {"atomic_flat_u32_old", kI32, kI32},
    {"atomic_flat_u64", kI64, kI64},
    {"atomic_flat_u64_old", kI64, kI64},
    {"atomic_local_u32", kI32, kI32},
    {"atomic_local_u32_old", kI32, kI32},
    {"atomic_local_u64", kI64, kI64},
    {"atomic_local_u64_old", kI64, kI64},
    {"atomic_flat_local_u32", kI32, kI32},
    {"atomic_flat_local_u32_old", kI32, kI32},
    {"atomic_flat_local_u64", kI64, kI64},
    {"atomic_flat_local_u64_old", kI64, kI64},
    {"atomic_contended", kI32, kI32},
    {"atomic_global_fadd", kSingle, kSingle},
    {"atomic_global_fmin", kSingle, kSingle},
    {"atomic_global_fmax", kSingle, kSingle},
    {"atomic_flat_fmax", kSingle, kSingle},
    {"atomic_local_fadd", kSingle, kSingle},
    {"atomic_local_fmin", kSingle, kSingle},
    {"atomic_local_fmax", kSingle, kSingle},
    {"dot_udot4", kI32, kI32},
    {"dot_udot4_held", kI32, kI32},
    {"dot_sdot4", kI32, kI32},
    {"dot_sudot4", kI32, kI32},
    {"dot_usdot4_held", kI32, kI32},
    {"dot_udot8", kI32, kI32},
    {"dot_sdot8", kI32, kI32},
    {"dot_sudot8", kI32, kI32},
    {"dot_sdot8_held", kI32, kI32},
    {"dot_fdot2", kI32, kSingle},
    {"dot_fdot2_held", kI32, kSingle},
    {"dot_fdot2_negated", kI32, kSingle},
    {"dot_fdot2_bf16", kI32, kSingle},
    {"dot_fdot2_f16_f16", kI32, kHalf},
    {"dot_fdot2_bf16_bf16", kI32, kSingle},
};

// Exponents at and below the least of normal numbers.
void make_some_tiny(std::vector<uint8_t>& bytes, Type type, SplitMix64& random) {
  for (uint32_t k = 0; k < kItems; ++k) {
    uint8_t* const high = bytes.data() + size_t(k) * type.bytes + type.bytes - 2;
    uint16_t top;
    std::memcpy(&top, high, sizeof top);
    if (type.kind == Kind::Integer || random.below(3u) != 0) continue;
    const int mantissa = type.kind == Kind::F16 ? 10 : type.kind == Kind::F32 ? 7 : 4;
    top = uint16_t((top & (0x8000 | ((1 << mantissa) - 1))) | random.below(3u) << mantissa);
    std::memcpy(high, &top, sizeof top);
  }
}

struct Size {
  std::array<uint32_t, 3> groups{1, 1, 1}, group_size{32, 1, 1};
  uint64_t seed = 0;
  std::optional<uint32_t> mode;  // in place of the kernel's own
};

class Device {
 public:
  explicit Device(const std::vector<uint8_t>& file) : object_(file, kCodeAddress) {
    memory_.map(kCodeAddress, object_.image(), false);
  }
  uint64_t add(std::vector<uint8_t>& bytes) {
    next_ += 0x10000;
    memory_.map(next_, bytes);
    addresses_.push_back(next_);
    return next_;
  }
  void clear() {
    for (const uint64_t address : addresses_) memory_.unmap(address);
    addresses_.clear();
  }
  Outcome run(const std::string& name, std::vector<uint64_t> arguments, const Size& size) {
    const Kernel kernel = object_.kernel(name);
    arguments.resize(std::max<size_t>(arguments.size(), kernel.descriptor.kernarg_bytes / 8 + 1));
    memory_.map(kKernargAddress,
                {reinterpret_cast<uint8_t*>(arguments.data()), arguments.size() * 8}, false);
    Launch launch = launch_of(kernel, kKernargAddress);
    launch.groups = size.groups;
    launch.group_size = size.group_size;
    launch.seed = size.seed;
    launch.instruction_budget = 10'000'000;
    if (size.mode) launch.rsrc1 = (launch.rsrc1 & ~(0xFFu << 12)) | *size.mode << 12;
    const Outcome outcome = rdna::run(launch, memory_);
    memory_.unmap(kKernargAddress);
    return outcome;
  }

 private:
  CodeObject object_;
  RangeMemory memory_;
  uint64_t next_ = 0x300000000;
  std::vector<uint64_t> addresses_;
};

const std::string kSource = std::string(TUFF_SOURCE_DIR) + "/tests/emu/device_kernels.c";

const std::vector<uint8_t>& device_code() {
  static const std::vector<uint8_t> code = testing::compile_device(kSource);
  return code;
}

struct Folder {
  Folder() {
    path = (std::filesystem::temp_directory_path() / fmt::format("tuff_emu_{}", getpid())).string();
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

// How the two sides compute: MODE, and what says the same to this machine.
struct Arithmetic {
  std::optional<uint32_t> mode;
  int rounding = FE_TONEAREST;
  bool flushes_inputs = false, flushes_outputs = false;
};

// While it lives this thread computes so.
class HostArithmetic {
 public:
  explicit HostArithmetic(const Arithmetic& a) {
    std::fegetenv(&before_);
    std::fesetround(a.rounding);
#ifdef __x86_64__
    constexpr unsigned kDenormalsAreZero = 1u << 6, kFlushToZero = 1u << 15;
    _mm_setcsr(_mm_getcsr() | (a.flushes_inputs ? kDenormalsAreZero : 0) |
               (a.flushes_outputs ? kFlushToZero : 0));
#endif
  }
  ~HostArithmetic() { std::fesetenv(&before_); }
  HostArithmetic(const HostArithmetic&) = delete;
  HostArithmetic& operator=(const HostArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

using HostKernel = void (*)(uint32_t, void*, const void*, const void*, const void*);

struct Both {
  Folder folder;
  os::Library host;
  Device device;

  explicit Both(const std::vector<std::string>& device_options = {})
      : host([&] {
          const std::string names[] = {testing::compile_host(kSource, folder.path)};
          return *os::Library::open(names);
        }()),
        device(device_options.empty() ? device_code()
                                      : testing::compile_device(kSource, "-O2", device_options)) {}

  Outcome compare(const Case& c, SplitMix64& random, const Arithmetic& arithmetic = {}) {
    std::vector<uint8_t> in[3], out = random_values(c.out, kItems, random), expected = out;
    std::vector<uint64_t> arguments{device.add(out)};
    for (auto& values : in) {
      values = random_values(c.in, kItems, random);
      if (arithmetic.mode) make_some_tiny(values, c.in, random);
      arguments.push_back(device.add(values));
    }
    const Size size{{kItems / kGroup, 1, 1}, {kGroup, 1, 1}, random.next(), arithmetic.mode};
    const Outcome outcome = device.run(c.name, arguments, size);
    const auto host_kernel =
        reinterpret_cast<HostKernel>(host.symbol(("host_" + std::string(c.name)).c_str()));
    {
      const HostArithmetic as_the_device(arithmetic);
      for (uint32_t k = 0; k < kItems; ++k) {
        host_kernel(k, expected.data(), in[0].data(), in[1].data(), in[2].data());
      }
    }
    EXPECT_EQ(to_text(outcome.findings), "") << c.name;
    EXPECT_TRUE(outcome.finished) << c.name;
    for (uint32_t k = 0; k < kItems; ++k) {
      const uint64_t ours = bits_at(out, k, c.out), theirs = bits_at(expected, k, c.out);
      if (ours == theirs) continue;
      ADD_FAILURE() << fmt::format("{} item {}: {:#x}, on the host {:#x}; from {:#x} {:#x} {:#x}",
                                   c.name, k, ours, theirs, bits_at(in[0], k, c.in),
                                   bits_at(in[1], k, c.in), bits_at(in[2], k, c.in));
      break;
    }
    device.clear();
    return outcome;
  }
};

TEST(RdnaRun, CompiledKernelsReadAsLlvmReadsThem) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  CodeObject object(device_code(), kCodeAddress);
  const std::span<const uint8_t> code = object.code();
  std::vector<uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), words.size() * 4);
  std::vector<std::vector<uint32_t>> cases;
  std::vector<std::string> ours;
  for (size_t at = 0; at < words.size();) {
    const Instruction i = decode(std::span(words).subspan(at));
    cases.emplace_back(words.begin() + ptrdiff_t(at),
                       words.begin() + ptrdiff_t(at + i.size_bytes / 4));
    ours.push_back(to_text(i));
    at += i.size_bytes / 4;
  }
  const auto theirs = testing::disassemble(cases);
  for (size_t k = 0; k < cases.size(); ++k) {
    EXPECT_EQ(theirs[k].value_or("nothing"), ours[k])
        << fmt::format("{:08x}", fmt::join(cases[k], " "));
  }
  EXPECT_GT(cases.size(), 2000u);
}

TEST(RdnaRun, KernelsComputeWhatTheHostComputes) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  Both both;
  SplitMix64 random(11);
  std::map<std::string, uint64_t> counts;
  for (const Case& c : kCases) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      for (const auto& [name, count] : both.compare(c, random).counts) counts[name] += count;
    }
  }
  fmt::print("{} mnemonics executed\n", counts.size());
  EXPECT_GE(counts.size(), 200u);
}

const Case& find_case(std::string_view name) {
  return *std::ranges::find_if(kCases, [&](const Case& c) { return c.name == name; });
}

constexpr int kHostRoundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

// Of f32 the lower field of MODE, of f64 and f16 the upper one: the other says something else.
TEST(RdnaRun, RoundsAsModeSays) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  Both both;
  SplitMix64 random(21);
  for (uint32_t rounding = 0; rounding < 4; ++rounding) {
    const uint32_t other = (rounding + 1 + uint32_t(random.below(3u))) % 4;
    const auto expect_same = [&](std::initializer_list<const char*> names, uint32_t low,
                                 uint32_t high) {
      const Arithmetic arithmetic{0xF0 | high << 2 | low, kHostRoundings[rounding]};
      for (const char* name : names) both.compare(find_case(name), random, arithmetic);
    };
    for (int repeat = 0; repeat < 4; ++repeat) {
      expect_same({"f32_arithmetic", "f32_fma", "i32_to_f32", "f32_to_i32", "f32_choice"}, rounding,
                  other);
      expect_same({"f64_arithmetic", "f64_fma", "f16_sum", "f16_product", "f16_fma", "f32_to_f16",
                   "f16_pair_of_sums"},
                  other, rounding);
      expect_same({"f64_to_f32", "f16_mixed", "f16_mixed_low"}, rounding, rounding);
    }
  }
}

TEST(RdnaRun, FlushesDenormalsAsModeSays) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  Both both;
  SplitMix64 random(22);
  for (uint32_t keeps = 0; keeps < 4; ++keeps) {
    const auto expect_same = [&](std::initializer_list<const char*> names, uint32_t mode) {
      const Arithmetic arithmetic{mode, FE_TONEAREST, !(keeps & 1), !(keeps & 2)};
      for (const char* name : names) both.compare(find_case(name), random, arithmetic);
    };
    for (int repeat = 0; repeat < 4; ++repeat) {
      expect_same({"f32_arithmetic", "f32_fma", "f32_choice", "f32_to_i32", "f32_product"},
                  0xC0 | keeps << 4);
      expect_same({"f64_arithmetic", "f64_fma", "f64_choice", "f64_to_i32"}, 0x30 | keeps << 6);
    }
  }
}

// Compiled for it: divisions switch denormals on and off on their way.
TEST(RdnaRun, KernelsCompiledToFlushDenormals) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  Both both({"-Xclang", "-fdenormal-fp-math-f32=preserve-sign,preserve-sign"});
  SplitMix64 random(23);
  const Arithmetic flushing{0xC0, FE_TONEAREST, true, true};
  uint64_t switches = 0;
  for (const char* name : {"f32_arithmetic", "f32_fma", "f32_divide", "f32_choice", "f32_to_i32",
                           "i32_to_f32", "f32_product"}) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      const Outcome outcome = both.compare(find_case(name), random, flushing);
      if (outcome.counts.contains("s_denorm_mode")) switches += outcome.counts.at("s_denorm_mode");
    }
  }
  EXPECT_GT(switches, 0u);
}

// This machine does not flush halves: their product is one rounding, so it can be done outside.
TEST(RdnaRun, HalvesFlushDenormalsAsModeSays) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  Device device(device_code());
  SplitMix64 random(24);
  const auto flush = [](uint16_t half, bool keeps) {
    return keeps || half & 0x7C00 ? half : uint16_t(half & 0x8000);
  };
  std::vector<uint8_t> a = random_values(kHalf, kItems, random),
                       b = random_values(kHalf, kItems, random);
  make_some_tiny(a, kHalf, random);
  for (uint32_t keeps = 0; keeps < 4; ++keeps) {
    std::vector<uint8_t> out(size_t(kItems) * 2);
    const uint64_t x = device.add(a), y = device.add(b);
    const Outcome outcome =
        device.run("f16_product", {device.add(out), x, y, y},
                   {{kItems / kGroup, 1, 1}, {kGroup, 1, 1}, keeps, 0x30 | keeps << 6});
    EXPECT_EQ(to_text(outcome.findings), "");
    for (uint32_t k = 0; k < kItems; ++k) {
      const float p = narrow::f16_to_f32(flush(uint16_t(bits_at(a, k, kI16)), keeps & 1)),
                  q = narrow::f16_to_f32(flush(uint16_t(bits_at(b, k, kI16)), keeps & 1));
      const uint16_t product = flush(narrow::f16_from_f32(p * q), keeps & 2);
      std::vector<uint8_t> expected(2);
      std::memcpy(expected.data(), &product, 2);
      EXPECT_EQ(bits_at(out, k, kHalf), bits_at(expected, 0, kHalf)) << p << " * " << q;
    }
    device.clear();
  }
}

struct Range {
  int least, most;
  int draw(SplitMix64& random) const {
    return least + int(random.below(uint32_t(most - least + 1)));
  }
};

template <class T>
void put_numbers(std::vector<uint8_t>& bytes, const std::vector<int>& numbers, T (*put)(int)) {
  bytes.resize(numbers.size() * sizeof(T));
  for (size_t k = 0; k < numbers.size(); ++k) {
    const T value = put(numbers[k]);
    std::memcpy(bytes.data() + k * sizeof value, &value, sizeof value);
  }
}

// Small integers, whose sums are exact in every order and in the type of the sum.
template <class In, class Sum>
void expect_matrix_product(Device& device, const char* kernel, In (*put)(int), Sum (*put_sum)(int),
                           Range left, Range right, Range addend) {
  constexpr uint32_t kSize = 16;
  std::vector<uint8_t> a, b, c, d(kSize * kSize * sizeof(Sum));
  std::vector<int> x(kSize * kSize), y = x, z = x;
  SplitMix64 random(9);
  for (auto& value : x) value = left.draw(random);
  for (auto& value : y) value = right.draw(random);
  for (auto& value : z) value = addend.draw(random);
  put_numbers(a, x, put);
  put_numbers(b, y, put);
  put_numbers(c, z, put_sum);
  const Outcome outcome =
      device.run(kernel, {device.add(d), device.add(a), device.add(b), device.add(c)}, Size{});
  device.clear();
  EXPECT_EQ(to_text(outcome.findings), "");
  for (uint32_t k = 0; k < kSize * kSize; ++k) {
    int sum = z[k];
    for (uint32_t n = 0; n < kSize; ++n) sum += x[k / kSize * kSize + n] * y[n * kSize + k % kSize];
    Sum got;
    std::memcpy(&got, d.data() + k * sizeof got, sizeof got);
    ASSERT_EQ(got, put_sum(sum)) << kernel << " element " << k;
  }
}

uint16_t as_half(int value) { return narrow::f16_from_f32(float(value)); }
uint16_t as_brain(int value) { return narrow::bf16_from_f32(float(value)); }
float as_float(int value) { return float(value); }
int8_t as_byte(int value) { return int8_t(value); }
int32_t as_word(int value) { return value; }

TEST(RdnaRun, MatrixInstructions) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  Device device(device_code());
  const Range eight{-8, 8}, nibble{-8, 7}, natural{0, 15}, wide{-500, 500}, two{-2, 2},
      ten{-10, 10};
  expect_matrix_product(device, "matrix_f16", as_half, as_float, eight, eight, wide);
  expect_matrix_product(device, "matrix_bf16", as_brain, as_float, eight, eight, wide);
  expect_matrix_product(device, "matrix_f16_f16", as_half, as_half, eight, eight, wide);
  expect_matrix_product(device, "matrix_f16_f16_upper", as_half, as_half, eight, eight, wide);
  expect_matrix_product(device, "matrix_bf16_bf16", as_brain, as_brain, two, two, ten);
  expect_matrix_product(device, "matrix_bf16_bf16_upper", as_brain, as_brain, two, two, ten);
  expect_matrix_product(device, "matrix_i8", as_byte, as_word, {-128, 127}, {-128, 127}, wide);
  expect_matrix_product(device, "matrix_i4", as_byte, as_word, nibble, natural, wide);
}

// 64 x 64 x 64 through LDS with barriers: what the workgroups of a real product do.
TEST(RdnaRun, TiledProductThroughLds) {
  ASSERT_EQ(testing::why_no_llvm(), "");
  constexpr uint32_t kSize = 64;
  Device device(device_code());
  std::vector<uint8_t> a(kSize * kSize * 4), b = a, c = a;
  std::vector<float> x(kSize * kSize), y = x, z = x;
  SplitMix64 random(3);
  for (auto& value : x) value = float(random.below(17u)) - 8;
  for (auto& value : y) value = float(random.below(17u)) - 8;
  std::memcpy(a.data(), x.data(), a.size());
  std::memcpy(b.data(), y.data(), b.size());
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = device.run("product", {device.add(c), device.add(a), device.add(b), 0},
                                     {{4, 4, 1}, {16, 16, 1}, 5});
  const auto took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} instructions in {:.1f} ms\n", outcome.instructions,
             std::chrono::duration<double, std::milli>(took).count());
  EXPECT_EQ(to_text(outcome.findings), "");
  std::memcpy(z.data(), c.data(), c.size());
  for (uint32_t row = 0; row < kSize; ++row) {
    for (uint32_t column = 0; column < kSize; ++column) {
      float sum = 0;
      for (uint32_t k = 0; k < kSize; ++k) sum += x[row * kSize + k] * y[k * kSize + column];
      ASSERT_EQ(z[row * kSize + column], sum) << row << ", " << column;
    }
  }
}

}  // namespace
}  // namespace tuff::emu::rdna
