"""Datasets, and batches of them: shuffled by a seed, read by threads, on the device ahead of their use."""
import collections
import concurrent.futures
import random

from ._tuff import (
    InvalidArgument as _InvalidArgument, Tensor as _Tensor, realize as _realize, tensor as _tensor,
)


class Dataset:
    """What has a length and items by their number; for those who derive. Any sequence will do."""

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __len__()")

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__()")


class TensorDataset(Dataset):
    """The rows of arrays or tensors of one length: item i is the tuple of their i-th rows. Tensors are
    copied to the host once."""

    def __init__(self, *arrays):
        self.arrays = tuple(a.numpy() if isinstance(a, _Tensor) else a for a in arrays)
        lengths = {len(a) for a in self.arrays}
        if len(lengths) != 1:
            raise _InvalidArgument(f"TensorDataset: arrays of one length are wanted, not of {sorted(lengths)}")

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, index):
        return tuple(a[index] for a in self.arrays)

    def batch(self, indices):
        """The rows of these numbers, as arrays."""
        return tuple(a[indices] for a in self.arrays)


class Subset(Dataset):
    """The items of a dataset that these numbers name."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, list(indices)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]


def random_split(dataset, lengths, seed=0):
    """Subsets of these lengths, which have to add up to the dataset's, of items drawn by the seed."""
    if sum(lengths) != len(dataset):
        raise _InvalidArgument(f"random_split: {sum(lengths)} items of {len(dataset)}")
    order = list(range(len(dataset)))
    random.Random(seed).shuffle(order)
    ends = [sum(lengths[:i + 1]) for i in range(len(lengths))]
    return [Subset(dataset, order[end - n:end]) for n, end in zip(lengths, ends)]


def default_collate(items):
    """Items as one batch: numbers, arrays and tensors with a new first axis, tuples, lists and dicts of
    them as such of batches; others as a list."""
    first = items[0]
    if isinstance(first, _Tensor):
        return _Tensor.stack(items)
    if isinstance(first, (bool, int, float)):
        return _tensor(items)
    if isinstance(first, dict):
        return {key: default_collate([item[key] for item in items]) for key in first}
    if isinstance(first, (list, tuple)):
        columns = [default_collate(list(column)) for column in zip(*items)]
        return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
    if hasattr(first, "__array__"):
        import numpy
        return _tensor(numpy.stack(items))
    return items


def _placed(value, device):
    """A batch whose arrays and tensors are tensors on a device, in memory."""
    if isinstance(value, dict):
        return {key: _placed(v, device) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_placed(v, device) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if hasattr(value, "__array__") and not isinstance(value, _Tensor):
        value = _tensor(value)
    if isinstance(value, _Tensor):
        if device:
            value = value.to(device)
        _realize([value])
    return value


class DataLoader:
    """The batches of a dataset, once per iteration.

    With shuffle the order is one of `seed` and the number of the epoch, the same on every machine and for
    every number of workers; set_epoch() sets that number, with which the next iteration begins. With
    num_workers that many threads read items and make batches, up to prefetch_factor ahead for each;
    batches come in order nevertheless. Batches are tensors on `device` ("" is the default one), realized
    before they are asked for. collate_fn makes a batch of a list of items. What a worker raises is raised
    where its batch would come.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, seed=0, drop_last=False, num_workers=0, collate_fn=None,
                 device="", prefetch_factor=2):
        for name, value, least in (("batch_size", batch_size, 1), ("num_workers", num_workers, 0),
                                   ("prefetch_factor", prefetch_factor, 1)):
            if value < least:
                raise _InvalidArgument(f"DataLoader: {name} is {value}, which has to be {least} or more")
        self.dataset, self.batch_size, self.shuffle, self.seed = dataset, batch_size, shuffle, seed
        self.drop_last, self.num_workers, self.collate_fn = drop_last, num_workers, collate_fn
        self.device, self.prefetch_factor = device, prefetch_factor
        self.epoch = 0

    def __len__(self):
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def set_epoch(self, epoch):
        """The number of the next iteration: for a training that goes on."""
        self.epoch = epoch

    def _batches(self):
        """Lists of numbers of items."""
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        self.epoch += 1
        return [order[i * self.batch_size:(i + 1) * self.batch_size] for i in range(len(self))]

    def _read(self, indices):
        if self.collate_fn is None and isinstance(self.dataset, TensorDataset):
            batch = self.dataset.batch(indices)
        else:
            batch = (self.collate_fn or default_collate)([self.dataset[i] for i in indices])
        return _placed(batch, self.device)

    def __iter__(self):
        batches = self._batches()
        return self._ahead(batches) if self.num_workers else map(self._read, batches)

    def _ahead(self, batches):
        rest, running = iter(batches), collections.deque()
        with concurrent.futures.ThreadPoolExecutor(self.num_workers) as pool:
            try:
                while True:
                    while len(running) < self.num_workers * self.prefetch_factor:
                        indices = next(rest, None)
                        if indices is None:
                            break
                        running.append(pool.submit(self._read, indices))
                    if not running:
                        return
                    yield running.popleft().result()
            finally:
                for future in running:
                    future.cancel()
