// Expectation: what a GraphCase must give: the reference interpreter's values of every node, and
// for each element how far from it a device may be (ir/op_error.h). Called by the generator,
// which leaves out nodes that nothing can be demanded of, and by comparisons. Must never know
// devices or schedules.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/interpret.h"
#include "ir/op_error.h"

namespace tuff::check {

class Expectation {
 public:
  // `bindings` must outlive it; storages may be added until a node reads them.
  explicit Expectation(const ir::Bindings& bindings) : bindings_(bindings), values_(bindings) {}

  const ir::HostArray& value(const ir::UOp& u);
  const std::vector<double>& errors(const ir::UOp& u);  // per element, absolute
  ir::IntVec extents(const ir::Shape& s) const { return values_.extents(s); }

  // Empty if the elements of `got`, laid out by `shape` at its maximum extents, are those of `u`;
  // else the first that is not, in words.
  std::string difference(const ir::UOp& u, std::span<const std::byte> got);

 private:
  std::vector<double> evaluate(const ir::Node& n);
  std::vector<double> scattered(const ir::Node& n);
  std::vector<double> looped(const ir::Node& n);
  std::vector<double> assigned(const ir::Node& n);
  std::vector<double> elementwise(const ir::Node& n);
  std::vector<double> reduced(const ir::Node& n);
  const std::vector<double>& source(const ir::Node& n, size_t i) const {
    return errors_.at(n.src(i).get());
  }
  const ir::HostArray& array(const ir::Node& n) { return values_.value(ir::UOp(&n)); }

  const ir::Bindings& bindings_;
  ir::Evaluation values_;
  std::unordered_map<const ir::Node*, std::vector<double>> errors_;
};

}  // namespace tuff::check
