// Counts of true against predicted classes. Called by `tuff train digits`.
// Must never know the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff::models {

class ConfusionTable {
 public:
  explicit ConfusionTable(uint32_t classes);
  void add(uint32_t truth, uint32_t predicted);  // InvalidArgument for a class outside the table
  uint64_t at(uint32_t truth, uint32_t predicted) const;
  uint64_t total() const;
  double accuracy() const;  // 0 if nothing was added
  // One row per true class, one column per predicted one, then the share that was right.
  std::string format() const;

 private:
  uint64_t row_total(uint32_t truth) const;
  uint32_t classes_;
  std::vector<uint64_t> counts_;  // [truth, predicted]
};

}  // namespace tuff::models
