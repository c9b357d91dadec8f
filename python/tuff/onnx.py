"""ONNX models: loaded, described and called.

    model = tuff.onnx.load("model.onnx")
    outputs = model(x=tuff.zeros(1, 3, 224, 224))  # a dict, in the order of the model's outputs
    session = tuff.onnx.Session(model)             # called like the model; calls are captured and replayed
"""
from ._tuff.onnx import Description, Model, OperatorUse, Session, ValueInfo, describe, load  # noqa: F401
