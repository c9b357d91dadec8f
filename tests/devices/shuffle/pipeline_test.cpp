// Two queues in a pipeline: the copy queue loads one of two buffers while the compute queue works
// on the other. Every wait, signal and barrier is deleted once; what errs or hangs without it, in
// any order, the hazard checker has to find.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "base/env.h"
#include "devices/shuffle/shuffled.h"

namespace tuff::devices {
namespace {

constexpr uint64_t kRounds = 5, kSeeds = 200;
constexpr size_t kWords = 90;

struct Part {
  bool copies = false;  // on the copy queue
  CommandList list;
  std::vector<uint64_t> slots;
};

Command accessing(Command c, std::initializer_list<Span> read,
                  std::initializer_list<Span> written) {
  for (const Span& s : read) c.accesses.push_back({s, false});
  for (const Span& s : written) c.accesses.push_back({s, true});
  return c;
}

class Pipeline {
 public:
  explicit Pipeline(size_t buffers) : in_(buffers) {
    for (uint64_t r = 0; r < kRounds; r++) {
      source_.push_back(d_.upload(Words(kWords, uint32_t(100 * (r + 1)))));
      out_.push_back(d_.words(kWords));
    }
    for (Span& s : in_) s = d_.words(kWords);
    middle_ = d_.words(kWords);
    for (uint64_t r = 0; r < kRounds; r++) {
      parts_.push_back(load(r));
      parts_.push_back(work(r));
    }
  }
  const std::vector<Part>& parts() const { return parts_; }

  // The results, or nothing if the device hangs; it is lost then.
  std::vector<Words> run(const std::vector<Part>& parts, uint64_t seed) {
    for (const Span& s : in_) d_.device->upload(s, Words(kWords, 7).data());
    d_.device->upload(middle_, Words(kWords, 7).data());
    for (const Span& s : out_) d_.device->upload(s, Words(kWords, 7).data());
    shuffle_reseed(*d_.device, seed);
    Queue &compute = d_.device->compute_queue(), &copies = *d_.device->copy_queue();
    loaded_base_ = loaded_->value();
    done_base_ = done_->value();
    try {
      for (const Part& p : parts) {
        std::vector<uint64_t> slots = p.slots;
        slots[0] += loaded_base_;
        slots[1] += done_base_;
        Queue& queue = p.copies ? copies : compute;
        queue.submit_once(queue.encode(p.list, EncodeUse::Once), slots);
      }
      compute.wait_idle();
      copies.wait_idle();
    } catch (const DeviceLost&) {
      return {};
    }
    // A round that signals nothing any more leaves the next run behind.
    loaded_->set(std::max(loaded_->value(), loaded_base_ + kRounds));
    done_->set(std::max(done_->value(), done_base_ + kRounds));
    std::vector<Words> out;
    for (const Span& s : out_) out.push_back(d_.read(s));
    return out;
  }
  static Trace trace(const std::vector<Part>& parts) {
    Trace t;
    for (const Part& p : parts) {
      Submission s;
      s.queue = p.copies ? 1 : 0;
      s.list = &p.list;
      s.slots = p.slots;
      t.events.emplace_back(s);
    }
    return t;
  }

 private:
  // Slot 0 is a value of `loaded_`, slot 1 one of `done_`.
  Part load(uint64_t r) {
    // What was loaded as many rounds ago as there are buffers has been worked on.
    Part p{true, {}, {r + 1, r + 1 < in_.size() ? 0 : r + 1 - in_.size()}};
    p.list.slot_count = 2;
    p.list.commands = {
        wait(*done_, 1),
        accessing(copy(in_[r % in_.size()], source_[r]), {source_[r]}, {in_[r % in_.size()]}),
        signal(*loaded_, 0)};
    return p;
  }
  Part work(uint64_t r) {
    Part p{false, {}, {r + 1, r + 1}};
    p.list.slot_count = 2;
    p.list.commands = {wait(*loaded_, 0), kernel(in_[r % in_.size()], middle_, 1), barrier(),
                       kernel(middle_, out_[r], 10), signal(*done_, 1)};
    return p;
  }
  Command kernel(const Span& from, const Span& to, int32_t value) {
    Command c = d_.add(from, to, value);
    return accessing(c, {from, std::get<DispatchCmd>(c.body).args}, {to});
  }

