"""ONNX models, written message by message (protobuf.dev/programming-guides/encoding); for tests of tuff.onnx and of
`tuff run`. Field numbers are those of onnx.proto."""
import struct

import numpy as np

FLOAT, INT64 = 1, 7


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A number, a float, or what has a length: bytes and str."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def attribute(name, kind, number, value):
    return message((1, name), (number, value), (20, kind))


def node(op, inputs, outputs, *attributes, domain=""):
    return message(*[(1, i) for i in inputs], *[(2, o) for o in outputs], (4, op), *[(5, a) for a in attributes],
                   (7, domain))


def tensor(name, array):
    kind = {"float32": FLOAT, "int64": INT64}[array.dtype.name]
    return message(*[(1, n) for n in array.shape], (2, kind), (8, name), (9, array.tobytes()))


def tensor_type(kind, shape):
    extents = [(1, field(2, e) if isinstance(e, str) else b"" if e is None else field(1, e)) for e in shape or ()]
    fields = [(1, kind)] if shape is None else [(1, kind), (2, message(*extents))]
    return field(1, message(*fields))


def sequence_type(element):
    return field(4, field(1, element))


def optional_type(element):
    return field(9, field(1, element))


def typed(name, kind):
    return message((1, name), (2, kind))


def value(name, kind, shape):
    return typed(name, tensor_type(kind, shape))


def model(nodes, inputs, outputs, initializers=(), opsets=(("", 17),), metadata=()):
    graph = message(*[(1, n) for n in nodes], (2, "g"), *[(5, t) for t in initializers], *[(11, v) for v in inputs],
                    *[(12, v) for v in outputs])
    return message((1, 8), (2, "tests"), (3, "1.0"), (7, graph), *[(8, message((1, d), (2, v))) for d, v in opsets],
                   *[(14, message((1, k), (2, v))) for k, v in metadata])


W = np.arange(6, dtype=np.float32).reshape(3, 2) / 4
B = np.array([1.0, -1.0], np.float32)


def perceptron():
    """z = relu(x W + b), and the untouched sum; outputs in an order that is not the alphabet's."""
    return model([node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["sum"]), node("Relu", ["sum"], ["relu"])],
                 [value("x", FLOAT, ["batch", 3])], [value("sum", FLOAT, ["batch", 2]), value("relu", FLOAT, None)],
                 [tensor("w", W), tensor("b", B)], metadata=[("author", "nobody")])


def layer_and_norm():
    """A layer of two channels and its batch norm, all of whose numbers are parameters."""
    ones = np.ones(2, np.float32)
    norm = node("BatchNormalization", ["h", "scale", "b", "b", "var"], ["y"])
    return model([node("Gemm", ["x", "w", "b"], ["h"]), norm],
                 [value("x", FLOAT, ["batch", 3])], [value("y", FLOAT, ["batch", 2])],
                 [tensor("w", W), tensor("b", B), tensor("scale", 3 * ones), tensor("var", ones / 4)])
