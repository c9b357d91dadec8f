#include "cli/check_report.h"

#include <algorithm>
#include <cmath>

#include "check/result_json.h"

namespace tuff::cli {

using check::CaseResult;
using check::Verdict;

namespace {

constexpr const char* kFunctions = "Tensor.";

std::string ulp_text(double ulp) { return std::isfinite(ulp) ? fmt::format("{:.3g}", ulp) : "inf"; }

}  // namespace

CheckReport::CheckReport(std::vector<hcq::DeviceInfo> devices, size_t total, bool json)
    : devices_(std::move(devices)),
      total_(total),
      json_(json),
      style_(Style::of_stdout()),
      bar_("check", total) {}

Json CheckReport::line(size_t device, const CaseResult& r) const {
  const hcq::DeviceInfo& d = devices_[device];
  Json out = check::to_json(r);
  out.update({{"device", d.name},
              {"description", d.description},
              {"driver", d.driver},
              {"api_version", d.api_version},
              {"uuid", d.uuid}});
  return out;
}

void CheckReport::add(size_t device, const CaseResult& r) {
  done_++;
  verdicts_[r.verdict]++;
  if (!cells_.count(r.op)) {
    ops_.push_back(r.op);
    cells_[r.op].resize(devices_.size());
  }
  Cell& c = cells_[r.op][device];
  c.total++;
  c.passed += r.verdict == Verdict::Pass;
  c.refused += r.verdict == Verdict::Unsupported && r.expected;
  c.wrong += !r.expected;
  c.worst_ulp = std::max(c.worst_ulp, r.error_ulp);
  unexpected_ += !r.expected;
  if (json_) print_json(line(device, r));
  if (!r.expected) show_failure(device, r);
  bar_.update(done_, [&] {
    return fmt::format("{}/{} cases, {} not as expected", done_, total_, unexpected_);
  });
}

void CheckReport::show_failure(size_t device, const CaseResult& r) {
  if (json_) return;
  std::string text = fmt::format("{}{}{} {} on {}", style_.warn, check::name(r.verdict),
                                 style_.plain, r.name, devices_[device].name);
  if (r.verdict == Verdict::Fail && r.error_ulp > 0)
    text += fmt::format(" ({} ULP, budget {})", ulp_text(r.error_ulp), ulp_text(r.budget_ulp));
  text += ": " + r.message.substr(0, r.message.find('\n'));
  if (!r.reproducer.empty()) text += "\n    " + r.reproducer;
  bar_.clear();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

std::string CheckReport::cell_text(const Cell& c) const {
  if (c.total == 0) return "-";
  std::string text = fmt::format("{}/{}", c.passed, c.total);
  if (c.refused) text += fmt::format(" {} refused", c.refused);
  if (c.wrong) text += fmt::format(" {} WRONG", c.wrong);
  if (c.worst_ulp > 0) text += fmt::format(" {} ULP", ulp_text(c.worst_ulp));
  return text;
}

// A row per op; the functions of Tensor share a row as long as all is well.
void CheckReport::print_rows() const {
  constexpr int kWidth = 26;
  std::vector<Cell> functions(devices_.size());
  auto print_row = [&](const std::string& title, const std::vector<Cell>& cells) {
    fmt::print("{:<28}", title);
    for (const Cell& c : cells)
      fmt::print("{}{:<{}}{}", c.wrong ? style_.warn : "", cell_text(c), kWidth, style_.plain);
    fmt::print("\n");
  };
  size_t function_count = 0;
  for (const std::string& op : ops_) {
    const std::vector<Cell>& cells = cells_.at(op);
    const bool clean =
        std::none_of(cells.begin(), cells.end(), [](const Cell& c) { return c.wrong > 0; });
    if (!op.starts_with(kFunctions) || !clean) print_row(op, cells);
    if (!op.starts_with(kFunctions) || !clean) continue;
    function_count++;
    for (size_t d = 0; d < cells.size(); d++) {
      functions[d].passed += cells[d].passed;
      functions[d].total += cells[d].total;
      functions[d].refused += cells[d].refused;
      functions[d].worst_ulp = std::max(functions[d].worst_ulp, cells[d].worst_ulp);
    }
  }
  if (function_count) print_row(fmt::format("{} functions of Tensor", function_count), functions);
}

void CheckReport::add_opts(size_t device, const Json& counts) {
  Json& sum = opts_.emplace(device, Json::object()).first->second;
  for (const auto& [kind, row] : counts.items()) {
    Json& all = sum.emplace(kind, Json{{"tried", 0}, {"applied", 0}}).first.value();
    for (const char* field : {"tried", "applied"})
      all[field] = all[field].get<uint64_t>() + row.at(field).get<uint64_t>();
  }
}

void CheckReport::print_opts() const {
  for (const auto& [device, counts] : opts_) {
    if (json_) {
      print_json({{"device", devices_[device].name}, {"random_opts", counts}});
      continue;
    }
    uint64_t tried = 0, applied = 0;
    std::string kinds;
    for (const auto& [kind, row] : counts.items()) {
      tried += row.at("tried").get<uint64_t>();
      applied += row.at("applied").get<uint64_t>();
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind, row.at("applied").dump());
    }
    fmt::print("{}: {} of {} random optimizations were legal ({:.0f} %): {}\n",
               devices_[device].name, applied, tried,
               100.0 * double(applied) / double(std::max<uint64_t>(tried, 1)), kinds);
  }
}

void CheckReport::finish() {
  bar_.clear();
  print_opts();
  if (json_) return;
  for (const hcq::DeviceInfo& d : devices_)
    fmt::print("{}{}{}  {}  {}\n", style_.bold, d.name, style_.plain, d.description, d.driver);
  fmt::print("\n{}{:<28}", style_.bold, "op");
  for (const hcq::DeviceInfo& d : devices_) fmt::print("{:<26}", d.name);
  fmt::print("{}\n", style_.plain);
  print_rows();
  std::string counts;
  for (const auto& [verdict, count] : verdicts_)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, check::name(verdict));
  fmt::print("\n{} of {} cases: {}; {}{} not as expected{}\n", done_, total_, counts,
             unexpected_ ? style_.warn : style_.good, unexpected_, style_.plain);
}

}  // namespace tuff::cli
