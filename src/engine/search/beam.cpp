#include "engine/search/beam.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "engine/search/trial.h"
#include "kernel/pipeline.h"

namespace tuff::engine {

using kernel::Opts;

namespace {

struct Candidate {
  Opts opts;
  double ns = INFINITY;
};

class Search {
 public:
  Search(const ir::UOp& ast, hcq::Device& device, const BeamOptions& o,
         const CompileSources& compile)
      : ast_(ast),
        tiled_(kernel::ast_for_opts(ast, device.target())),
        device_(device),
        target_(device.target()),
        options_(o),
        compile_(compile),
        trial_(device, kernel::lower_with(ast, target_, {})),
        begin_ns_(os::monotonic_ns()) {}

  std::optional<BeamResult> run() {
    kernel::Tiling heuristic(tiled_, target_);
    kernel::apply_heuristics(heuristic, tiled_, target_);
    heuristic_ = heuristic.applied;
    if (!trial_.is_possible() || !set_reference()) return {};
    std::vector<Opts> first{heuristic_, {}};
    if (first[0] == first[1]) first.pop_back();
    for (const Opts& o : first) seen_.insert(to_string(o));
    std::vector<Candidate> beam = measure(first);
    begin_ns_ = os::monotonic_ns();  // what candidates are compared with is no part of it
    if (beam.empty() || !std::isfinite(beam[0].ns)) return {};
    BeamResult result;
    result.heuristic_ns = INFINITY;
    for (const Candidate& c : beam)
      if (c.opts == heuristic_) result.heuristic_ns = c.ns;
    beam = best_of(std::move(beam));
    while (!is_over()) {
      const double before = beam[0].ns;
      beam = next(beam);
      if (beam[0].ns > before * (1 - options_.gain)) break;
    }
    settle(beam, heuristic_, result);
    result.candidates = measured_;
    result.seconds = seconds();
    return result;
  }

 private:
  bool is_over() const { return os::interrupted() || seconds() >= options_.seconds; }
  double seconds() const { return double(os::monotonic_ns() - begin_ns_) / 1e9; }

  // The best of the beam and of all their neighbours that were not looked at before.
  std::vector<Candidate> next(const std::vector<Candidate>& beam) {
    std::vector<Opts> fresh;
    for (const Candidate& c : beam)
      for (Opts& o : kernel::neighbours(tiled_, target_, c.opts, most_lanes()))
        if (seen_.insert(to_string(o)).second) fresh.push_back(std::move(o));
    std::vector<Candidate> all = beam;
    for (size_t i = 0, n = 0; i < fresh.size() && !is_over(); i += n) {
      n = std::min(affordable(), fresh.size() - i);
      const std::vector<Candidate> more =
          measure({fresh.begin() + std::ptrdiff_t(i), fresh.begin() + std::ptrdiff_t(i + n)});
      all.insert(all.end(), more.begin(), more.end());
    }
    return best_of(std::move(all));
  }
  // How many candidates the time left is enough for, by what they took so far.
  size_t affordable() const {
    if (made_ == 0) return options_.candidates;
    const double left = (options_.seconds - seconds()) * double(made_) / seconds();
    return size_t(std::clamp(left, 1.0, double(options_.candidates)));
  }
  std::vector<Candidate> best_of(std::vector<Candidate> all) const {
    std::ranges::stable_sort(all, {}, &Candidate::ns);
    if (all.size() > options_.width) all.resize(options_.width);
    return all;
  }
  // More lanes than this are spilled to memory over and over.
  int64_t most_lanes() const {
    const int64_t registers =
        target_.has_local ? 64 : int64_t(target_.vector_registers) * target_.vector_bytes / 4;
    return 2 * registers;
  }

  // The kernel with some opts, ready to run.
  struct Version {
    Opts opts;
    kernel::LinearKernel kernel;
    std::unique_ptr<hcq::Program> program;
  };
  // Compiled together; without those that a pass finds impossible, and serial ones.
  std::vector<Version> make(const std::vector<Opts>& opts) {
    std::vector<Version> out;
    std::vector<render::Source> sources;
    for (const Opts& o : opts) {
      try {
        out.push_back({o, kernel::lower_with(ast_, target_, o), nullptr});
      } catch (const Error&) {
        continue;
      }
      if (o != heuristic_ && is_serial(out.back().kernel)) {
        out.pop_back();
        continue;
      }
      sources.push_back(render::renderer_of(target_).render(out.back().kernel, target_));
    }
    std::vector<std::unique_ptr<hcq::Program>> programs = device_.load(compile_(sources));
    for (size_t i = 0; i < out.size(); i++) out[i].program = std::move(programs[i]);
    return out;
  }

