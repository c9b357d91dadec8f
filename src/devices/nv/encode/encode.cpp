#include "devices/nv/encode/encode.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/arith.h"
#include "base/check.h"
#include "devices/nv/encode/methods.h"
#include "devices/nv/encode/qmd.h"
#include "hcq/device.h"

namespace tuff::devices::nv {
namespace {

constexpr uint32_t kLaunchAlignment = 256;
constexpr uint64_t kTimestampBytes = 16;
// Below the end of a thread's 16 MiB of the local window, by what the driver's own kernels keep.
constexpr uint32_t kInitialStack = 0xfffdc0;

// Walks a list; what both kinds of channel have in common.
class ChannelEncoder {
 public:
  ChannelEncoder(const EncodeInput& input, const char* kind)
      : in_(input), w_(out_.methods), kind_(kind) {
    TUFF_CHECK(input.timeline != nullptr, "a list without a timeline");
    out_.timeline_slot = input.list.slot_count;
    out_.launch_address = input.list.slot_count + 1;
  }

 protected:
  void put(uint32_t subchannel, uint32_t method, std::initializer_list<Operand> data) {
    w_.unit();
    w_.dword(increasing(subchannel, method, uint32_t(data.size())));
    for (const Operand& o : data) w_.lo(o);
  }
  void semaphore(uint64_t address, const Operand& payload, uint32_t execute) {
    const uint64_t alignment = execute & kSemTimestamp ? kTimestampBytes : 8;
    if (address % alignment || address >> kAddressBits)
      fail<InvalidArgument>("{}: a semaphore at {:#x}", in_.generation.name, address);
    put(kHostSubchannel, method::SEM_ADDR_LO,
        {address, address >> 32, payload, payload.upper_half(), execute});
  }
  template <class Encoder>
  Encoded run(Encoder encode) {
    const std::span<const hcq::Command> commands = in_.list.commands;
    for (size_t i = 0; i < commands.size(); ++i) {
      next_ = i + 1 < commands.size() ? &commands[i + 1] : nullptr;
      std::visit(encode, commands[i].body);
    }
    release(*in_.timeline, Operand::of_slot(out_.timeline_slot));
    put(kHostSubchannel, method::NON_STALL_INTERRUPT, {0});
    return std::move(out_);
  }
  Operand slot(uint32_t value_slot) const {
    if (value_slot >= in_.list.slot_count) {
      fail<InvalidArgument>("{}: value slot {} in a list with {} slots", in_.generation.name,
                            value_slot, in_.list.slot_count);
    }
    return Operand::of_slot(value_slot);
  }
  void wait(const hcq::WaitCmd& c) {
    semaphore(in_.binding.signal_address(*c.signal), slot(c.value_slot),
              kSemAcquireCircularGeq | kSemSwitchTsg | kSemPayload64);
  }
  void release(const hcq::Signal& signal, const Operand& value) {
    semaphore(in_.binding.signal_address(signal), value,
              kSemRelease | kSemReleaseWfi | kSemPayload64);
  }
  void timestamp(const hcq::TimestampCmd& c) {
    if (c.index >= in_.list.timestamp_count) {
      fail<InvalidArgument>("{}: timestamp {} in a list with {}", in_.generation.name, c.index,
                            in_.list.timestamp_count);
    }
    semaphore(in_.timestamps + c.index * kTimestampBytes, 0,
              kSemRelease | kSemReleaseWfi | kSemPayload64 | kSemTimestamp);
  }
  void copy(const hcq::CopyCmd& c) {
    if (c.dst.size_bytes != c.src.size_bytes) {
      fail<InvalidArgument>("copy of {} bytes into {} bytes", c.src.size_bytes, c.dst.size_bytes);
    }
    uint64_t src = c.src.address(), dst = c.dst.address();
    for (uint64_t at = 0; at < c.src.size_bytes;) {
      const uint64_t bytes = std::min<uint64_t>(c.src.size_bytes - at, kCopyMaxBytes);
      put(kCopySubchannel, method::OFFSET_IN_UPPER, {src >> 32, src, dst >> 32, dst});
      put(kCopySubchannel, method::LINE_LENGTH_IN, {bytes});
      put(kCopySubchannel, method::LAUNCH_DMA,
          {kNonPipelined | kFlush | kSourcePitch | kDestinationPitch});
      at += bytes;
      src += bytes;
      dst += bytes;
    }
  }
  [[noreturn]] void unsupported(const char* what) const {
    fail<Unsupported>("{}: {} cannot {}", in_.generation.name, kind_, what);
  }

  bool launch_follows() const {
    return next_ && std::holds_alternative<hcq::DispatchCmd>(next_->body);
  }

  const EncodeInput& in_;
  const hcq::Command* next_ = nullptr;  // behind the one that is encoded
  Encoded out_;
  PacketWriter w_;

