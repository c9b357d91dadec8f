// Data: batches of a dataset, shuffled by a seed, read by threads and on the device ahead of their
// use. Called by users; must never know what a training does with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::data {

/// The tensors of one batch: inputs and targets, say.
using Batch = std::vector<Tensor>;

/// Items by number, read a batch at a time. batch() is called by several threads at once where the
/// loader has workers.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  /// The items of these numbers along the first axis, on any device.
  virtual Batch batch(std::span<const int64_t> indices) const = 0;
};

/// The rows of tensors of one length, which are copied to the host once. ShapeError for tensors
/// without axes and of several lengths; InvalidArgument for none.
class TensorDataset : public Dataset {
 public:
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  int64_t size() const override { return size_; }
  Batch batch(std::span<const int64_t> indices) const override;

 private:
  struct Column {
    std::vector<std::byte> bytes;
    Sizes row;
    DType dtype;
  };
  std::vector<Column> columns_;
  int64_t size_ = 0;
};

/// How a DataLoader makes batches.
struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  bool drop_last = false;  ///< leaves out the last batch if it is smaller
  int64_t num_workers = 0;  ///< batches that are read ahead, each by a thread of its own
  std::string device;       ///< where batches are; "" is the default device
};

/// The batches of a dataset, once per iteration:
///
///     for (const data::Batch& batch : loader) step(batch);
///
/// The order is one of the seed and the number of the epoch, the same on every machine and for
/// every number of workers. Batches are realized before they are given. What reading one throws is
/// thrown where the batch would come.
class DataLoader {
 public:
  /// InvalidArgument without a dataset, for a batch_size below 1 and for negative workers.
  DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  /// How many batches an epoch has.
  int64_t size() const;
  /// The number of the next iteration: for a training that goes on.
  void set_epoch(int64_t epoch) { epoch_ = epoch; }

  /// Over the batches of one epoch, for range-based for.
  class Iterator {
   public:
    const Batch& operator*() const;
    Iterator& operator++();
    bool operator!=(std::nullptr_t) const;

   private:
    friend class DataLoader;
    struct Epoch;
    explicit Iterator(std::shared_ptr<Epoch> epoch);
    std::shared_ptr<Epoch> epoch_;
  };
  /// Begins an epoch.
  Iterator begin();
  std::nullptr_t end() const { return nullptr; }

 private:
  std::vector<int64_t> order();
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace tuff::data
