#include "tensor/dynamic_axes.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

std::string text(const DynamicAxis& a) {
  return fmt::format("axis {} of argument {}", a.axis, a.argument);
}

void require_bounds(const DynamicAxis& a) {
  if (a.name.empty()) fail<InvalidArgument>("Jit: {} varies and has no name", text(a));
  if (a.min < 1 || a.max < a.min)
    fail<InvalidArgument>("Jit: {} ({}) varies in {}..{}: 1 <= min <= max is needed", text(a),
                          a.name, a.min, a.max);
}

}  // namespace

DynamicAxes::DynamicAxes(std::vector<DynamicAxis> axes) : axes_(std::move(axes)) {
  for (const DynamicAxis& a : axes_) {
    require_bounds(a);
    const ir::UOp v = ir::variable(a.name, a.min, a.max);
    const size_t i = variable_of(a.name);
    if (i == variables_.size()) {
      variables_.push_back(v);
    } else if (!(variables_[i] == v)) {
      const auto& known = variables_[i]->get<ir::VariableArg>();
      fail<InvalidArgument>("Jit: {} is in {}..{} and, at {}, in {}..{}", a.name, known.min,
                            known.max, text(a), a.min, a.max);
    }
  }
  values_.resize(variables_.size());
  read_.resize(variables_.size());
  of_.resize(variables_.size());
}

size_t DynamicAxes::variable_of(const std::string& name) const {
  const auto it = std::find_if(variables_.begin(), variables_.end(), [&](const ir::UOp& v) {
    return v->get<ir::VariableArg>().name == name;
  });
  return size_t(it - variables_.begin());
}

int64_t DynamicAxes::axis_of(const DynamicAxis& a, const std::vector<Tensor>& arguments) const {
  if (a.argument >= arguments.size())
    fail<InvalidArgument>("Jit: {} varies ({}), but {} arguments are given", text(a), a.name,
                          arguments.size());
  const int64_t rank = arguments[a.argument].dim();
  const int64_t axis = a.axis < 0 ? a.axis + rank : a.axis;
  if (axis < 0 || axis >= rank)
    fail<InvalidArgument>("Jit: {} varies ({}), but the argument has {} axes", text(a), a.name,
                          rank);
  return axis;
}

void DynamicAxes::read(const std::vector<Tensor>& arguments) {
  std::fill(of_.begin(), of_.end(), nullptr);
  for (DynamicAxis& a : axes_) {
    a.axis = axis_of(a, arguments);
    const int64_t n = detail::size_of(detail::uop(arguments[a.argument])->shape[size_t(a.axis)]);
    if (n < a.min || n > a.max)
      fail<InvalidArgument>("Jit: {} is {}, outside {} in {}..{}", text(a), n, a.name, a.min,
                            a.max);
    const size_t v = variable_of(a.name);
    if (of_[v] && read_[v] != n)
      fail<InvalidArgument>("Jit: {} is {} ({}) and {} ({})", a.name, read_[v], text(*of_[v]), n,
                            text(a));
    of_[v] = &a;
    read_[v] = n;
  }
  values_ = read_;
  for (size_t i = 0; i < values_.size(); i++)
    by_name_[variables_[i]->get<ir::VariableArg>().name] = values_[i];
}

bool DynamicAxes::varies(size_t argument, size_t axis) const {
  return std::any_of(axes_.begin(), axes_.end(), [&](const DynamicAxis& a) {
    return a.argument == argument && a.axis == int64_t(axis);
  });
}

ir::Shape DynamicAxes::shape(size_t argument, const ir::Shape& given) const {
  ir::Shape out = given;
  for (const DynamicAxis& a : axes_) {
    // What has one value is a number, as it is everywhere else: shapes are compared.
    if (a.argument == argument && a.min < a.max)
      out[size_t(a.axis)] = ir::Dim(variables_[variable_of(a.name)]);
  }
  return out;
}

ir::Shape DynamicAxes::extents(const ir::Shape& symbolic) const {
  ir::Shape out;
  for (const ir::Dim& d : symbolic)
    out.push_back(d.is_const() ? d : ir::Dim(ir::evaluate_index(d.uop(), by_name_)));
  return out;
}

}  // namespace tuff
