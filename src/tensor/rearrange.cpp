// Axes by names, and positions by strides.
#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::self;
using detail::text;

namespace {

constexpr std::string_view kRest = "...";

// One side of a pattern: groups of names, each an axis of the tensor. A name without parentheses is
// a group of its own, "1" one without names.
struct Group {
  std::vector<std::string> names;
  bool parentheses = false;
  bool is_rest() const { return !parentheses && names.size() == 1 && names[0] == kRest; }
};
using Groups = std::vector<Group>;

class Side {
 public:
  Side(std::string_view pattern, std::string_view side) : pattern_(pattern), left_(side) {
    while (skip_spaces(), !left_.empty()) take_group();
  }
  const Groups& groups() const { return groups_; }
  // In order, each once.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Group& g : groups_) all.insert(all.end(), g.names.begin(), g.names.end());
    return all;
  }
  bool has_rest() const { return std::ranges::count(names(), kRest) > 0; }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail<InvalidArgument>("rearrange: \"{}\": {}", pattern_, why);
  }
  void skip_spaces() {
    while (left_.starts_with(' ')) left_.remove_prefix(1);
  }
  void take_group() {
    if (!left_.starts_with('(')) {
      const std::string name = take_name();
      groups_.push_back(name == "1" ? Group{} : Group{{name}});
      return;
    }
    left_.remove_prefix(1);
    groups_.push_back({{}, true});
    while (skip_spaces(), !left_.starts_with(')')) {
      if (left_.empty()) refuse("a parenthesis is not closed");
      if (left_.starts_with('(')) refuse("parentheses inside of others");
      const std::string name = take_name();
      if (name != "1") groups_.back().names.push_back(name);
    }
    left_.remove_prefix(1);
  }
  std::string take_name() {
    const auto word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    size_t n = 0;
    if (left_.starts_with(kRest)) n = kRest.size();
    while (n < left_.size() && word(left_[n])) n++;
    const std::string name(left_.substr(0, n));
    const bool number = n > 0 && name[0] >= '0' && name[0] <= '9';
    if (n == 0) refuse(fmt::format("'{}' is neither a name nor a group", left_[0]));
    if (number && name != "1")
      refuse(fmt::format("{} is no name: name the axis and give its extent", name));
    if (name.starts_with(kRest) && name != kRest) refuse("\"...\" needs a space behind it");
    const std::vector<std::string> before = names();
    if (name != "1" && std::ranges::count(before, name) > 0)
      refuse(fmt::format("'{}' occurs twice on one side", name));
    left_.remove_prefix(n);
    return name;
  }

  std::string_view pattern_, left_;
  Groups groups_;
};

struct Pattern {
  std::string_view text;
  Side from, to;
};

Pattern parsed(std::string_view pattern) {
  const size_t arrow = pattern.find("->");
  if (arrow == std::string_view::npos || pattern.find("->", arrow + 2) != std::string_view::npos)
    fail<InvalidArgument>("rearrange: \"{}\" is not two sides with \"->\" between them", pattern);
  Pattern p{pattern, Side(pattern, pattern.substr(0, arrow)),
            Side(pattern, pattern.substr(arrow + 2))};
  if (std::ranges::any_of(p.from.groups(), [](const Group& g) {
        return g.parentheses && std::ranges::count(g.names, kRest) > 0;
      }))
    fail<InvalidArgument>("rearrange: \"{}\": \"...\" in parentheses on the left", pattern);
  std::vector<std::string> a = p.from.names(), b = p.to.names();
  std::ranges::sort(a);
  std::ranges::sort(b);
  std::vector<std::string> differing;
  std::ranges::set_symmetric_difference(a, b, std::back_inserter(differing));
  if (!differing.empty())
    fail<InvalidArgument>("rearrange: \"{}\": '{}' stands on one side alone", pattern,
                          differing[0]);
  return p;
}

using Extents = std::map<std::string, Size>;

