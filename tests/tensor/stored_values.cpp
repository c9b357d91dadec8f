#include "tensor/stored_values.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace tuff::test {
namespace {

using ir::HostArray;
using nlohmann::json;

// What JSON has no number for stands there as a word: "nan", "inf", "-inf", "-0".
std::vector<double> numbers(const json& values) {
  std::vector<double> out;
  for (const json& v : values)
    out.push_back(v.is_string() ? std::stod(v.get<std::string>()) : v.get<double>());
  return out;
}

HostArray array_of(const json& j) {
  return test::array_of(parse_dtype(j.at("dtype").get<std::string>()),
                        j.at("shape").get<std::vector<int64_t>>(), numbers(j.at("values")));
}

Row row_of(const json& j) {
  Row row;
  for (const json& input : j.at("inputs")) row.inputs.push_back(array_of(input));
  row.out = array_of(j.at("out"));
  if (!j.contains("grads")) return row;
  for (const json& g : j.at("grads"))
    row.gradients.push_back(g.is_null() ? std::vector<double>{} : numbers(g));
  return row;
}

const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> by_name = [] {
    std::ifstream file(TUFF_SOURCE_DIR "/tests/data/tensor_values.json");
    std::map<std::string, Row> out;
    const json all = json::parse(file);
    for (const json& row : all.at("cases")) out[row.at("name")] = row_of(row);
    return out;
  }();
  return by_name;
}

}  // namespace

const Row& stored_row(const std::string& name) { return rows().at(name); }
std::vector<std::string> stored_names() {
  std::vector<std::string> out;
  for (const auto& [name, row] : rows()) out.push_back(name);
  return out;
}

HostArray array_of(DType t, const Sizes& shape, const std::vector<double>& values) {
  HostArray a{t, shape, std::vector<std::byte>(values.size() * size_bytes(t))};
  for (size_t i = 0; i < values.size(); i++)
    store_scalar(Scalar::of_double(t, values[i]), a.bytes.data() + i * size_bytes(t));
  return a;
}

Tensor weights(const Tensor& like) {
  std::vector<float> w(size_t(like.numel()));
  for (size_t i = 0; i < w.size(); i++) w[i] = float(i % 7 + 1) / 8;
  return Tensor::from(w, like.sizes(), {.device = like.device()});
}

}  // namespace tuff::test
