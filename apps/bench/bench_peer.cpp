#include "bench/bench_peer.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/os.h"

namespace tuff::bench {

LibraryPeer::LibraryPeer(std::string name, const std::string& folder, std::vector<std::string> work)
    : name_(std::move(name)), script_(folder + "/peer.py"), work_(std::move(work)) {
  if (!os::exists(script_))
    fail<InvalidArgument>(
        "--peer {}: there is no {}; run from the project's folder or name it with --peers", name_,
        script_);
}

std::vector<double> LibraryPeer::times_ms(double seconds) {
  std::vector<std::string> argv{script_, name_, "--seconds", fmt::format("{}", seconds)};
  argv.insert(argv.end(), work_.begin(), work_.end());
  const os::ProcessResult r = os::Process(argv).wait();
  if (r.exit_code != 0)
    fail<Error>("the peer {} ended with status {}: {}", name_, r.exit_code, r.err);
  try {
    return nlohmann::json::parse(r.out).get<std::vector<double>>();
  } catch (const nlohmann::json::exception& e) {
    fail<Error>("the peer {} gave no list of times: {}", name_, e.what());
  }
}

std::vector<double> in_turns(BenchPeer* peer, double seconds,
                             const std::function<void(double)>& ours) {
  constexpr int kTurns = 4;
  std::vector<double> peer_ms;
  for (int i = 0; i < (peer ? kTurns : 1); i++) {
    ours(peer ? seconds / kTurns : seconds);
    if (!peer) break;
    const std::vector<double> more = peer->times_ms(seconds / kTurns);
    peer_ms.insert(peer_ms.end(), more.begin(), more.end());
  }
  return peer_ms;
}

}  // namespace tuff::bench