// What an axis of this extent is split into: the extents of the names that are not known yet.
void split_extent(const Pattern& p, const std::vector<std::string>& group, const Size& extent,
                  int64_t axis, Extents& known) {
  Size product = 1;
  const std::string* open = nullptr;
  for (const std::string& name : group) {
    if (const auto it = known.find(name); it != known.end()) {
      product = product * it->second;
    } else if (open) {
      fail<InvalidArgument>(
          "rearrange: \"{}\": give the extent of '{}' or '{}', which axis {} of {} elements is "
          "split into",
          p.text, *open, name, axis, extent);
    } else {
      open = &name;
    }
  }
  if (open && detail::same(product, 1)) {
    known[*open] = extent;
    return;
  }
  detail::require_numbers("rearrange", {extent, product});
  const int64_t all = extent, part = product;
  if (open ? part == 0 || all % part != 0 : all != part)
    fail<ShapeError>("rearrange: \"{}\": axis {} has {} elements, {} {}", p.text, axis, all,
                     open ? "no multiple of" : "not", part);
  if (open) known[*open] = all / part;
}

// Groups with the axes of "..." in its place, each as a group of its own unless in parentheses.
std::vector<std::vector<std::string>> with_rest(const Side& side, int64_t axes) {
  std::vector<std::string> rest;
  for (int64_t i = 0; i < axes; i++) rest.push_back(fmt::format("{}{}", kRest, i));
  std::vector<std::vector<std::string>> out;
  for (const Group& group : side.groups()) {
    if (group.is_rest()) {
      for (const std::string& name : rest) out.push_back({name});
      continue;
    }
    out.emplace_back();
    for (const std::string& name : group.names) {
      if (name == kRest)
        out.back().insert(out.back().end(), rest.begin(), rest.end());
      else
        out.back().push_back(name);
    }
  }
  return out;
}

Extents given_extents(const Pattern& p,
                      const std::vector<std::pair<std::string, int64_t>>& sizes) {
  Extents known;
  const std::vector<std::string> names = p.from.names();
  for (const auto& [name, extent] : sizes) {
    if (std::ranges::count(names, name) == 0)
      fail<InvalidArgument>("rearrange: \"{}\" has no axis '{}'", p.text, name);
    if (extent < 0)
      fail<InvalidArgument>("rearrange: extent {} of axis '{}'", extent, name);
    known[name] = extent;
  }
  return known;
}

// Where the strides are nested, each a multiple of the next one's reach: rows of rows. Extents of
// one and strides of 0 are left out before.
Tensor nested(Tensor flat, const Sizes& sizes, const std::vector<int64_t>& stride) {
  for (size_t i = 0; i < stride.size(); i++) {
    const int64_t reach = int64_t(sizes[i]) * stride[i], d = int64_t(i);
    const int64_t n = flat.size(d);
    flat = n < reach ? detail::pad_axis(flat, d, 0, reach - n) : flat.narrow(d, 0, reach);
    flat = detail::unflatten(flat, d, sizes[i], stride[i]);
  }
  return stride.empty() ? flat.select(0, 0) : flat.select(-1, 0);
}

// The axes in the order of their strides, if nested() can take them.
bool are_nested(const Sizes& sizes, const std::vector<int64_t>& stride, Axes& order) {
  for (size_t i = 0; i < sizes.size(); i++) {
    if (int64_t(sizes[i]) > 1 && stride[i] > 0) order.push_back(int64_t(i));
  }
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return stride[size_t(a)] > stride[size_t(b)];
  });
  for (size_t i = 0; i + 1 < order.size(); i++) {
    const auto outer = size_t(order[i]), inner = size_t(order[i + 1]);
    const int64_t reach = int64_t(sizes[inner]) * stride[inner];
    if (stride[outer] % stride[inner] || reach > stride[outer]) return false;
  }
  return true;
}