  Shuffled d_{ShuffleOptions{.seed = 0}};
  std::unique_ptr<Signal> loaded_ = d_.device->create_signal(), done_ = d_.device->create_signal();
  uint64_t loaded_base_ = 0, done_base_ = 0;
  std::vector<Span> in_, source_, out_;
  Span middle_;
  std::vector<Part> parts_;
};

std::vector<Words> right() {
  std::vector<Words> out;
  for (uint64_t r = 0; r < kRounds; r++) out.emplace_back(kWords, uint32_t(100 * (r + 1) + 11));
  return out;
}

class ShuffledPipeline : public testing::TestWithParam<size_t> {};

TEST_P(ShuffledPipeline, IsRightInEveryOrder) {
  Pipeline p(GetParam());
  EXPECT_TRUE(check_hazards(Pipeline::trace(p.parts())).clean());
  for (uint64_t seed = 0; seed < 1000; seed++)
    ASSERT_EQ(p.run(p.parts(), seed), right()) << "seed " << seed;
}

struct Deletions {
  int deleted = 0, needed = 0, wrong = 0, hung = 0;
};

// The device as it was told by the checker, over as many seeds as it takes.
void judge(const std::vector<Part>& mutant, Pipeline& p, Deletions& counts, const char* what) {
  const HazardReport report = check_hazards(Pipeline::trace(mutant));
  counts.deleted++;
  counts.needed += !report.clean();
  // What waits for nothing may take as long as the machine is busy.
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, report.stuck.empty() ? "30000" : "40");
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const std::vector<Words> got = p.run(mutant, seed);
    if (got == right()) continue;
    EXPECT_FALSE(report.clean()) << what << ", seed " << seed << ": the checker finds nothing";
    EXPECT_EQ(got.empty(), !report.stuck.empty()) << what;
    (got.empty() ? counts.hung : counts.wrong)++;
    return;
  }
}

TEST_P(ShuffledPipeline, DeletedWaitsSignalsAndBarriersShow) {
  std::map<std::string, Deletions> counts;
  auto p = std::make_unique<Pipeline>(GetParam());
  for (size_t part = 0; part < 2 * kRounds; part++) {
    for (size_t c = 0; c < p->parts()[part].list.commands.size(); c++) {
      const Command& command = p->parts()[part].list.commands[c];
      const bool is_wait = std::holds_alternative<WaitCmd>(command.body),
                 is_signal = std::holds_alternative<SignalCmd>(command.body);
      if (!is_wait && !is_signal && !std::holds_alternative<BarrierCmd>(command.body)) continue;
      std::vector<Part> mutant = p->parts();
      auto& commands = mutant[part].list.commands;
      commands.erase(commands.begin() + std::ptrdiff_t(c));
      Deletions& d = counts[is_wait ? "waits" : is_signal ? "signals" : "barriers"];
      const int hung = d.hung;
      judge(mutant, *p, d, fmt::format("part {} without command {}", part, c).c_str());
      mutant.clear();
      if (d.hung > hung) p = std::make_unique<Pipeline>(GetParam());  // the device is lost
    }
  }
  for (const auto& [what, d] : counts) {
    fmt::print("{} buffers, {}: {} deleted one by one, {} needed, {} give wrong values, {} hang\n",
               GetParam(), what, d.deleted, d.needed, d.wrong, d.hung);
    EXPECT_EQ(d.wrong + d.hung, d.needed) << what;
    EXPECT_GT(d.needed, 0) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Buffers, ShuffledPipeline, testing::Values(1, 2));

}  // namespace
}  // namespace tuff::devices
