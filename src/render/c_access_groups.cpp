#include "render/c_access_groups.h"

#include <algorithm>
#include <bit>

#include "ir/walk.h"
#include "render/c_shuffles.h"

namespace tuff::render {

using ir::Node;
using kernel::LaneMask;

bool CAccessGroups::load(size_t i, const Node& index, int instance) {
  const LaneMask mask = b_.kernel.lanes[i];
  if (const int bit = interleaved_bit(index, mask, instance); bit >= 0)
    load_interleaved(i, index, instance, bit);
  else if (const int across = transposed_bit(index, mask, instance); across >= 0)
    load_transposed(i, index, instance, across);
  else
    return false;
  return true;
}

std::vector<int> CAccessGroups::store(size_t i, const Node& index, int instance) {
  const LaneMask mask = b_.kernel.lanes[i];
  const int bit = interleaved_bit(index, mask, instance);
  if (bit < 0) return {};
  store_interleaved(i, index, instance, bit);
  std::vector<int> stored;
  for (int j = 0; j < b_.space.size(bit); ++j)
    stored.push_back(instance + j * b_.space.stride(b_.scalar_mask(mask), bit));
  return stored;
}

// How far apart in memory the lanes of a bit are from this instance on; 0: not the same distance.
int64_t CAccessGroups::step_along(const Node& index, LaneMask mask, int instance, int bit) const {
  const LaneMask scalars = b_.scalar_mask(mask);
  if (!(scalars >> bit & 1) || b_.space.digit(scalars, instance, bit) != 0) return 0;
  const CValue first = memory_.access(index, mask, instance).offset;
  const int stride = b_.space.stride(scalars, bit);
  const int64_t step =
      memory_.access(index, mask, instance + stride).offset.constant - first.constant;
  for (int j = 1; j < b_.space.size(bit); ++j) {
    CValue wanted = first;
    wanted.constant += j * step;
    if (!(memory_.access(index, mask, instance + j * stride).offset == wanted)) return 0;
  }
  return step;
}

// Whether the lanes of a bit are loaded behind one gate, or all behind none.
bool CAccessGroups::share_gate(const Node& index, LaneMask mask, int instance, int bit) const {
  const CValue* gate = memory_.access(index, mask, instance).gate;
  const int stride = b_.space.stride(b_.scalar_mask(mask), bit);
  for (int j = 1; j < b_.space.size(bit); ++j) {
    const CValue* next = memory_.access(index, mask, instance + j * stride).gate;
    if (gate ? !next || next->base != gate->base : next != nullptr) return false;
  }
  return true;
}

// The gates of a bit's lanes as one mask; no vector where there are none.
CValue CAccessGroups::gates_along(const Node& index, LaneMask mask, int instance, int bit) {
  const int n = b_.space.size(bit), stride = b_.space.stride(b_.scalar_mask(mask), bit);
  bool gated = false;
  std::string lanes;
  for (int j = 0; j < n; ++j) {
    const CValue* gate = memory_.access(index, mask, instance + j * stride).gate;
    gated = gated || gate;
    lanes += fmt::format("{}{}", j ? ", " : "", gate ? fmt::format("-({})", gate->base) : "-1");
  }
  if (!gated) return {};
  const std::string type = b_.type_of(DType::Bool, n);
  return {.base = b_.define(type, fmt::format("({}){{{}}}", type, lanes)), .vector = true};
}

// ---- interleaved ----------------------------------------------------------------------------

// The bit whose lanes walk one by one what lies between the elements of the vector's lanes.
int CAccessGroups::interleaved_bit(const Node& index, LaneMask mask, int instance) const {
  if (!(mask & b_.vector_mask) || index.dtype == DType::Bool) return -1;
  const CValue& first = b_.value(index.src(1).get(), mask, instance);
  if (first.vector || first.step < 2 || first.step > kMostInterleaved || first.every > 1) return -1;
  for (int bit = 0; bit < b_.space.bits(); ++bit)
    if (b_.space.size(bit) == first.step && step_along(index, mask, instance, bit) == 1 &&
        share_gate(index, mask, instance, bit))
      return bit;
  return -1;
}

// The v-th of n contiguous vectors that lie interleaved from a on; its lanes' gates go to `gate`.
CAccess CAccessGroups::interleaved_part(const CAccess& a, int v, int n, CValue& gate) {
  CAccess part = a.at(v * b_.width, 1);
  if (!a.lane_gate()) return part;
  const std::string all = b_.vector(*a.gate, DType::Bool);
  gate = {.base = shuffled(b_, all, all, DType::Bool, interleaved_lanes(v, n, b_.width)),
          .vector = true};
  part.gate = &gate;
  return part;
}

// The contiguous vectors that hold all of them, and of these every n-th element.
void CAccessGroups::load_interleaved(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = b_.kernel.lanes[i];
  const CAccess a = memory_.access(index, mask, first);
  const int n = b_.space.size(bit);
  std::vector<std::string> loaded;
  for (int v = 0; v < n; ++v) {
    CValue gate;
    loaded.push_back(memory_.load_contiguous(interleaved_part(a, v, n, gate)).base);
  }
  const int stride = b_.space.stride(b_.scalar_mask(mask), bit);
  for (int j = 0; j < n; ++j)
    b_.values[i][first + j * stride] =
        CValue{.base = every_nth(b_, loaded, index.dtype, j, b_.width), .vector = true};
}

// The vectors of a bit's lanes, of which each has every n-th element of memory, as whole ones.
void CAccessGroups::store_interleaved(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = b_.kernel.lanes[i];
  const CAccess a = memory_.access(index, mask, first);
  const int n = b_.space.size(bit), stride = b_.space.stride(b_.scalar_mask(mask), bit);
  std::vector<std::string> values;
  for (int j = 0; j < n; ++j)
    values.push_back(
        b_.vector(b_.value(b_.kernel.ops[i]->src(1).get(), mask, first + j * stride), index.dtype));
  for (int v = 0; v < n; ++v) {
    std::string own = values[0];
    for (int j = 1; j < n; ++j) {
      std::vector<int> lanes;
      for (int l = 0; l < b_.width; ++l) {
        const int element = v * b_.width + l, from = element % n;
        lanes.push_back(from == j ? b_.width + element / n : j == 1 && from == 0 ? element / n : l);
      }
      own = shuffled(b_, own, values[static_cast<size_t>(j)], index.dtype, lanes);
    }
    CValue gate;
    memory_.store(interleaved_part(a, v, n, gate), CValue{.base = own, .vector = true});
  }
}

// ---- transposed -----------------------------------------------------------------------------

// Where the vector's lanes walk memory with a stride and some other lanes, of a number that divides
// theirs, walk it step by step or with a short stride: the bit of those. Vectors are loaded along
// them and transposed in registers. Gates may depend on those, as at the edges of an image.
int CAccessGroups::transposed_bit(const Node& index, LaneMask mask, int instance) const {
  if (!(mask & b_.vector_mask) || index.dtype == DType::Bool) return -1;
  const CValue& first = b_.value(index.src(1).get(), mask, instance);
  if (first.vector || first.step == 0 || first.step == 1 || first.every > 1 || b_.width < 4)
    return -1;
  for (int bit = 0; bit < b_.space.bits(); ++bit) {
    const int n = b_.space.size(bit);
    if (n < 4 || b_.width % n != 0 || !std::has_single_bit(unsigned(n))) continue;
    const int64_t step = step_along(index, mask, instance, bit);
    const CAccess row{index, {.step = step}, n};
    if (step != 1 && !memory_.is_strided(row)) continue;
    const int stride = b_.space.stride(b_.scalar_mask(mask), bit);
    bool lane_gates = false;
    for (int j = 0; j < n; ++j)
      lane_gates = lane_gates || memory_.access(index, mask, instance + j * stride).lane_gate();
    if (!lane_gates) return bit;
  }
  return -1;
}

void CAccessGroups::load_transposed(size_t i, const Node& index, int first, int bit) {
  const LaneMask mask = b_.kernel.lanes[i];
  const int n = b_.space.size(bit), stride = b_.space.stride(b_.scalar_mask(mask), bit);
  const CAccess a = memory_.access(index, mask, first);
  const CValue gates = gates_along(index, mask, first, bit);
  CAccess row{index, a.offset, n, gates.vector ? &gates : nullptr};
  row.offset.step = step_along(index, mask, first, bit);
  // Each of b_.width / n parts.
  std::vector<std::vector<std::string>> columns(static_cast<size_t>(n));
  for (int block = 0; block < b_.width; block += n) {
    std::vector<std::string> rows;
    for (int l = block; l < block + n; ++l) {
      row.offset.constant = a.offset.constant + a.offset.step * l;
      rows.push_back(
          (row.offset.step == 1 ? memory_.load_contiguous(row) : memory_.load_strided(row)).base);
    }
    rows = transposed(b_, std::move(rows), index.dtype);
    for (int j = 0; j < n; ++j) columns[j].push_back(rows[j]);
  }
  for (int j = 0; j < n; ++j)
    b_.values[i][first + j * stride] =
        CValue{.base = joined(b_, std::move(columns[j]), index.dtype, n), .vector = true};
}

// ---- gates ----------------------------------------------------------------------------------

// Where these are no vectors, what has one gate is loaded behind one branch, so that the compiler
// sees neighbours; on a CPU all of them behind a branch for all gates, as inside an image's edges
// (the lanes of a GPU's subgroup would take both sides). Each element once.
void CAccessGroups::load_behind_gates(size_t i, const Node& index) {
  const LaneMask mask = b_.kernel.lanes[i];
  struct Gated {
    std::string gate;
    std::vector<std::pair<std::string, std::string>> loads;  // element, variable
  };
  std::vector<Gated> all;
  for (size_t n = 0; n < b_.values[i].size(); ++n) {
    const std::string& gate = b_.value(index.src(2).get(), mask, static_cast<int>(n)).base;
    auto group = std::ranges::find(all, gate, &Gated::gate);
    if (group == all.end()) group = all.insert(group, {gate, {}});
    const std::string text = memory_.element(memory_.access(index, mask, static_cast<int>(n)), 0);
    auto known = std::ranges::find(group->loads, text, [](const auto& load) { return load.first; });
    if (known == group->loads.end()) known = group->loads.insert(known, {text, b_.text.fresh()});
    b_.values[i][n] = CValue{known->second};
  }
  const auto declare = [&](const Gated& g) {
    for (const auto& load : g.loads)
      b_.line(fmt::format("{} {} = 0;", b_.type_of(index.dtype), load.second));
  };
  const auto assign = [&](const Gated& g) {
    for (const auto& [text, variable] : g.loads)
      b_.line(fmt::format("{} = {}{};", variable, text, index.dtype == DType::Bool ? " != 0" : ""));
  };
  const bool together = b_.dialect.simd && all.size() > 1;
  if (together) {
    std::string every;
    for (const Gated& g : all) {
      declare(g);
      every += (every.empty() ? "" : " & ") + g.gate;
    }
    b_.line(fmt::format("if ({}) {{", every));
    for (const Gated& g : all) assign(g);
    b_.line("} else {");
  }
  for (const Gated& g : all) {
    if (!together) declare(g);
    b_.line(fmt::format("if ({}) {{", g.gate));
    assign(g);
    b_.line("}");
  }
  if (together) b_.line("}");
}

}  // namespace tuff::render