 private:
  const char* kind_;
};

class ComputeEncoder : ChannelEncoder {
 public:
  explicit ComputeEncoder(const EncodeInput& input)
      : ChannelEncoder(input, "a compute channel"), launches_(out_.launches) {}
  Encoded run() {
    return ChannelEncoder::run([&](const auto& body) { encode(body); });
  }

 private:
  void encode(const hcq::WaitCmd& c) {
    wait(c);
    code_stale_ = true;
    tail_.reset();
  }
  void encode(const hcq::SignalCmd& c) {
    release(*c.signal, slot(c.value_slot));
    tail_.reset();
  }
  void encode(const hcq::TimestampCmd& c) {
    timestamp(c);
    tail_.reset();
  }
  void encode(const hcq::BarrierCmd&) { idle_owed_ = true; }
  void encode(const hcq::CopyCmd& c) {
    tail_.reset();
    begin_work(Engine::Copy);
    copy(c);
  }
  void encode(const hcq::HostCallCmd&) { unsupported("call the host"); }

  void encode(const hcq::DispatchCmd& c) {
    if (c.indirect) unsupported("launch indirectly; a QMD's grid has to be patched");
    const std::array<Operand, 3> grid{groups_of(c, 0), groups_of(c, 1), groups_of(c, 2)};
    if (std::find(grid.begin(), grid.end(), Operand(0)) != grid.end()) return;
    TUFF_CHECK(c.program != nullptr, "dispatch without a program");
    const bool sized = std::ranges::any_of(grid, [](const Operand& o) { return o.patched(); });
    if (tail_ && idle_owed_ && !sized && !launch_follows()) {
      const uint32_t at = add_launch(c, grid);
      chain(in_.generation, out_.launches, *tail_ / 4, Operand::of_slot(out_.launch_address, at));
      tail_ = at;
      return;  // the host has not waited: what comes later and is not chained owes it that
    }
    const bool alone = begin_work(Engine::Compute);
    if (code_stale_) {
      put(kComputeSubchannel, method::INVALIDATE_SHADER_CACHES_NO_WFI, {kInvalidateInstructions});
    }
    code_stale_ = false;
    const uint32_t at = add_launch(c, grid);
    tail_ = alone && !sized ? std::optional(at) : std::nullopt;
    Operand qmd = Operand::of_slot(out_.launch_address, at);
    qmd.shift = 8;
    for (const Operand& o : grid)
      if (o.patched()) out_.sized.push_back({w_.size(), uint32_t(o.slot)});
    put(kComputeSubchannel, method::SEND_PCAS_A, {qmd});
    put(kComputeSubchannel, method::SEND_SIGNALING_PCAS2_B, {kPcasPrefetchSchedule});
  }

  // A host's WFI waits for the engine that the channel used last, so that no work is left on one
  // when the other is used.
  enum class Engine : uint8_t { None, Compute, Copy };
  // True: nothing is in flight then.
  bool begin_work(Engine engine) {
    const bool idles = idle_owed_ || (last_ != Engine::None && last_ != engine);
    if (idles) put(kHostSubchannel, method::WFI, {kWfiAll});
    idle_owed_ = false;
    last_ = engine;
    return idles;
  }

  // The QMD, then its constant bank; gives the QMD's offset in bytes.
  uint32_t add_launch(const hcq::DispatchCmd& c, const std::array<Operand, 3>& grid) {
    const KernelCode kernel = in_.binding.kernel(*c.program);
    Qmd qmd(in_.generation, kernel);
    const uint32_t at = launches_.size() * 4;
    const uint32_t bank = align_up(at + in_.generation.qmd_dwords * 4, kLaunchAlignment);
    launches_.unit();
    qmd.write(launches_, grid, Operand::of_slot(out_.launch_address, bank));
    pad_to(bank);
    add_bank(kernel, grid);
    pad_to(bank + kernel.parameter_offset);
    launches_.address(c.args ? c.args.address() : 0);
    pad_to(align_up(bank + qmd.bank_bytes(), kLaunchAlignment));
    return at;
  }
  // What the driver owes a kernel before its parameter.
  void add_bank(const KernelCode& kernel, const std::array<Operand, 3>& grid) {
    const BankLayout& at = in_.generation.bank;
    std::map<uint32_t, Operand> words;
    const auto put_word = [&](uint32_t offset, const Operand& o) { words.emplace(offset, o); };
    const auto put_address = [&](uint16_t offset, uint64_t address) {
      if (offset == kNowhere) return;
      put_word(offset, address & 0xffffffffu);
      put_word(offset + 4u, address >> 32);
    };
    for (uint32_t axis = 0; axis < 3; ++axis) {
      put_word(at.block + 4 * axis, kernel.local[axis]);
      put_word(at.grid + 4 * axis, grid[axis]);
    }
    put_address(at.shared_window, kSharedWindow);
    put_address(at.local_window, kLocalWindow);
    put_word(at.stack, kInitialStack);
    const uint32_t bank = launches_.size() * 4;
    for (const auto& [offset, word] : words) {
      TUFF_CHECK(offset + 4 <= kernel.parameter_offset, "a parameter at {} of bank 0",
                 kernel.parameter_offset);
      pad_to(bank + offset);
      launches_.lo(word);
    }
  }
  void pad_to(uint32_t bytes) {
    while (launches_.size() * 4 < bytes) launches_.dword(0);
  }

