# Moeyard. SPDX-License-Identifier: Apache-2.0
"""Recomputes every layer of tests/data from its stored files and compares with what transformers computed.

Needs numpy only: the files are read and the formulas are written here anew, in float64, token by token.
Prints the largest error per layer; exits with 1 if a layer differs, a placement is unusable or the folder
exceeds 4 MB.
"""

import argparse
import json
import pathlib

import numpy as np

_RANKS = 4
_MAX_FOLDER_BYTES = 4_000_000
_OUTPUT_BOUND = 1e-6  # of the largest |expected|, which fp32 sums of some hundred terms have rounded
_WEIGHT_BOUND = 1e-6
_TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I32": np.int32}


def read_safetensors(path):
    """{name: array}; floating-point values widened to float64."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = np.frombuffer(raw[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":  # the upper half of an fp32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = values if entry["dtype"] == "I32" else values.astype(np.float64)
    return tensors


def read_layer(folder):
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read_safetensors(folder / "model.safetensors")
    weight_map = json.loads(index.read_text())["weight_map"]
    shards = {file: read_safetensors(folder / file) for file in sorted(set(weight_map.values()))}
    return {name: shards[file][name] for name, file in weight_map.items()}


class Layer:
    """One MoE layer, whatever names its family and its form give the matrices."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.family = self.config["model_type"]
        self.top_k = self.config["num_experts_per_tok"]
        self._tensors = read_layer(folder)
        (gate,) = [name for name in self._tensors if name.endswith(".gate.weight")]
        self._block = gate[: -len("gate.weight")]
        self.number = int(gate.split("layers.")[1].split(".")[0])
        self.router = self._tensors[gate]
        self.bias = self._tensors.get(self._block + "gate.e_score_correction_bias")
        self.experts = [self._expert(e) for e in range(len(self.router))]
        self.shared = self._mlp("shared_experts.", "gate_proj", "up_proj", "down_proj")

    def _mlp(self, name, *parts):
        names = [f"{self._block}{name}{part}.weight" for part in parts]
        return tuple(self._tensors[n] for n in names) if names[0] in self._tensors else None

    def _expert(self, e):
        fused = self._tensors.get(self._block + "experts.gate_up_proj")
        if fused is not None:
            gate, up = np.split(fused[e], 2)
            return gate, up, self._tensors[self._block + "experts.down_proj"][e]
        name = f"experts.{e}."
        return self._mlp(name, "w1", "w3", "w2") or self._mlp(name, "gate_proj", "up_proj", "down_proj")

    def form(self):
        experts = [name for name in self._tensors if ".experts." in name]
        return "fused" if len(experts) == 2 else f"{len(experts)} matrices"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def best(scores, count):
    """Indices of the largest scores in falling order; the smaller index first in a tie."""
    return np.argsort(-scores, kind="stable")[:count]


def gate(layer, x, lost_groups=-np.inf):
    """Returns the chosen experts, their weights, and by how much the last one won over the first one lost."""
    logits = layer.router @ x
    config = layer.config
    if layer.family == "deepseek_v3":
        scores = sigmoid(logits)
        choice = scores + layer.bias
        groups = choice.reshape(config["n_group"], -1)
        group_scores = np.sort(groups, axis=1)[:, -2:].sum(axis=1)
        kept = best(group_scores, config["topk_group"])
        ranked = np.sort(group_scores)[::-1]
        group_margin = ranked[config["topk_group"] - 1] - ranked[config["topk_group"]]
        masked = np.full_like(groups, lost_groups)
        masked[kept] = groups[kept]
        choice = masked.ravel()
        normalise, factor = config["norm_topk_prob"], config["routed_scaling_factor"]
    else:
        scores = np.exp(logits - logits.max())
        scores /= scores.sum()
        choice = scores
        group_margin = np.inf
        normalise, factor = layer.family == "mixtral" or config["norm_topk_prob"], 1.0
    order = best(choice, layer.top_k + 1)
    ids = order[: layer.top_k]
    weights = scores[ids] / (scores[ids].sum() if normalise else 1.0) * factor
    return ids, weights, min(group_margin, choice[ids[-1]] - choice[order[-1]])


