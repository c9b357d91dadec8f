#include "onnx/trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"

namespace tuff::onnx {
namespace {

constexpr int64_t kMostLevels = 1024;  // each is a comparison in the graph
constexpr int64_t kMostTargets = int64_t{1} << 24;
constexpr std::array kModes{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",   "BRANCH_GT",
                            "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};

// A node as the attributes have it. `yes` and `no` are places in the ensemble.
struct Branch {
  int64_t feature = 0, yes = 0, no = 0;
  int64_t mode = 0;  // of kModes
  double threshold = 0;
  bool missing_is_yes = false;
};

void add_leaf(Ensemble& e) {
  const auto self = int32_t(e.count());
  e.feature.push_back(0), e.yes.push_back(self), e.no.push_back(self);
  e.kind.push_back(Split::AtMost), e.nan_is_yes.push_back(false), e.threshold.push_back(0);
  e.set.push_back(0), e.is_leaf.push_back(true);
}

// NaN is at no side of a comparison, and differs from all: so it goes where the comparison is
// false, and with != where it is true, unless the node says that missing values are true.
void add_branch(Ensemble& e, const Branch& b) {
  static constexpr std::array kKinds{Split::AtMost, Split::Less,  Split::Less,  Split::AtMost,
                                     Split::Equal,  Split::Equal, Split::Member};
  static constexpr std::array kExchanged{false, false, true, true, false, true, false};
  const bool exchanged = kExchanged[size_t(b.mode)];
  const bool missing_is_true = b.missing_is_yes || b.mode == 5;
  const auto place = e.count();
  if (b.feature < 0 || b.feature > std::numeric_limits<int32_t>::max())
    fail<InvalidArgument>("the tree node {} compares feature {}", place, b.feature);
  e.feature.push_back(int32_t(b.feature));
  e.yes.push_back(int32_t(exchanged ? b.no : b.yes));
  e.no.push_back(int32_t(exchanged ? b.yes : b.no));
  e.kind.push_back(kKinds[size_t(b.mode)]);
  e.nan_is_yes.push_back(missing_is_true != exchanged);
  e.threshold.push_back(b.threshold);
  e.set.push_back(0), e.is_leaf.push_back(false);
}

void require_lengths(const std::vector<std::pair<std::string, size_t>>& lengths) {
  for (const auto& [name, length] : lengths)
    if (length != lengths[0].second)
      fail<InvalidArgument>("the attributes {} and {} have {} and {} elements: one for each is "
                            "wanted", lengths[0].first, name, lengths[0].second, length);
  if (lengths[0].second > size_t(std::numeric_limits<int32_t>::max()) / 2)
    fail<InvalidArgument>("{} has {} elements", lengths[0].first, lengths[0].second);
}

// The longest way from each node, leaves first; InvalidArgument for one that comes back.
int64_t levels_of(const Ensemble& e) {
  enum : int32_t { kNew = -1, kOpen = -2 };
  std::vector<int32_t> levels(size_t(e.count()), kNew);
  std::vector<int32_t> stack = e.roots;
  while (!stack.empty()) {
    const int32_t n = stack.back();
    int32_t& own = levels[size_t(n)];
    const int32_t next[2] = {e.yes[size_t(n)], e.no[size_t(n)]};
    if (e.is_leaf[size_t(n)]) own = 0;
    if (own >= 0) {
      stack.pop_back();
      continue;
    }
    if (own == kNew) {
      own = kOpen;
      for (const int32_t c : next) {
        if (levels[size_t(c)] == kOpen)
          fail<InvalidArgument>("the tree node {} is below itself: its branches make a circle", c);
        stack.push_back(c);
      }
      continue;
    }
    own = 1 + std::max(levels[size_t(next[0])], levels[size_t(next[1])]);
    if (own > kMostLevels)
      fail<Unsupported>("a tree has more than {} levels below its root", kMostLevels);
    stack.pop_back();
  }
  int64_t most = 0;
  for (const int32_t r : e.roots) most = std::max<int64_t>(most, levels[size_t(r)]);
  return most;
}

void finish(Ensemble& e) {
  if (e.roots.empty()) fail<InvalidArgument>("there are no trees");
  if (e.targets < 1 || e.targets > kMostTargets)
    fail<InvalidArgument>("{} targets or classes: 1 to {} are possible", e.targets, kMostTargets);
  for (const Vote& v : e.votes)
    if (v.target < 0 || v.target >= e.targets)
      fail<InvalidArgument>("the tree node {} has a weight for target {} of {}", v.node, v.target,
                            e.targets);
  e.levels = levels_of(e);
}

// ---- nodes that are known by a tree's number and their own

using Id = std::pair<int64_t, int64_t>;

// The attributes that name a node.
struct Ids {
  std::vector<int64_t> trees, nodes;
  std::map<Id, int64_t> places;

  explicit Ids(const Node& node)
      : trees(node.integers("nodes_treeids")), nodes(node.integers("nodes_nodeids")) {
    require_lengths({{"nodes_nodeids", nodes.size()}, {"nodes_treeids", trees.size()}});
    for (size_t i = 0; i < nodes.size(); i++)
      if (!places.emplace(Id(trees[i], nodes[i]), i).second)
        fail<InvalidArgument>("the tree {} has two nodes {}", trees[i], nodes[i]);
  }
  int64_t place(int64_t tree, int64_t id, const char* what) const {
    const auto found = places.find(Id(tree, id));
    if (found == places.end())
      fail<InvalidArgument>("{} names node {} of tree {}, which there is not", what, id, tree);
    return found->second;
  }
};

int64_t mode_of(const std::string& name) {
  const auto found = std::ranges::find_if(kModes, [&](const char* m) { return name == m; });
  if (found == kModes.end() - 1 || found == kModes.end())
    fail<InvalidArgument>("the mode '{}' of a tree node is none of BRANCH_LEQ, BRANCH_LT, "
                          "BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ and LEAF", name);
  return found - kModes.begin();
}

void add_votes(const Node& node, const Ids& ids, const std::string& kind, Ensemble& e) {
  const auto trees = node.integers(kind + "_treeids"), nodes = node.integers(kind + "_nodeids"),
             targets = node.integers(kind + "_ids");
  const HostNumbers weights = numbers_or_tensor(node, kind + "_weights");
  require_lengths({{kind + "_nodeids", nodes.size()},
                   {kind + "_treeids", trees.size()},
                   {kind + "_ids", targets.size()},
                   {kind + "_weights", weights.floats.size()}});
  if (weights.dtype == DType::F64) e.dtype = DType::F64;
  for (size_t i = 0; i < nodes.size(); i++) {
    const int64_t place = ids.place(trees[i], nodes[i], (kind + "_nodeids").c_str());
    if (targets[i] < 0 || targets[i] > kMostTargets)
      fail<InvalidArgument>("{}_ids names {}", kind, targets[i]);
    e.votes.push_back({int32_t(place), int32_t(targets[i]), weights.floats[i]});
  }
}

// ---- sets of members

// NaN stands behind each set.
void add_sets(const HostNumbers& members, const std::vector<int64_t>& modes, Ensemble& e) {
  e.sets.emplace_back();
  for (const double m : members.floats) {
    if (std::isnan(m))
      e.sets.emplace_back();
    else
      e.sets.back().push_back(m);
  }
  if (e.sets.back().empty()) e.sets.pop_back();
  int32_t next = 0;
  for (size_t i = 0; i < modes.size(); i++)
    if (e.kind[i] == Split::Member) e.set[i] = next++;
  if (next != int32_t(e.sets.size()))
    fail<InvalidArgument>("membership_values has {} sets, {} nodes ask for one", e.sets.size(),
                          next);
}

// A branch of TreeEnsemble: leaves are numbered behind the nodes.
int64_t place_of(int64_t number, bool is_leaf, int64_t nodes, int64_t leaves, size_t of) {
  if (number < 0 || number >= (is_leaf ? leaves : nodes))
    fail<InvalidArgument>("the tree node {} names {} {} of {}", of, is_leaf ? "leaf" : "node",
                          number, is_leaf ? leaves : nodes);
  return is_leaf ? nodes + number : number;
}

}  // namespace

HostNumbers numbers_or_tensor(const Node& node, const std::string& name) {
  if (node.has(name + "_as_tensor")) {
    HostNumbers out = node.constant(name + "_as_tensor").numbers();
    if (!out.is_float()) fail<InvalidArgument>("{}_as_tensor does not hold floats", name);
    return out;
  }
  HostNumbers out{.dtype = DType::F32, .shape = {}, .ints = {}, .floats = node.numbers(name)};
  out.shape = {out.count()};
  return out;
}

Ensemble ensemble_of_ids(const Node& node, const std::string& votes, int64_t targets) {
  const Ids ids(node);
  const auto features = node.integers("nodes_featureids"), yes = node.integers("nodes_truenodeids"),
             no = node.integers("nodes_falsenodeids"),
             missing = node.integers("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = node.texts("nodes_modes");
  const HostNumbers values = numbers_or_tensor(node, "nodes_values");
  require_lengths({{"nodes_nodeids", ids.nodes.size()},
                   {"nodes_featureids", features.size()},
                   {"nodes_modes", modes.size()},
                   {"nodes_truenodeids", yes.size()},
                   {"nodes_falsenodeids", no.size()},
                   {"nodes_values", values.floats.size()},
                   {"nodes_missing_value_tracks_true",
                    missing.empty() ? ids.nodes.size() : missing.size()}});
  Ensemble e;
  e.targets = targets;
  e.dtype = values.dtype;
  std::map<int64_t, bool> seen;
  for (size_t i = 0; i < modes.size(); i++) {
    if (seen.emplace(ids.trees[i], true).second) e.roots.push_back(int32_t(i));
    if (modes[i] == "LEAF") {
      add_leaf(e);
      continue;
    }
    const int64_t tree = ids.trees[i];
    add_branch(e, {features[i], ids.place(tree, yes[i], "nodes_truenodeids"),
                   ids.place(tree, no[i], "nodes_falsenodeids"), mode_of(modes[i]),
                   values.floats[i], !missing.empty() && missing[i] != 0});
  }
  add_votes(node, ids, votes, e);
  finish(e);
  return e;
}

Ensemble ensemble_of_places(const Node& node) {
  const auto features = node.integers("nodes_featureids"), yes = node.integers("nodes_truenodeids"),
             no = node.integers("nodes_falsenodeids"), yes_leaf = node.integers("nodes_trueleafs"),
             no_leaf = node.integers("nodes_falseleafs"),
             missing = node.integers("nodes_missing_value_tracks_true"),
             targets = node.integers("leaf_targetids"), roots = node.integers("tree_roots");
  const HostNumbers splits = node.constant("nodes_splits").numbers(),
                    modes = node.constant("nodes_modes").numbers(),
                    weights = node.constant("leaf_weights").numbers();
  const auto nodes = int64_t(features.size()), leaves = int64_t(targets.size());
  require_lengths({{"nodes_featureids", features.size()},
                   {"nodes_modes", modes.ints.size()},
                   {"nodes_splits", splits.floats.size()},
                   {"nodes_truenodeids", yes.size()},
                   {"nodes_falsenodeids", no.size()},
                   {"nodes_trueleafs", yes_leaf.size()},
                   {"nodes_falseleafs", no_leaf.size()},
                   {"nodes_missing_value_tracks_true",
                    missing.empty() ? features.size() : missing.size()}});
  require_lengths({{"leaf_targetids", targets.size()}, {"leaf_weights", weights.floats.size()}});
  Ensemble e;
  e.targets = node.integer("n_targets", 1);
  e.dtype = splits.dtype;
  std::vector<int64_t> kinds;
  for (size_t i = 0; i < features.size(); i++) {
    kinds.push_back(int64_t(modes.ints[i]));
    if (kinds.back() < 0 || kinds.back() >= int64_t(kModes.size()))
      fail<InvalidArgument>("the tree node {} has the mode {}", i, kinds.back());
    add_branch(e, {features[i], place_of(yes[i], yes_leaf[i] != 0, nodes, leaves, i),
                   place_of(no[i], no_leaf[i] != 0, nodes, leaves, i), kinds.back(),
                   splits.floats[i], !missing.empty() && missing[i] != 0});
  }
  if (node.has("membership_values"))
    add_sets(node.constant("membership_values").numbers(), kinds, e);
  else if (std::ranges::find(e.kind, Split::Member) != e.kind.end())
    fail<InvalidArgument>("a tree node asks for a set, and there are no membership_values");
  for (size_t i = 0; i < targets.size(); i++) {
    if (targets[i] < 0 || targets[i] > kMostTargets)
      fail<InvalidArgument>("leaf_targetids names {}", targets[i]);
    e.votes.push_back({int32_t(e.count()), int32_t(targets[i]), weights.floats[i]});
    add_leaf(e);
  }
  for (const int64_t r : roots) {
    if (r < 0 || r >= nodes) fail<InvalidArgument>("tree_roots names node {} of {}", r, nodes);
    e.roots.push_back(int32_t(r));
  }
  finish(e);
  return e;
}

}  // namespace tuff::onnx
