#include "check/result_json.h"

#include <limits>

namespace tuff::check {

Json to_json(const CaseResult& r) {
  Json j;
  j["case"] = r.name;
  j["op"] = r.op;
  j["dtype"] = short_name(r.dtype);
  j["verdict"] = name(r.verdict);
  j["expected"] = r.expected;
  j["error_ulp"] = r.error_ulp;  // dumped as null where infinite
  j["budget_ulp"] = r.budget_ulp;
  j["time_ms"] = r.time_ms;
  j["message"] = r.message;
  j["reproducer"] = r.reproducer;
  return j;
}

CaseResult result_from_json(const Json& j) {
  CaseResult r;
  r.name = j.at("case").get<std::string>();
  r.op = j.at("op").get<std::string>();
  r.dtype = parse_dtype(j.at("dtype").get<std::string>());
  r.verdict = verdict_named(j.at("verdict").get<std::string>());
  r.expected = j.at("expected").get<bool>();
  r.error_ulp = j.at("error_ulp").is_null() ? std::numeric_limits<double>::infinity()
                                            : j.at("error_ulp").get<double>();
  r.budget_ulp = j.at("budget_ulp").get<double>();
  r.time_ms = j.at("time_ms").get<double>();
  r.message = j.at("message").get<std::string>();
  r.reproducer = j.at("reproducer").get<std::string>();
  return r;
}

Json to_json(const kernel::OptCounts& counts, const sched::PartsCounts& parts,
             const Target& target) {
  Json out = Json::object();
  for (const kernel::OptKind k : kernel::kOptKinds) {
    if (!kernel::allows(target, k)) continue;
    out[kernel::name(k)] = {{"tried", counts.of(k).tried}, {"applied", counts.of(k).applied}};
  }
  out["parts"] = {{"tried", parts.tried}, {"applied", parts.applied}};
  return out;
}

}  // namespace tuff::check
