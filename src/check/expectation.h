// Expectation: what a GraphCase must give: the reference interpreter's values of every node, and
// for each element how far from it a device may be (graph/op_error.h). Called by the generator,
// which leaves out nodes that nothing can be demanded of, and by whoever compares. Must never know
// devices or schedules.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/interpret.h"
#include "graph/op_error.h"

namespace tuff::check {

class Expectation {
 public:
  // `bindings` must outlive it; storages may be added until a node reads them.
  explicit Expectation(const graph::Bindings& bindings) : values_(bindings) {}

  const graph::HostArray& value(const graph::UOp& u);
  const std::vector<double>& errors(const graph::UOp& u);  // per element, absolute
  graph::IntVec extents(const graph::Shape& s) const { return values_.extents(s); }

  // Elements by how much is demanded of them.
  struct Demand {
    int64_t exact = 0, bounded = 0, unknown = 0;
  };
  Demand demand(const graph::UOp& u);

  // Empty if the elements of `got`, laid out by `shape` at its maximum extents, are those of `u`;
  // else the first that is not, in words.
  std::string difference(const graph::UOp& u, std::span<const std::byte> got);

 private:
  std::vector<double> evaluate(const graph::Node& n);
  std::vector<double> elementwise(const graph::Node& n);
  std::vector<double> reduced(const graph::Node& n);
  const std::vector<double>& source(const graph::Node& n, size_t i) const {
    return errors_.at(n.src(i).get());
  }
  const graph::HostArray& array(const graph::Node& n) { return values_.value(graph::UOp(&n)); }

  graph::Evaluation values_;
  std::unordered_map<const graph::Node*, std::vector<double>> errors_;
};

}  // namespace tuff::check
