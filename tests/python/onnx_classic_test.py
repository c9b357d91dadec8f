"""Classic models (ai.onnx.ml) through tuff.onnx: trees of all modes, linear models, support vector machines, features.
The models are made here, with numbers of a seed, and run by onnxruntime too, or by the package onnx's reference.
Exit code 77 without these packages."""
import itertools
import pathlib
import sys
import tempfile
import unittest

import numpy as np

import tuff

try:
    import onnx
    import onnx.reference
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError:
    onnx = None

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def model(op, x, outputs, version, attributes):
    node = helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, None)],
                              [helper.make_empty_tensor_value_info(o) for o in outputs])
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


class ClassicTest(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(4)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.onnx"

    def found(self, made, x):
        self.path.write_bytes(made.SerializeToString())
        return [t.numpy() for t in tuff.onnx.load(self.path)({"x": x}).values()]

    def check(self, op, x, outputs=1, version=1, **attributes):
        made = model(op, x, ["y", "z"][:outputs], version, attributes)
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        for wanted, found in zip(session.run(None, {"x": x}), self.found(made, x), strict=True):
            self.assertEqual(wanted.dtype, found.dtype)
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)

    def rows(self, count=20, width=4, dtype=np.float32):
        """Halves, so that some are equal to thresholds, and a few that are missing."""
        x = (self.random.integers(-4, 5, (count, width)) / 2).astype(dtype)
        x[self.random.random(x.shape) < 0.1] = np.nan
        return x

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32).ravel().tolist()