  // The fastest first. What cannot be compiled together is left out whole.
  std::vector<Candidate> measure(const std::vector<Opts>& opts) {
    std::vector<Version> versions;
    made_ += opts.size();
    try {
      versions = make(opts);
    } catch (const Error& e) {
      TUFF_DEBUG_LINE(2, "beam: {}", e.what());
    }
    std::vector<Candidate> out;
    for (const Version& v : versions) {
      // However short the time is, something has been measured at its end.
      if (os::interrupted() || (is_over() && std::isfinite(fastest_ns_))) break;
      out.push_back({v.opts, time(v)});
    }
    std::ranges::stable_sort(out, {}, &Candidate::ns);
    return out;
  }
  double time(const Version& v) {
    measured_++;
    const double ns = trial_.time(*v.program, v.kernel, 3 * fastest_ns_);
    if (ns >= fastest_ns_) return ns;
    if (trial_.is_right()) return fastest_ns_ = ns;
    TUFF_DEBUG_LINE(1, "beam: {} with {} stores something else than without", v.kernel.name,
                    v.kernel.opts);
    return INFINITY;
  }

  // What would take a GPU seconds or longer. Workgroups of one lane, which a kernel without opts
  // has, get so little done (1024 of a product more than 4 s on an H200, 2048 more than 30 s), and
  // so do invocations with most of the work each.
  bool is_serial(const kernel::LinearKernel& k) const {
    constexpr double kMostOfOne = 1 << 20, kMostAlone = 1 << 29;  // operations and bytes
    const double lanes = double(k.local[0]) * k.local[1] * k.local[2];
    double invocations = lanes;
    for (const ir::Dim& d : k.groups) invocations *= double(d.value());
    const double work = double(k.estimate.flops) + double(k.estimate.bytes);
    const bool alone = 2 * lanes < target_.subgroup_size;
    return target_.has_local && (work > kMostOfOne * invocations || (alone && work > kMostAlone));
  }
  // What results are compared with: as little as possible is changed, but a GPU has workgroups of
  // neighbours.
  Opts plain_opts() const {
    kernel::Tiling t(tiled_, target_);
    if (!target_.has_local) return {};
    int outputs = 0;  // they come first
    while (size_t(outputs) < t.axes.size() && !t.axes[size_t(outputs)].reduced) outputs++;
    for (int64_t n = 256; outputs && n > 1; n /= 2)
      if (try_apply(t, {kernel::OptKind::Local, outputs - 1, n})) break;
    for (int a = 0; a < outputs; a++) try_apply(t, {kernel::OptKind::Group, a, 0});
    return t.applied;
  }
  bool set_reference() {
    try {
      const std::vector<Version> plain = make({plain_opts()});
      return !plain.empty() && trial_.set_reference(*plain[0].program, plain[0].kernel);
    } catch (const Error& e) {
      TUFF_DEBUG_LINE(1, "beam: {}", e.what());
      return false;
    }
  }

  // The winner has to win again, in turns with the heuristics' kernel.
  void settle(const std::vector<Candidate>& beam, const Opts& heuristic, BeamResult& result) {
    constexpr size_t kRounds = 5;
    result.opts = beam[0].opts;
    result.ns = beam[0].ns;
    // Where the heuristics' kernel was not right there is nothing to compare with.
    if (result.opts == heuristic || !std::isfinite(result.heuristic_ns)) return;
    const std::vector<Version> both = make({result.opts, heuristic});
    double ns[2] = {INFINITY, INFINITY};
    for (size_t i = 0; i < 2 * kRounds; i++) {
      const Version& v = both[i % 2];
      ns[i % 2] = std::min(ns[i % 2], trial_.time(*v.program, v.kernel, INFINITY));
    }
    result.ns = ns[0];
    result.heuristic_ns = ns[1];
    if (ns[0] < ns[1]) return;
    result.opts = heuristic;
    result.ns = ns[1];
  }

  const ir::UOp ast_, tiled_;
  hcq::Device& device_;
  const Target& target_;
  const BeamOptions options_;
  const CompileSources& compile_;
  Trial trial_;
  uint64_t begin_ns_;
  Opts heuristic_;
  std::set<std::string> seen_;
  double fastest_ns_ = INFINITY;
  uint32_t measured_ = 0;
  size_t made_ = 0;  // candidates so far, measured or not
};

}  // namespace

BeamOptions BeamOptions::of_environment() {
  return {.width = uint32_t(env_int(Env::TUFF_BEAM))};
}

std::optional<BeamResult> beam_search(const ir::UOp& ast, hcq::Device& device,
                                      const BeamOptions& options, const CompileSources& compile) {
  return Search(ast, device, options, compile).run();
}

}  // namespace tuff::engine
