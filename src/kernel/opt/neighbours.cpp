#include "kernel/opt/neighbours.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace tuff::kernel {

namespace {

std::vector<int64_t> amounts_of(OptKind kind, const Tiling& t, int axis) {
  switch (kind) {
    case OptKind::Split: return {8, 16, 32, 64, 128};
    case OptKind::Upcast: return {2, 3, 4, 5, 6, 7, 8, 12, 16};
    case OptKind::Vector: return {4, 8, 16, 32, 64};
    case OptKind::Unroll: return {2, 4, 8, 16, 32, 64};
    case OptKind::Group: return {0, 2, 4, 8, 16, 32, 64};
    case OptKind::Local: return {2, 4, 8, 16, 32, 64, 128};
    case OptKind::GroupReduce: return {8, 16, 32, 64, 128, 256};
    case OptKind::Swap: {
      std::vector<int64_t> axes;
      for (int64_t a = axis + 1; a < int64_t(t.axes.size()); a++) axes.push_back(a);
      return axes;
    }
    case OptKind::Slab: {
      const bool first = !t.slab_axes.empty() && t.slab_axes[0] == axis;
      return first ? std::vector<int64_t>{8, 16, 32, 64, 128} : std::vector<int64_t>{};
    }
    case OptKind::Spread: return {4, 8, 16, 32, 64};
    case OptKind::Stage: return {0, 1, 2, 3};
    case OptKind::Ahead: return {1, 2};
    case OptKind::Matrix: {
      std::vector<int64_t> shapes;
      for (size_t s = 0; s < t.target.matrix_shapes.size(); s++) shapes.push_back(int64_t(s));
      return shapes;
    }
  }
  return {};
}

class Neighbourhood {
 public:
  Neighbourhood(const ir::UOp& ast, const Target& target, int64_t most_lanes)
      : start_(ast, target), most_lanes_(most_lanes) {}

  std::vector<Opts> around(const Opts& opts) {
    known_.insert(to_string(opts));
    for (size_t i = 0; i < opts.size(); i++) {
      Opts less = opts;
      less.erase(less.begin() + std::ptrdiff_t(i));
      add(less);
      for (const int64_t amount : amounts_of(opts[i].kind, start_, opts[i].axis)) {
        Opts other = opts;
        other[i].amount = amount;
        add(other);
      }
    }
    for (const OptKind kind : kOptKinds) {
      const bool of_operands = kind == OptKind::Stage || kind == OptKind::Ahead;
      const size_t places = of_operands               ? operands(start_).size()
                            : kind == OptKind::Matrix ? start_.factors.size() / 2
                                                      : start_.axes.size();
      for (int axis = 0; axis < int(places); axis++) {
        for (const int64_t amount : amounts_of(kind, start_, axis))
          insert(opts, {kind, axis, amount});
      }
    }
    return std::move(found_);
  }

 private:
  // Matrices come first; what splits further comes before what takes the rest of an axis to the
  // launch grid, and copies of tiles come last; those that are loaded ahead have been staged.
  static int phase(OptKind k) {
    if (k == OptKind::Matrix) return 0;
    if (k == OptKind::Ahead) return 4;
    return k == OptKind::Stage ? 3 : k == OptKind::Group || k == OptKind::Spread ? 2 : 1;
  }
  void insert(const Opts& opts, const Opt& o) {
    const auto at = std::ranges::find_if(
        opts, [&](const Opt& other) { return phase(other.kind) > phase(o.kind); });
    Opts more = opts;
    more.insert(more.begin() + (at - opts.begin()), o);
    add(more);
  }
  void add(const Opts& opts) {
    if (!known_.insert(to_string(opts)).second) return;
    Tiling t = start_;
    for (const Opt& o : opts)
      if (!try_apply(t, o)) return;
    if (lane_count(t) <= most_lanes_) found_.push_back(opts);
  }

  const Tiling start_;
  const int64_t most_lanes_;
  std::set<std::string> known_;
  std::vector<Opts> found_;
};

template <class Number>
const char* parse_number(const char* at, const char* end, Number& n) {
  const auto [next, error] = std::from_chars(at, end, n);
  return error == std::errc() ? next : nullptr;
}

// "kind(axis,amount)"; false: it is none.
bool parse_opt(std::string_view text, Opt& o) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return false;
  const auto kind = std::ranges::find(kOptKinds, text.substr(0, open),
                                      [](OptKind k) { return std::string_view(name(k)); });
  if (kind == std::end(kOptKinds)) return false;
  o.kind = *kind;
  const char* end = text.data() + text.size() - 1;
  const char* at = parse_number(text.data() + open + 1, end, o.axis);
  if (!at || at == end || *at != ',') return false;
  return parse_number(at + 1, end, o.amount) == end;
}

}  // namespace

std::vector<Opts> neighbours(const ir::UOp& ast, const Target& target, const Opts& opts,
                             int64_t most_lanes) {
  return Neighbourhood(ast, target, most_lanes).around(opts);
}

Opts parse_opts(std::string_view text) {
  Opts out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view one = text.substr(0, end);
    Opt o{};
    if (one.empty() || !parse_opt(one, o)) fail<InvalidArgument>("\"{}\" is no opt", one);
    out.push_back(o);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace tuff::kernel
