// A peer of `tuff bench`: another library that does the same work in a process of its own, timed in
// turns with ours. Called by kernel_bench and train_bench. Must never know what the work is.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tuff::cli {

class BenchPeer {
 public:
  // `name` is what bench/peers/peer.py calls it; `work` are its further arguments. InvalidArgument
  // if there is no such script below `folder`.
  BenchPeer(std::string name, const std::string& folder, std::vector<std::string> work);
  const std::string& name() const { return name_; }
  // Times the work for about so long, after a warm-up of its own: milliseconds of every run. Throws
  // Error with what the peer said if it cannot do it.
  std::vector<double> times_ms(double seconds) const;

 private:
  std::string name_, script_;
  std::vector<std::string> work_;
};

// Runs `ours` for about so many seconds and, with a peer, the two in turns; the peer's times.
std::vector<double> in_turns(const BenchPeer* peer, double seconds,
                             const std::function<void(double)>& ours);

}  // namespace tuff::cli
