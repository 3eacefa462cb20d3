# Moeyard. SPDX-License-Identifier: Apache-2.0
"""Makes the MoE layers of tests/data: trains tiny language models and keeps one MoE layer of each.

Per model it writes config.json and the layer's tensors as Hugging Face saves them, hidden states that enter
the layer, what transformers computes from them in fp32, an expert placement, and provenance.json.
"""

import argparse
import copy
import json
import pathlib
import platform
import tempfile

import kjv
import models
import placement
import torch
import training
import transformers
from safetensors.torch import load_file, save_file

_RANKS = 4
_HF_METADATA = {"format": "pt"}  # what save_pretrained writes


def as_stored(model, dtype):
    """A copy in the stored type. As in DeepSeek's own checkpoints the routing bias stays fp32."""
    stored = copy.deepcopy(model)
    biases = {m: m.e_score_correction_bias for m in stored.modules() if hasattr(m, "e_score_correction_bias")}
    stored.to(dtype)
    for module, bias in biases.items():
        module.e_score_correction_bias = bias.float()
    return stored


def write_layer(model, recipe, out):
    """Lets transformers write the model, and keeps config.json and the tensors of one MoE block."""
    with tempfile.TemporaryDirectory() as whole:
        as_stored(model, recipe.dtype).save_pretrained(whole, save_original_format=not recipe.fused)
        (out / "config.json").write_bytes((pathlib.Path(whole) / "config.json").read_bytes())
        tensors = load_file(pathlib.Path(whole) / "model.safetensors")
    block = tuple(f"model.layers.{recipe.layer}.{name}." for name in ("mlp", "block_sparse_moe"))
    tensors = {name: tensor for name, tensor in sorted(tensors.items()) if name.startswith(block)}
    if recipe.shards == 1:
        save_file(tensors, out / "model.safetensors", metadata=_HF_METADATA)
        return
    names = list(tensors)
    weight_map = {}
    for shard in range(recipe.shards):
        file = f"model-{shard + 1:05}-of-{recipe.shards:05}.safetensors"
        mine = names[shard * len(names) // recipe.shards : (shard + 1) * len(names) // recipe.shards]
        save_file({name: tensors[name] for name in mine}, out / file, metadata=_HF_METADATA)
        weight_map.update({name: file for name in mine})
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


@torch.no_grad()
def hidden_states(model, recipe, windows):
    """What enters the MoE block, after the post-attention norm, as the model reads the passages: [B, S, H]."""
    entering = []
    hook = models.moe_block(model, recipe).register_forward_pre_hook(lambda _, args: entering.append(args[0]))
    model(input_ids=windows, use_cache=False)
    hook.remove()
    return entering[0]


def load_block(recipe, out):
    """The MoE block as transformers loads it from the files just written, widened to fp32."""
    model, report = recipe.model_class.from_pretrained(out, dtype=torch.float32, output_loading_info=True)
    prefix = f"model.layers.{recipe.layer}.mlp."
    lost = [name for name in report["missing_keys"] if name.startswith(prefix)]
    if lost or report["unexpected_keys"] or report["mismatched_keys"]:
        raise SystemExit(f"transformers doesn't read the stored layer: {lost} {report['unexpected_keys']}")
    model.set_experts_implementation("eager")
    return models.moe_block(model.eval(), recipe)


@torch.no_grad()
def expectation(block, hidden):
    """The block's output, and its choice by falling choice score (the smaller expert id first in a tie)."""
    expected = block(hidden.clone())
    logits, weights, ids = block.gate(hidden.flatten(0, -2))
    bias = getattr(block.gate, "e_score_correction_bias", None)
    score = logits if bias is None else logits.sigmoid() + bias
    ids, order = ids.sort(dim=-1)
    by_score = score.gather(1, ids).argsort(dim=-1, descending=True, stable=True)
    ids = ids.gather(1, by_score)
    weights = weights.gather(1, order).gather(1, by_score)
    return {"expected": expected, "topk_ids": ids.int(), "topk_weights": weights.float()}


def provenance(recipe, trained, heldout_loss, load):
    return {
        "text": f"King James Bible, Debian package bible-kjv-text {kjv.package_version()}",
        "passages": list(recipe.passages),
        "passage_loss": heldout_loss,
        "seed": recipe.seed,
        "training": trained,
        "tokens_per_expert": load,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def make(name, recipe, chapters, steps, out):
    print(f"{name}: training", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    model = models.build(recipe)
    heldout = {passage for other in models.recipes().values() for passage in other.passages}
    text = "".join(body for chapter, body in chapters.items() if chapter not in heldout)
    trained = training.train(model, text, steps, recipe.seed, recipe.bias_step)

    windows = torch.stack([training.encode(chapters[p])[: recipe.tokens] for p in recipe.passages])
    write_layer(model, recipe, out)
    hidden = hidden_states(model, recipe, windows).to(recipe.dtype)
    wanted = expectation(load_block(recipe, out), hidden.float())
    if len(recipe.passages) == 1:  # stored as [T, H]; several passages stay [B, S, H]
        hidden, wanted["expected"] = hidden[0], wanted["expected"][0]
    save_file({"hidden_states": hidden.contiguous()}, out / "hidden.safetensors")
    save_file({key: value.contiguous() for key, value in wanted.items()}, out / "expected.safetensors")

    experts = models.moe_block(model, recipe).experts.num_experts
    load = torch.bincount(wanted["topk_ids"].flatten(), minlength=experts).tolist()
    instances = (experts * 5 // 4 + _RANKS - 1) // _RANKS * _RANKS  # about a quarter more than experts
    write_json(out / "placement.json", {"phy2log": placement.place(load, instances, _RANKS)})
    record = provenance(recipe, trained, training.passage_loss(model, windows), load)
    write_json(out / "provenance.json", record)
    print(f"{name}: {json.dumps(record)}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", help=f"which to make, of {' '.join(models.recipes())} (default: all)"
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path(__file__).resolve().parent.parent,
        help="folder that gets one folder per model (default: tests/data)",
    )
    parser.add_argument("--steps", type=int, default=600, help="training steps (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: %(default)s)")
    args = parser.parse_args()
    unknown = set(args.models) - set(models.recipes())
    if unknown:
        parser.error(f"no model is called {' or '.join(sorted(unknown))}")

    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()  # no report of the layers that a stored file leaves out
    transformers.logging.disable_progress_bar()
    chapters = kjv.read_chapters()
    for name, recipe in models.recipes().items():
        if not args.models or name in args.models:
            make(name, recipe, chapters, args.steps, args.out / name)


if __name__ == "__main__":
    main()
