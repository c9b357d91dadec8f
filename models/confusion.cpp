#include "models/confusion.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tuff::models {

ConfusionTable::ConfusionTable(uint32_t classes)
    : classes_(classes), counts_(size_t{classes} * classes) {}

void ConfusionTable::add(uint32_t truth, uint32_t predicted) {
  if (truth >= classes_ || predicted >= classes_) {
    fail<InvalidArgument>("confusion table: class {} predicted as {}; there are {} classes", truth,
                          predicted, classes_);
  }
  ++counts_[size_t{truth} * classes_ + predicted];
}

uint64_t ConfusionTable::at(uint32_t truth, uint32_t predicted) const {
  TUFF_CHECK(truth < classes_ && predicted < classes_);
  return counts_[size_t{truth} * classes_ + predicted];
}

uint64_t ConfusionTable::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

uint64_t ConfusionTable::row_total(uint32_t truth) const {
  uint64_t sum = 0;
  for (uint32_t p = 0; p < classes_; ++p) sum += at(truth, p);
  return sum;
}

double ConfusionTable::accuracy() const {
  uint64_t right = 0;
  for (uint32_t c = 0; c < classes_; ++c) right += at(c, c);
  const uint64_t all = total();
  return all ? static_cast<double>(right) / static_cast<double>(all) : 0;
}

std::string ConfusionTable::format() const {
  const uint64_t largest = *std::max_element(counts_.begin(), counts_.end());
  const size_t width = std::max<size_t>(4, fmt::formatted_size("{}", largest) + 1);
  std::string text = "true\\is";
  for (uint32_t p = 0; p < classes_; ++p) text += fmt::format("{:>{}}", p, width);
  text += "   right\n";
  for (uint32_t truth = 0; truth < classes_; ++truth) {
    text += fmt::format("{:>7}", truth);
    for (uint32_t p = 0; p < classes_; ++p) {
      const uint64_t count = at(truth, p);
      text += count ? fmt::format("{:>{}}", count, width) : fmt::format("{:>{}}", ".", width);
    }
    const uint64_t all = row_total(truth);
    const double share =
        all ? 100.0 * static_cast<double>(at(truth, truth)) / static_cast<double>(all) : 0;
    text += all ? fmt::format("{:>7.2f}%\n", share) : std::string("       -\n");
  }
  return text;
}

}  // namespace tuff::models
