#include "cli/inspect_onnx.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/ranges.h>

#include <tuff/onnx.h>
#include "base/json.h"
#include "cli/terminal.h"
#include "io/formats/onnx.h"
#include "io/tensor_bytes.h"

namespace tuff::cli {
namespace {

using onnx::Description;
using onnx::OperatorUse;
using onnx::ValueInfo;

std::string domain_name(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

std::string dtype_of_value(const ValueInfo& v) {
  return v.dtype == DType::Void ? "-" : std::string(name(v.dtype));
}

int64_t missing_count(const Description& d) {
  return std::ranges::count_if(d.operators,
                               [](const OperatorUse& o) { return !o.missing.empty(); });
}

void print_value_lines(const char* event, const std::vector<ValueInfo>& values) {
  for (const ValueInfo& v : values)
    print_json({{"event", event},
                {"name", v.name},
                {"type", v.type},
                {"dtype", dtype_of_value(v)},
                {"shape", v.has_rank ? Json(v.shape) : Json(nullptr)}});
}

void print_onnx_lines(const Description& d) {
  print_value_lines("input", d.inputs);
  print_value_lines("output", d.outputs);
  for (const auto& [domain, version] : d.opsets)
    print_json({{"event", "opset"}, {"domain", domain_name(domain)}, {"version", version}});
  for (const OperatorUse& o : d.operators)
    print_json({{"event", "operator"},
                {"domain", domain_name(o.domain)},
                {"name", o.name},
                {"version", o.version},
                {"count", o.count},
                {"missing", o.missing.empty() ? Json(nullptr) : Json(o.missing)}});
  for (const auto& [rule, count] : d.rewrites)
    print_json({{"event", "rewrite"}, {"rule", rule}, {"count", count}});
  for (const auto& [key, value] : d.metadata)
    print_json({{"event", "metadata"}, {"key", key}, {"value", value}});
  print_json({{"event", "done"},
              {"format", "onnx"},
              {"ir_version", d.ir_version},
              {"producer", d.producer},
              {"parameters", d.parameters},
              {"missing", missing_count(d)}});
}

// Columns of texts, the last of any width.
template <size_t N>
void print_rows(const std::vector<std::array<std::string, N>>& rows) {
  std::array<size_t, N> widths{};
  for (const auto& row : rows)
    for (size_t i = 0; i + 1 < N; i++) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < N; i++) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void print_values(const char* title, const std::vector<ValueInfo>& values) {
  fmt::print("{}\n", title);
  std::vector<std::array<std::string, 3>> rows;
  for (const ValueInfo& v : values)
    rows.push_back({printable(v.name), printable(v.type),
                    v.has_rank ? printable(fmt::format("({})", fmt::join(v.shape, ", ")))
                               : std::string("of any rank")});
  print_rows(rows);
}

void print_onnx_report(const std::string& path, const Description& d) {
  const Style style = Style::of_stdout();
  fmt::print("{}{}{}: onnx, IR version {}, {} parameter{}{}\n", style.bold, printable(path),
             style.plain, d.ir_version, d.parameters, d.parameters == 1 ? "" : "s",
             d.producer.empty() ? "" : ", written by " + printable(d.producer));
  print_values("inputs", d.inputs);
  print_values("outputs", d.outputs);
  const int64_t missing = missing_count(d);
  fmt::print("operators{}\n",
             missing == 0 ? "" : fmt::format(", {}{} missing{}", style.warn, missing, style.plain));
  std::vector<std::array<std::string, 5>> rows{{"domain", "name", "version", "nodes", ""}};
  for (const OperatorUse& o : d.operators)
    rows.push_back({printable(domain_name(o.domain)), printable(o.name), std::to_string(o.version),
                    std::to_string(o.count),
                    o.missing.empty() ? "" : "missing: " + printable(o.missing)});
  print_rows(rows);
  if (!d.rewrites.empty()) fmt::print("folded when it is loaded (optimize)\n");
  for (const auto& [rule, count] : d.rewrites) fmt::print("  {} {}\n", count, rule);
  if (!d.metadata.empty()) fmt::print("metadata\n");
  for (const auto& [key, value] : d.metadata)
    fmt::print("  {}: {}\n", printable(key), printable(value));
}

}  // namespace

bool is_onnx_file(const std::string& path) { return io::is_onnx(io::FileBytes(path)); }

void inspect_onnx(const std::string& path, bool json) {
  const Description d = onnx::describe(path);
  if (json)
    print_onnx_lines(d);
  else
    print_onnx_report(path, d);
}

}  // namespace tuff::cli
