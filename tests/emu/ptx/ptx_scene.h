// Kernels of PTX with their memory, and one instruction held against a function of the host's.
// Called by the tests of emu/ptx.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/narrow_float.h"
#include "emu/api.h"
#include "emu/random_values.h"

namespace tuff::emu::ptx {

inline constexpr const char* kHead = ".version 7.8\n.target sm_86\n.address_size 64\n";

// A module of one kernel "k" with parameters p0 to p3 of 64 bits, which are in %rd0 to %rd3; %r0 is
// the number of the thread in the grid. Registers: %rs, %r, %rd, %f, %fd, %p, 0 to 63 of each.
std::string kernel_of(const std::string& body, const std::string& before = "");

class Scene {
 public:
  explicit Scene(const std::string& text);
  // Memory of the launches to come, at an address that is returned. `bytes` stays where it is.
  uint64_t add(std::vector<uint8_t>& bytes, bool writable = true);
  template <class T>
  uint64_t add(std::vector<T>& values, bool writable = true) {
    return add_region(reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T),
                      writable);
  }
  emu_api::PtxLaunchResult run(const std::vector<uint64_t>& arguments);
  // The same without findings.
  void run_clean(const std::vector<uint64_t>& arguments);
  emu_api::PtxModule& module() { return *module_; }

  emu_api::PtxLaunchRequest request;

 private:
  uint64_t add_region(uint8_t* bytes, size_t count, bool writable);

  std::unique_ptr<emu_api::PtxModule> module_;
  uint64_t next_ = 0x700000000;
};

std::string findings_text(const emu_api::PtxLaunchResult& result);
// Of how many opcodes at least one instruction was executed by this program, by opcode.
std::map<std::string, uint64_t>& executed_opcodes();

// ---- one instruction

struct Half {
  uint16_t bits;
  operator float() const { return narrow::f16_to_f32(bits); }
};
struct Brain {
  uint16_t bits;
  operator float() const { return narrow::bf16_to_f32(bits); }
};

template <class T>
testing::Type type_of_value() {
  using testing::Kind;
  if constexpr (std::is_same_v<T, float>) return testing::kSingle;
  if constexpr (std::is_same_v<T, double>) return testing::kDouble;
  if constexpr (std::is_same_v<T, Half>) return testing::kHalf;
  return {Kind::Integer, uint32_t(sizeof(T))};
}

inline constexpr uint32_t kThreads = 1024;

// `sources` of kThreads elements each, by their sizes; what the instruction left, of `bytes` each.
std::vector<uint8_t> run_instruction(const std::string& op, uint32_t bytes,
                                     std::vector<std::vector<uint8_t>> sources,
                                     const std::vector<uint32_t>& sizes, const std::string& extra,
                                     uint64_t seed);

template <class T>
T element_at(const std::vector<uint8_t>& bytes, uint32_t k) {
  T out;
  std::memcpy(&out, bytes.data() + k * sizeof(T), sizeof(T));
  return out;
}

// "op d, s0, s1, extra;" leaves f(s0, s1) in each lane: the same bits, or of `nan_alike` types NaN.
template <class D, class... S, class F>
void expect_op(const std::string& op, F f, const std::string& extra = "", bool nan_alike = false) {
  SplitMix64 random(std::hash<std::string>{}(op) | 1);
  const std::vector<std::vector<uint8_t>> sources{
      testing::random_values(type_of_value<S>(), kThreads, random)...};
  const auto out =
      run_instruction(op, sizeof(D), sources, {uint32_t(sizeof(S))...}, extra, random.next());
  ASSERT_EQ(out.size(), kThreads * sizeof(D)) << op;
  for (uint32_t k = 0; k < kThreads; ++k) {
    const D wanted = [&]<size_t... at>(std::index_sequence<at...>) {
      return f(element_at<S>(sources[at], k)...);
    }(std::index_sequence_for<S...>());
    const D got = element_at<D>(out, k);
    if (std::memcmp(&wanted, &got, sizeof(D)) == 0) continue;
    if constexpr (std::is_floating_point_v<D>) {
      if (nan_alike && wanted != wanted && got != got) continue;
    }
    std::string values;
    for (size_t s = 0; s < sizeof...(S); ++s) {
      uint64_t bits = 0;
      const size_t size = std::array{sizeof(S)...}[s];
      std::memcpy(&bits, sources[s].data() + k * size, size);
      values += fmt::format(" {:#x}", bits);
    }
    uint64_t a = 0, b = 0;
    std::memcpy(&a, &got, sizeof got);
    std::memcpy(&b, &wanted, sizeof wanted);
    ADD_FAILURE() << fmt::format("{} of{}: {:#x}, wanted {:#x}", op, values, a, b);
    return;
  }
}

}  // namespace tuff::emu::ptx
