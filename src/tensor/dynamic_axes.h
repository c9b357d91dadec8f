// DynamicAxes: the axes of a Jit's arguments that vary, as variables with the values of one call.
// Used by Jit alone. Must never know graphs of commands.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tuff/jit.h>
#include "ir/scalar_eval.h"
#include "ir/uop.h"

namespace tuff {

class DynamicAxes {
 public:
  // InvalidArgument as Jit's constructor.
  explicit DynamicAxes(std::vector<DynamicAxis> axes);
  bool any() const { return !axes_.empty(); }
  // Takes the values from the arguments' extents. InvalidArgument naming argument, axis, extent and
  // bounds, or both axes of a name that differ; the values are then those of the call before.
  void read(const std::vector<Tensor>& arguments);
  // The shape of an argument, with variables where its extents vary.
  ir::Shape shape(size_t argument, const ir::Shape& given) const;
  bool varies(size_t argument, size_t axis) const;
  // The extents of a symbolic shape in this call.
  ir::Shape extents(const ir::Shape& symbolic) const;

  const std::vector<ir::UOp>& variables() const { return variables_; }
  std::span<const int64_t> values() const { return values_; }
  const ir::VariableValues& by_name() const { return by_name_; }

 private:
  size_t variable_of(const std::string& name) const;
  int64_t axis_of(const DynamicAxis& a, const std::vector<Tensor>& arguments) const;
  std::vector<DynamicAxis> axes_;  // axis counted from the front once the first call has been read
  std::vector<ir::UOp> variables_;
  std::vector<int64_t> values_, read_;  // by variable; read_ while the arguments are looked at
  std::vector<const DynamicAxis*> of_;  // the axis that gave the value, by variable
  ir::VariableValues by_name_;
};

}  // namespace tuff