  PacketWriter launches_;
  // The one launch that is in flight, or the end of the one chain of launches, if so: what a
  // barrier orders behind it is launched by it, and the host need not wait.
  std::optional<uint32_t> tail_;
  Engine last_ = Engine::None;  // that has been used since the list began
  bool idle_owed_ = true;   // earlier work of this channel has to have ended
  bool code_stale_ = true;  // kernels may have been loaded since
};

class CopyEncoder : ChannelEncoder {
 public:
  explicit CopyEncoder(const EncodeInput& input) : ChannelEncoder(input, "a copy channel") {}
  Encoded run() {
    return ChannelEncoder::run([&](const auto& body) { encode(body); });
  }

 private:
  void encode(const hcq::WaitCmd& c) { wait(c); }
  void encode(const hcq::SignalCmd& c) { release(*c.signal, slot(c.value_slot)); }
  void encode(const hcq::TimestampCmd& c) { timestamp(c); }
  void encode(const hcq::BarrierCmd&) {}  // copies that are not pipelined wait for each other
  void encode(const hcq::DispatchCmd&) { unsupported("run kernels"); }
  void encode(const hcq::HostCallCmd&) { unsupported("call the host"); }
  void encode(const hcq::CopyCmd& c) { copy(c); }
};

void put(PacketWriter& w, uint32_t subchannel, uint32_t method,
         std::initializer_list<uint64_t> data) {
  w.unit();
  w.dword(increasing(subchannel, method, uint32_t(data.size())));
  for (uint64_t d : data) w.lo(d);
}

}  // namespace

Encoded encode_compute(const EncodeInput& input) { return ComputeEncoder(input).run(); }
Encoded encode_copy(const EncodeInput& input) { return CopyEncoder(input).run(); }

[[gnu::hot]]
void Encoded::patch_methods(std::span<const uint64_t> values, uint32_t* out) const {
  methods.patch(values, out);
  for (const SizedLaunch& s : sized) out[s.dword] = methods.dwords[s.dword];
  for (const SizedLaunch& s : sized) {
    if (values[s.slot] == 0) out[s.dword] = nothing(kLaunchDwords - 1);
  }
}

PacketStream setup_compute(const Generation& g) {
  PacketStream out;
  PacketWriter w(out);
  put(w, kComputeSubchannel, method::SET_OBJECT, {g.compute_class});
  put(w, kCopySubchannel, method::SET_OBJECT, {g.copy_class});
  put(w, kComputeSubchannel, method::SET_SHADER_SHARED_MEMORY_WINDOW_A,
      {kSharedWindow >> 32, kSharedWindow});
  put(w, kComputeSubchannel, method::SET_SHADER_LOCAL_MEMORY_WINDOW_A,
      {kLocalWindow >> 32, kLocalWindow});
  return out;
}

PacketStream setup_local_memory(uint64_t address, uint64_t bytes_per_tpc) {
  constexpr uint64_t kAllSms = 0xff;
  PacketStream out;
  PacketWriter w(out);
  put(w, kHostSubchannel, method::WFI, {kWfiAll});
  put(w, kComputeSubchannel, method::SET_SHADER_LOCAL_MEMORY_A, {address >> 32, address});
  put(w, kComputeSubchannel, method::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
      {bytes_per_tpc >> 32, bytes_per_tpc, kAllSms});
  return out;
}

void append_release(PacketStream& methods, uint64_t address, uint64_t value) {
  PacketWriter w(methods);
  put(w, kHostSubchannel, method::SEM_ADDR_LO,
      {address, address >> 32, value, value >> 32, kSemRelease | kSemReleaseWfi | kSemPayload64});
}

PacketStream setup_copy(const Generation& g) {
  PacketStream out;
  PacketWriter w(out);
  put(w, kCopySubchannel, method::SET_OBJECT, {g.copy_class});
  return out;
}

uint64_t gpfifo_entry(uint64_t address, uint32_t dwords) {
  constexpr uint64_t kSubroutine = 1ull << 41;
  TUFF_CHECK(address % 4 == 0 && address >> kAddressBits == 0 && dwords > 0 && dwords < 1u << 21,
             "pushbuffer of {} dwords at {:#x}", dwords, address);
  return address | kSubroutine | uint64_t(dwords) << 42;
}

}  // namespace tuff::devices::nv