Tensor by_nesting(const Tensor& flat, const Sizes& sizes, const std::vector<int64_t>& stride,
                  const Axes& order) {
  Sizes inner;
  std::vector<int64_t> steps;
  for (const int64_t d : order) {
    inner.push_back(sizes[size_t(d)]);
    steps.push_back(stride[size_t(d)]);
  }
  const Tensor taken = nested(flat, inner, steps);
  // Back to the order of the axes asked for, the others as 1, then repeated.
  Axes back(order.size());
  std::iota(back.begin(), back.end(), 0);
  std::ranges::sort(back, {}, [&](int64_t i) { return order[size_t(i)]; });
  Sizes ones = sizes;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (std::ranges::count(order, int64_t(i)) == 0) ones[i] = 1;
  }
  return (order.empty() ? taken : taken.permute(back)).reshape(ones).expand(sizes);
}

}  // namespace

Tensor TensorViews::as_strided(const Sizes& sizes, const std::vector<int64_t>& stride,
                               int64_t offset) const {
  const Tensor& x = self(this);
  detail::require_numbers("as_strided", x.sizes());
  detail::require_numbers("as_strided", sizes);
  if (sizes.size() != stride.size())
    fail<InvalidArgument>("as_strided: {} strides for {} extents", stride.size(), sizes.size());
  int64_t last = offset;
  bool none = false, overflows = false;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (stride[i] < 0) fail<InvalidArgument>("as_strided: stride {} is negative", stride[i]);
    none |= int64_t(sizes[i]) == 0;
    int64_t reach = 0;
    overflows |= __builtin_mul_overflow(int64_t(sizes[i]) - 1, stride[i], &reach) ||
                 __builtin_add_overflow(last, reach, &last);
  }
  ir::element_count(detail::shape_of(sizes));
  if (none) return Tensor::zeros(sizes, {x.dtype(), x.device()});
  const int64_t n = x.numel();
  if (overflows) fail<ShapeError>("as_strided: positions beyond 2^63 of {} elements", n);
  if (offset < 0 || last >= n)
    fail<ShapeError>("as_strided: positions {}..{} of {} elements", offset, last, n);
  const Tensor flat = x.reshape({n});
  Axes order;
  if (are_nested(sizes, stride, order))
    return by_nesting(flat.narrow(0, offset, n - offset), sizes, stride, order);
  const DType t = detail::position_dtype(n);
  Tensor at = Tensor::full({}, offset, {t, x.device()});
  for (size_t i = 0; i < sizes.size(); i++) {
    const Tensor along =
        detail::counter(sizes[i], int64_t(i), int64_t(sizes.size()), x.device()).cast(t);
    at = at + along * stride[i];
  }
  return flat.take(at.expand(sizes));
}

Tensor TensorViews::rearrange(std::string_view pattern,
                              const std::vector<std::pair<std::string, int64_t>>& sizes) const {
  const Tensor& x = self(this);
  const Pattern p = parsed(pattern);
  Extents known = given_extents(p, sizes);
  const int64_t named = int64_t(p.from.groups().size()) - p.from.has_rest();
  if (p.from.has_rest() ? x.dim() < named : x.dim() != named)
    fail<ShapeError>("rearrange: \"{}\" names {} axes on the left, {} has {}", pattern,
                     named, text(x.sizes()), x.dim());
  const auto from = with_rest(p.from, x.dim() - named), to = with_rest(p.to, x.dim() - named);
  std::vector<std::string> names;
  Sizes split, joined;
  for (size_t i = 0; i < from.size(); i++) {
    split_extent(p, from[i], x.size(int64_t(i)), int64_t(i), known);
    for (const std::string& name : from[i]) {
      names.push_back(name);
      split.push_back(known.at(name));
    }
  }
  Axes order;
  for (const auto& group : to) {
    std::vector<Size> extents;
    for (const std::string& name : group) {
      order.push_back(std::ranges::find(names, name) - names.begin());
      extents.push_back(known.at(name));
    }
    joined.push_back(detail::product(extents));
  }
  const Tensor apart = x.reshape(split);
  return (order.empty() ? apart : apart.permute(order)).reshape(joined);
}

}  // namespace tuff