def mlp(matrices, x):
    gate_proj, up_proj, down_proj = matrices
    g = gate_proj @ x
    return down_proj @ (g * sigmoid(g) * (up_proj @ x))


def forward(layer, x, ids, weights):
    y = sum(weight * mlp(layer.experts[e], x) for e, weight in zip(ids, weights))
    return y if layer.shared is None else y + mlp(layer.shared, x)


def check_placement(folder, experts):
    phy2log = json.loads((folder / "placement.json").read_text())["phy2log"]
    replicas = np.bincount(phy2log, minlength=experts)
    good = (
        len(phy2log) % _RANKS == 0
        and len(replicas) == experts
        and 1 <= replicas.min()
        and replicas.max() <= _RANKS
    )
    print(
        f"  placement: {len(phy2log)} instances, at most {replicas.max()} of an expert"
        f"{'' if good else ': UNUSABLE'}"
    )
    return good


def check(folder):
    layer = Layer(folder)
    hidden = read_safetensors(folder / "hidden.safetensors")["hidden_states"]
    stored = read_safetensors(folder / "expected.safetensors")
    rows = hidden.reshape(-1, hidden.shape[-1])
    routes = [gate(layer, x) for x in rows]
    ids = np.array([route[0] for route in routes])
    weights = np.array([route[1] for route in routes])
    output = np.array([forward(layer, x, i, w) for x, i, w in zip(rows, ids, weights)])
    expected = stored["expected"].reshape(output.shape)

    output_error = np.abs(output - expected).max()
    largest = np.abs(expected).max()
    weight_error = np.abs(weights - stored["topk_weights"]).max()
    other_choice = int((ids != stored["topk_ids"]).any(axis=1).sum())
    margin = min(route[2] for route in routes)
    load = np.bincount(ids.ravel(), minlength=len(layer.experts))
    print(
        f"{folder.name}: layer {layer.number}, {len(layer.experts)} experts ({layer.form()}), "
        f"I {len(layer.experts[0][0])}, K {layer.top_k}, hidden states {list(hidden.shape)}"
    )
    print(f"  output: largest error {output_error:.2e} where the largest value is {largest:.3g}")
    print(
        f"  gating: largest weight error {weight_error:.2e}, {other_choice} tokens with another choice; "
        f"the closest choice was won by {margin:.1e}"
    )
    print(f"  tokens per expert: {load.min()} to {load.max()}")
    if layer.bias is not None:
        zeroed = sum(list(gate(layer, x, lost_groups=0.0)[0]) != list(i) for x, i in zip(rows, ids))
        lowest = min((sigmoid(layer.router @ x) + layer.bias)[i].min() for x, i in zip(rows, ids))
        print(
            f"  bias: {layer.bias.min():.3f} to {layer.bias.max():.3f}; the lowest chosen biased score is "
            f"{lowest:.3f}; masking lost groups with 0 instead of -inf changes {zeroed} tokens"
        )
        if zeroed:
            return False
    good = output_error <= _OUTPUT_BOUND * largest and weight_error <= _WEIGHT_BOUND and other_choice == 0
    return check_placement(folder, len(layer.experts)) and good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=pathlib.Path,
        default=pathlib.Path(__file__).resolve().parent.parent,
        help="folder with one folder per model (default: tests/data)",
    )
    data = parser.parse_args().data
    folders = sorted(config.parent for config in data.glob("*/config.json"))
    if not folders:
        parser.error(f"{data} has no model")
    good = all([check(folder) for folder in folders])
    size = sum(f.stat().st_size for f in data.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    print(f"{size} bytes in all, of {_MAX_FOLDER_BYTES}")
    good = good and size <= _MAX_FOLDER_BYTES
    print("PASS" if good else "FAIL")
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