class Trees(ClassicTest):
    def trees(self, count, modes, features=4, most=5):
        """Attributes of nodes, and the leaves: trees that are deep on one side, of several depths."""
        names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                 "missing_value_tracks_true"]
        nodes, leaves = {"nodes_" + n: [] for n in names}, []
        for tree in range(count):
            ids = itertools.count()

            def add(depth, own):
                leaf = depth == most or depth > 0 and self.random.random() < 0.3
                branches = (0, 0) if leaf else (next(ids), next(ids))
                row = [tree, own, int(self.random.integers(features)), float(self.random.integers(-4, 5)) / 2,
                       "LEAF" if leaf else modes[int(self.random.integers(len(modes)))], *branches,
                       int(self.random.integers(2))]
                for values, value in zip(nodes.values(), row, strict=True):
                    values.append(value)
                if leaf:
                    leaves.append((tree, own))
                    return
                for b in branches:
                    add(depth + 1, b)
            add(0, next(ids))
        return nodes, leaves

    def votes(self, kind, leaves, targets, several, lowest=-1):
        rows = [(*leaf, t, self.random.uniform(lowest, 1)) for leaf in leaves
                for t in self.random.permutation(targets)[:targets if several else 1]]
        fields = zip([kind + "_treeids", kind + "_nodeids", kind + "_ids", kind + "_weights"],
                     zip(*rows, strict=True), strict=True)
        return {name: [float(v) if name.endswith("weights") else int(v) for v in values] for name, values in fields}

    def test_regressors(self):
        for mode in MODES:
            self.check_regressor([mode], "SUM", 1, False)
        for how, targets in itertools.product(["SUM", "AVERAGE", "MIN", "MAX"], [1, 3]):
            self.check_regressor(MODES, how, targets, True)
            self.check_regressor(["BRANCH_LEQ"], how, targets, False)

    def check_regressor(self, modes, how, targets, several):
        nodes, leaves = self.trees(3, modes)
        # onnxruntime adds none to a target that no leaf names, which the standard does
        base = {"base_values": self.floats(targets)} if several or targets == 1 else {}
        with self.subTest(modes=modes, how=how, targets=targets):
            self.check("TreeEnsembleRegressor", self.rows(), aggregate_function=how, n_targets=targets, **base, **nodes,
                       **self.votes("target", leaves, targets, several))

    def test_of_other_types(self):
        nodes, leaves = self.trees(3, ["BRANCH_LEQ"])
        votes = self.votes("target", leaves, 1, False)
        self.check("TreeEnsembleClassifier", self.random.integers(-4, 5, (9, 4)), 2, classlabels_int64s=[0, 1, 2],
                   **nodes, **self.votes("class", leaves, 3, True))
        for name, of in (("nodes_values", nodes), ("target_weights", votes)):
            values = np.array(of.pop(name)) + 1e-9
            of[name + "_as_tensor"] = helper.make_tensor("t", TensorProto.DOUBLE, values.shape, values)
        self.check("TreeEnsembleRegressor", self.rows(dtype=np.float64), version=3, n_targets=1, **nodes, **votes)

    def test_transforms_of_regressors(self):
        nodes, leaves = self.trees(3, ["BRANCH_LT"])
        for transform, targets in itertools.product(TRANSFORMS, [1, 3]):
            self.check("TreeEnsembleRegressor", self.rows(), n_targets=targets, post_transform=transform, **nodes,
                       **self.votes("target", leaves, targets, False))
        few = self.votes("target", leaves, 1, False, lowest=0)
        few["target_weights"] = [w / 3 for w in few["target_weights"]]
        self.check("TreeEnsembleRegressor", self.rows(), n_targets=1, post_transform="PROBIT", **nodes, **few)

    def test_classifiers(self):
        nodes, leaves = self.trees(4, ["BRANCH_LEQ"])
        for transform in TRANSFORMS:
            votes = self.votes("class", leaves, 3, True, lowest=0.1)
            for base in ({}, {"base_values": self.floats(3)}):
                self.check("TreeEnsembleClassifier", self.rows(), 2, classlabels_int64s=[7, -2, 9],
                           post_transform=transform, **nodes, **votes, **base)

    def test_two_classes_of_one_score(self):
        nodes, leaves = self.trees(4, ["BRANCH_LEQ"])
        for transform, lowest, base in itertools.product(["NONE", "LOGISTIC"], [-1, 0], [{}, {"base_values": [-0.3]}]):
            with self.subTest(transform=transform, lowest=lowest, base=base):
                self.check("TreeEnsembleClassifier", self.rows(), 2, classlabels_int64s=[7, -2],
                           post_transform=transform, **nodes, **base,
                           **self.votes("class", leaves, 1, False, lowest=lowest))

    def test_ensembles(self):
        """Those of version 5: the same trees, leaves apart, and sets of members."""
        for dtype, how in itertools.product([np.float32, np.float64], [0, 1, 2, 3]):
            def tensor(values, dtype=dtype):
                return onnx.numpy_helper.from_array(np.array(values).astype(dtype))
            # A node and the leaf or node that each branch leads to; the last node's feature is a set's member.
            x = self.rows(dtype=dtype)
            made = model("TreeEnsemble", x, ["y"], 5, {
                "n_targets": 2, "aggregate_function": how, "tree_roots": [0, 3], "nodes_featureids": [0, 1, 2, 3],
                "nodes_modes": tensor([0, 6, 4, 6], np.uint8), "nodes_splits": tensor([0.5, 0, 1, 0]),
                "nodes_truenodeids": [1, 0, 2, 4], "nodes_trueleafs": [0, 1, 1, 1],
                "nodes_falsenodeids": [2, 1, 3, 5], "nodes_falseleafs": [0, 1, 1, 1],
                "leaf_targetids": [0, 1, 0, 1, 1, 0], "leaf_weights": tensor(self.floats(6)),
                "membership_values": tensor([1.5, -0.5, 2, np.nan, 0.5, -1, np.nan]),
                "nodes_missing_value_tracks_true": [0, 1, 0, 0]})
            wanted = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})[0]
            # where no leaf names a target the reference gives the largest number of the type
            np.testing.assert_allclose(self.found(made, x)[0], np.where(abs(wanted) > 1e30, 0, wanted), rtol=1e-6)


