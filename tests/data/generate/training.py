# Moeyard. SPDX-License-Identifier: Apache-2.0
"""Trains a byte-level language model for some minutes."""

import math
import time

import torch

_BATCH = 16
_LENGTH = 128
_WARMUP = 30
_PEAK_RATE = 3e-3


def encode(text):
    return torch.frombuffer(bytearray(text.encode("ascii")), dtype=torch.uint8).long()


def _balance_by_bias(model, step_size):
    """After each step an expert's bias falls if it got more than its share of the slots, and rises if less."""
    gates = [module for module in model.modules() if hasattr(module, "e_score_correction_bias")]
    chosen = {}
    for gate in gates:
        gate.register_forward_hook(lambda module, _, output: chosen.__setitem__(module, output[2]))

    def step():
        for gate in gates:
            load = torch.bincount(chosen[gate].flatten(), minlength=gate.num_experts).float()
            gate.e_score_correction_bias += step_size * torch.sign(load.mean() - load)

    return step


def train(model, text, steps, seed, bias_step):
    """Returns a record with the mean loss (nats per byte, no balancing terms) of the first and last 10 steps."""
    data = encode(text)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    balance = _balance_by_bias(model, bias_step) if bias_step else lambda: None
    losses = []
    started = time.monotonic()
    model.train()
    for step in range(steps):
        warm = min(1.0, (step + 1) / _WARMUP)
        optimizer.param_groups[0]["lr"] = (
            _PEAK_RATE * warm * (0.05 + 0.95 * math.cos(step / steps * math.pi / 2) ** 2)
        )
        starts = torch.randint(len(data) - _LENGTH - 1, (_BATCH, 1), generator=generator)
        windows = data[starts + torch.arange(_LENGTH + 1)]
        output = model(input_ids=windows[:, :-1], use_cache=False)
        loss = torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), windows[:, 1:].flatten())
        losses.append(loss.item())
        aux = getattr(output, "aux_loss", None)
        if aux is not None:
            loss = loss + model.config.router_aux_loss_coef * aux
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        balance()
        if step % 50 == 0 or step == steps - 1:
            print(
                f"  step {step:4} of {steps}: loss {losses[-1]:.3f}, {time.monotonic() - started:.0f} s",
                flush=True,
            )
    model.eval()
    return {
        "steps": steps,
        "bytes_per_step": _BATCH * _LENGTH,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(time.monotonic() - started),
        "loss_first_10_steps": round(sum(losses[:10]) / len(losses[:10]), 3),
        "loss_last_10_steps": round(sum(losses[-10:]) / len(losses[-10:]), 3),
    }


@torch.no_grad()
def passage_loss(model, windows):
    logits = model(input_ids=windows, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), windows[:, 1:].flatten())
    return round(loss.item(), 3)
