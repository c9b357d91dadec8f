// Loaders: an epoch is an order of items and the batches that are being read.
#include <tuff/data.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>
#include <numeric>
#include <random>

#include "base/check.h"
#include "engine/device.h"
#include "tensor/impl.h"

namespace tuff::data {

TensorDataset::TensorDataset(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) fail<InvalidArgument>("TensorDataset: no tensors given");
  for (const Tensor& t : tensors) {
    if (t.dim() == 0 || t.size(0) != tensors[0].size(0))
      fail<ShapeError>("TensorDataset: {} beside {}: rows of one length are wanted",
                       detail::text(t.sizes()), detail::text(tensors[0].sizes()));
    Column c{.bytes = std::vector<std::byte>(size_t(int64_t(t.numel())) * size_bytes(t.dtype())),
             .row = t.sizes(),
             .dtype = t.dtype()};
    c.row.erase(c.row.begin());
    t.copy_to(c.bytes.data(), c.bytes.size());
    columns_.push_back(std::move(c));
  }
  size_ = tensors[0].size(0);
}

Batch TensorDataset::batch(std::span<const int64_t> indices) const {
  Batch out;
  for (const Column& c : columns_) {
    const size_t row = size_ == 0 ? 0 : c.bytes.size() / size_t(size_);
    std::vector<std::byte> bytes(row * indices.size());
    for (size_t i = 0; i < indices.size(); i++) {
      if (indices[i] < 0 || indices[i] >= size_)
        fail<IndexError>("TensorDataset: item {} of {}", indices[i], size_);
      std::memcpy(bytes.data() + i * row, c.bytes.data() + size_t(indices[i]) * row, row);
    }
    Sizes sizes = c.row;
    sizes.insert(sizes.begin(), Size(indices.size()));
    out.push_back(Tensor::from_bytes(bytes.data(), sizes, {c.dtype, "CPU"}));
  }
  return out;
}

struct DataLoader::Iterator::Epoch {
  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  std::vector<int64_t> order;
  size_t begun = 0;  // items whose batches are read or being read
  std::deque<std::future<Batch>> ahead;
  Batch now;
  bool over = false;

  Batch read(std::span<const int64_t> indices) const {
    Batch batch = dataset->batch(indices);
    for (Tensor& t : batch) t = t.to(options.device);
    Tensor::realize(batch);
    return batch;
  }

  std::span<const int64_t> next_indices() {
    const size_t count = std::min(size_t(options.batch_size), order.size() - begun);
    const std::span<const int64_t> indices(order.data() + begun, count);
    begun += count;
    return indices;
  }

  void advance() {
    while (begun < order.size() && int64_t(ahead.size()) < options.num_workers)
      ahead.push_back(std::async(std::launch::async,
                                 [this, part = next_indices()] { return read(part); }));
    over = ahead.empty() && begun == order.size();
    if (over) {
      now.clear();
    } else if (ahead.empty()) {
      now = read(next_indices());
    } else {
      std::future<Batch> first = std::move(ahead.front());
      ahead.pop_front();
      now = first.get();
    }
  }
};

DataLoader::Iterator::Iterator(std::shared_ptr<Epoch> epoch) : epoch_(std::move(epoch)) {
  epoch_->advance();
}
const Batch& DataLoader::Iterator::operator*() const { return epoch_->now; }
DataLoader::Iterator& DataLoader::Iterator::operator++() {
  epoch_->advance();
  return *this;
}
bool DataLoader::Iterator::operator!=(std::nullptr_t) const { return !epoch_->over; }

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  if (!dataset_) fail<InvalidArgument>("DataLoader: no dataset given");
  if (options_.batch_size < 1)
    fail<InvalidArgument>("DataLoader: batch_size is {}", options_.batch_size);
  if (options_.num_workers < 0)
    fail<InvalidArgument>("DataLoader: num_workers is {}", options_.num_workers);
  options_.device = engine::canonical_device(options_.device);
}

int64_t DataLoader::size() const {
  const int64_t count = dataset_->size(), n = options_.batch_size;
  return options_.drop_last ? count / n : (count + n - 1) / n;
}

// Fisher and Yates's shuffle by a generator whose numbers the standard names, so that it is the
// same everywhere; std::shuffle and its distributions are not.
std::vector<int64_t> DataLoader::order() {
  std::vector<int64_t> order(static_cast<size_t>(dataset_->size()));
  std::iota(order.begin(), order.end(), int64_t(0));
  if (options_.shuffle) {
    const uint64_t epoch = uint64_t(epoch_);
    std::seed_seq seed{uint32_t(options_.seed), uint32_t(options_.seed >> 32), uint32_t(epoch),
                       uint32_t(epoch >> 32)};
    std::mt19937_64 random(seed);
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random() % i]);
  }
  if (options_.drop_last) order.resize(size_t(size() * options_.batch_size));
  epoch_++;
  return order;
}

DataLoader::Iterator DataLoader::begin() {
  auto epoch = std::make_shared<Iterator::Epoch>();
  epoch->dataset = dataset_;
  epoch->options = options_;
  epoch->order = order();
  return Iterator(std::move(epoch));
}

}  // namespace tuff::data