class Others(ClassicTest):
    def test_linear(self):
        for transform, targets in itertools.product(TRANSFORMS, [1, 3]):
            given = {"coefficients": self.floats(targets, 2), "intercepts": self.floats(targets),
                     "post_transform": transform}
            x = self.random.standard_normal((9, 2)).astype(np.float32)
            self.check("LinearRegressor", x, targets=targets, **given)
            if targets > 1:
                self.check("LinearClassifier", x, 2, classlabels_ints=[7, 5, 9], **given)
            elif transform in ("NONE", "LOGISTIC"):
                self.check("LinearClassifier", x, 2, classlabels_ints=[7, 5], **given)

    def test_support_vectors(self):
        x = self.random.standard_normal((9, 2)).astype(np.float32)
        for kind in ("LINEAR", "POLY", "RBF", "SIGMOID"):
            given = {"kernel_type": kind, "kernel_params": [0.5, 1.0, 3.0], "support_vectors": self.floats(6, 2)}
            for one_class in (0, 1):
                self.check("SVMRegressor", x, coefficients=self.floats(6), n_supports=6, rho=[-0.1],
                           one_class=one_class, **given)
            for count in ([4, 2], [3, 1, 2], [1, 2, 1, 2]):
                machines = len(count) * (len(count) - 1) // 2
                for transform in ("NONE", "LOGISTIC"):
                    self.check("SVMClassifier", x, 2, coefficients=self.floats(len(count) - 1, 6), **given,
                               vectors_per_class=count, rho=self.floats(machines),
                               classlabels_ints=[7, 5, 9, 1][:len(count)], post_transform=transform)
                if kind == "RBF":
                    self.check("SVMClassifier", x, 2, coefficients=self.floats(len(count) - 1, 6), **given,
                               vectors_per_class=count, rho=self.floats(machines), prob_a=[-1.5] * machines,
                               prob_b=self.floats(machines), classlabels_ints=[7, 5, 9, 1][:len(count)])
        self.check("SVMClassifier", x, 2, coefficients=self.floats(3, 2), rho=[0.2], classlabels_ints=[7, 5, 9],
                   kernel_params=[0.0, 0.0, 0.0], kernel_type="LINEAR")

    def test_features(self):
        x = self.rows(9, 3)
        x[np.isnan(x)] = 0
        for norm in ("MAX", "L1", "L2"):
            self.check("Normalizer", x, norm=norm)
        for numbers in (1, 3):
            for given in (x, x.astype(np.int64), x.astype(np.float64)):
                self.check("Scaler", given, offset=self.floats(numbers), scale=self.floats(numbers))
            self.check("Imputer", x, imputed_value_floats=self.floats(numbers), replaced_value_float=0.5)
            self.check("Imputer", self.rows(9, 3), imputed_value_floats=self.floats(numbers),
                       replaced_value_float=float("nan"))
            self.check("Imputer", x.astype(np.int64), imputed_value_int64s=list(range(5, 5 + numbers)),
                       replaced_value_int64=1)
        for width in (2, 3, 5):
            self.check("FeatureVectorizer", x, inputdimensions=[width])
        for given in (x.astype(np.int64), x):
            self.check("OneHotEncoder", given, cats_int64s=[0, 2, -1])

    def test_labels(self):
        whole = self.random.integers(0, 5, (3, 4))
        floats = whole.astype(np.float32)
        self.check("LabelEncoder", whole, version=2, keys_int64s=[1, 4, 3], values_floats=[0.5, 7, 1], default_float=9.)
        self.check("LabelEncoder", floats, version=2, keys_floats=[1., 4], values_int64s=[7, 2])
        self.check("LabelEncoder", floats, version=2, keys_floats=[1., 4], values_floats=[7., 2])
        keys = np.array([3, 1], np.float64)
        values = np.array([-3, 1 << 40], np.int64)
        self.check("LabelEncoder", whole.astype(np.float64), version=4, keys_tensor=onnx.numpy_helper.from_array(keys),
                   values_tensor=onnx.numpy_helper.from_array(values),
                   default_tensor=onnx.numpy_helper.from_array(np.array([8], np.int64)))


if __name__ == "__main__":
    if not onnx:
        print("skipped: this Python has no onnx and onnxruntime")
        sys.exit(77)
    unittest.main()
