// A peer of `tuff bench`: another program or library that does the same work, timed in turns with ours. Called by
// kernel_bench and train_bench, which must never know which.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tuff::bench {

class BenchPeer {
 public:
  virtual ~BenchPeer() = default;
  // Times the work for about so long, after a warm-up of its own: milliseconds of every run. Throws
  // Error saying why if it cannot do it.
  virtual std::vector<double> times_ms(double seconds) = 0;
  // What is wrong with its result, as far as that can be known here; empty if nothing is.
  virtual std::string wrong() { return {}; }
};

// Another library, in a process of its own.
class LibraryPeer final : public BenchPeer {
 public:
  // `name` is what bench/peers/peer.py calls it; `work` are its further arguments. InvalidArgument
  // if there is no such script below `folder`.
  LibraryPeer(std::string name, const std::string& folder, std::vector<std::string> work);
  std::vector<double> times_ms(double seconds) override;

 private:
  std::string name_, script_;
  std::vector<std::string> work_;
};

// Runs `ours` for about so many seconds and, with a peer, the two in turns; the peer's times.
std::vector<double> in_turns(BenchPeer* peer, double seconds,
                             const std::function<void(double)>& ours);

}  // namespace tuff::bench
