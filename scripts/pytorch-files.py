#!/usr/bin/env python3
"""Writes the checkpoints in tests/data/pytorch, and beside each what is in it, with PyTorch itself.

Usage: scripts/pytorch-files.py [FOLDER]    needs PyTorch (Debian's python3-torch; made with 1.13.1)
The .json has for each tensor its dtype, shape and row-major bytes in hexadecimal.
"""
import collections
import json
import pathlib
import sys

import torch

TYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
SHAPES = [(), (1,), (5,), (0,), (2, 0, 3), (2, 3), (2, 1, 3, 2)]


def contents(tensor):
    raw = tensor.detach().contiguous()
    return bytes(raw.storage().untyped())[raw.storage_offset() * raw.element_size():][:raw.numel() * raw.element_size()]


def flat(value, path=""):
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from flat(item, f"{path}.{i}" if path else str(i))


def types():
    out = collections.OrderedDict()
    for name in TYPES:
        for shape in SHAPES:
            values = torch.randn(shape) * 50
            if name == "bool":
                values = values > 0
            out[f"{name}_{'x'.join(map(str, shape))}"] = values.to(getattr(torch, name))
    return out


def views():
    base = torch.arange(60, dtype=torch.int32).reshape(3, 4, 5)
    return {"base": base, "transposed": base.transpose(0, 2), "permuted": base.permute(1, 2, 0),
            "row": base[1], "column": base[:, :, 3], "part": base[1:, ::2, 1:4], "expanded": base[0, 0].expand(2, 5),
            "element": base[2, 3, 4], "list": [base.flatten()[7:19], {"none": base[:, :0]}]}


def training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2, bias=False))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        loss = model(torch.randn(5, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2, "note": "small",
            "parameter": torch.nn.Parameter(torch.ones(2, 2))}


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "tests/data/pytorch"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for make in (types, views, training):
        value = make()
        torch.save(value, folder / f"{make.__name__}.pt")
        rows = {name: {"dtype": str(t.dtype).split(".")[1], "shape": list(t.shape), "bytes": contents(t).hex()}
                for name, t in flat(value)}
        (folder / f"{make.__name__}.json").write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
