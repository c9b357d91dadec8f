"""Layers: parameters with a call operator, initialized as PyTorch does."""
from ._tuff.nn import (  # noqa: F401
    BatchNorm, Conv2d, Dropout, Embedding, LayerNorm, Linear, MultiHeadAttention, RMSNorm,
    load_state_dict,
)


class Sequential:
    """Layers and functions of one tensor, one after the other."""

    def __init__(self, *layers):
        self.layers = list(layers)

    def append(self, layer):
        self.layers.append(layer)
        return self

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, index):
        return self.layers[index]

    def parameters(self):
        return [p for layer in self.layers if hasattr(layer, "parameters")
                for p in layer.parameters()]

    def state_dict(self):
        """Names begin with the layer's number."""
        return {f"{i}.{name}": tensor for i, layer in enumerate(self.layers)
                if hasattr(layer, "state_dict") for name, tensor in layer.state_dict().items()}
