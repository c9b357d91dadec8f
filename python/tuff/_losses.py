"""Losses as modules, under PyTorch's names: each is the function of tuff.nn.functional with its options."""
from . import _functional as F
from ._module import Module


class _Loss(Module):
    _function = None

    def __init__(self, weights=(), **options):
        for name in weights:  # they move with the module
            self.register_buffer(name, options[name])
        for name in options.keys() - set(weights):
            setattr(self, name, options[name])
        self._options = tuple(options)

    def forward(self, *given):
        """As the function, of the same tensors."""
        return self._function(*given, **{name: getattr(self, name) for name in self._options})


class L1Loss(_Loss):
    """functional.l1_loss()"""
    _function = staticmethod(F.l1_loss)

    def __init__(self, *, reduction="mean"):
        super().__init__(reduction=reduction)


class MSELoss(_Loss):
    """functional.mse_loss()"""
    _function = staticmethod(F.mse_loss)

    def __init__(self, *, reduction="mean"):
        super().__init__(reduction=reduction)


class CrossEntropyLoss(_Loss):
    """functional.cross_entropy(): of logits and of classes or probabilities."""
    _function = staticmethod(F.cross_entropy)

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(("weight",), weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing)


class NLLLoss(_Loss):
    """functional.nll_loss(): of log probabilities and classes."""
    _function = staticmethod(F.nll_loss)

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean"):
        super().__init__(("weight",), weight=weight, ignore_index=ignore_index, reduction=reduction)


class BCELoss(_Loss):
    """functional.binary_cross_entropy(): of probabilities."""
    _function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight=None, *, reduction="mean"):
        super().__init__(("weight",), weight=weight, reduction=reduction)


class BCEWithLogitsLoss(_Loss):
    """functional.binary_cross_entropy_with_logits()"""
    _function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(self, weight=None, *, reduction="mean", pos_weight=None):
        super().__init__(("weight", "pos_weight"), weight=weight, reduction=reduction, pos_weight=pos_weight)


class SmoothL1Loss(_Loss):
    """functional.smooth_l1_loss()"""
    _function = staticmethod(F.smooth_l1_loss)

    def __init__(self, *, reduction="mean", beta=1.0):
        super().__init__(reduction=reduction, beta=beta)


class HuberLoss(_Loss):
    """functional.huber_loss()"""
    _function = staticmethod(F.huber_loss)

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction, delta=delta)


class KLDivLoss(_Loss):
    """functional.kl_div(): of log probabilities and probabilities."""
    _function = staticmethod(F.kl_div)

    def __init__(self, *, reduction="mean", log_target=False):
        super().__init__(reduction=reduction, log_target=log_target)


class PoissonNLLLoss(_Loss):
    """functional.poisson_nll_loss()"""
    _function = staticmethod(F.poisson_nll_loss)

    def __init__(self, log_input=True, full=False, *, eps=1e-8, reduction="mean"):
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)


class GaussianNLLLoss(_Loss):
    """functional.gaussian_nll_loss(): of means, targets and variances."""
    _function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(full=full, eps=eps, reduction=reduction)


class HingeEmbeddingLoss(_Loss):
    """functional.hinge_embedding_loss()"""
    _function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin=1.0, *, reduction="mean"):
        super().__init__(margin=margin, reduction=reduction)


class CosineEmbeddingLoss(_Loss):
    """functional.cosine_embedding_loss()"""
    _function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin=0.0, *, reduction="mean"):
        super().__init__(margin=margin, reduction=reduction)


class MarginRankingLoss(_Loss):
    """functional.margin_ranking_loss()"""
    _function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin=0.0, *, reduction="mean"):
        super().__init__(margin=margin, reduction=reduction)


class SoftMarginLoss(_Loss):
    """functional.soft_margin_loss()"""
    _function = staticmethod(F.soft_margin_loss)

    def __init__(self, *, reduction="mean"):
        super().__init__(reduction=reduction)


class TripletMarginLoss(_Loss):
    """functional.triplet_margin_loss()"""
    _function = staticmethod(F.triplet_margin_loss)

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, *, reduction="mean"):
        super().__init__(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)


class CTCLoss(_Loss):
    """functional.ctc_loss()"""
    _function = staticmethod(F.ctc_loss)

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)
