#include "check/graph_check.h"

#include "check/expectation.h"
#include "ir/walk.h"

namespace tuff::check {

using namespace ir;

namespace {

// The last version of every Storage that is assigned to: the one no other is made of.
std::map<uint64_t, UOp> last_versions(const GraphCase& c) {
  std::map<uint64_t, UOp> last;
  for (const Node* n : toposort(c.sinks)) {
    if (n->op == Op::Assign) last[storage_id(n)] = UOp(n);
  }
  return last;
}

}  // namespace

std::string difference(const GraphCase& c, const RunOutput& got) {
  const Bindings bindings = bindings_of(c);
  Expectation want(bindings);
  for (size_t i = 0; i < c.sinks.size(); i++) {
    const std::string d = want.difference(c.sinks[i], got.sinks.at(i));
    if (!d.empty()) return fmt::format("sink {}: {}", i, d);
  }
  const std::map<uint64_t, UOp> last = last_versions(c);
  size_t number = 0;
  for (const GraphInput& in : c.inputs) {
    const auto bytes = got.storages.find(in.storage->id);
    const auto version = last.find(in.storage->id);
    const std::string what = fmt::format("buffer {}", number++);
    if (bytes == got.storages.end()) continue;
    if (version != last.end()) {
      const std::string d = want.difference(version->second, bytes->second);
      if (!d.empty()) return fmt::format("{} after its assign: {}", what, d);
    } else if (bytes->second != in.bytes) {
      return fmt::format("{} was overwritten", what);
    }
  }
  return {};
}

}  // namespace tuff::check
