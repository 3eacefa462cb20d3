# Moeyard. SPDX-License-Identifier: Apache-2.0
"""The three tiny language models: their configurations and what is kept of each."""

import dataclasses

import torch
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

# One token is one byte of ASCII text; there are no special tokens.
_COMMON = dict(
    vocab_size=128,
    hidden_size=256,
    hidden_act="silu",
    num_attention_heads=4,
    max_position_embeddings=256,
    tie_word_embeddings=True,
    pad_token_id=None,
    bos_token_id=None,
    eos_token_id=None,
)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How one model is made. `layer` is the MoE layer that is kept, stored in `dtype`."""

    model_class: type
    config: object
    layer: int
    dtype: torch.dtype
    fused: bool  # experts as two 3-D tensors instead of three matrices each
    shards: int
    passages: tuple  # chapters whose beginnings give the hidden states; never trained on
    tokens: int  # of each passage
    seed: int
    bias_step: float = 0.0  # DeepSeek-V3's balancing: the bias moves by this much per training step


def recipes():
    return {
        "mixtral": Recipe(
            model_class=MixtralForCausalLM,
            config=MixtralConfig(
                **_COMMON,
                num_hidden_layers=2,
                num_key_value_heads=2,
                intermediate_size=96,
                num_local_experts=8,
                num_experts_per_tok=2,
                output_router_logits=True,
                router_aux_loss_coef=0.01,
            ),
            layer=1,
            dtype=torch.bfloat16,
            fused=False,
            shards=2,
            passages=("Psalms 23",),
            tokens=128,
            seed=1611,
        ),
        "qwen3_moe": Recipe(
            model_class=Qwen3MoeForCausalLM,
            config=Qwen3MoeConfig(
                **_COMMON,
                num_hidden_layers=3,
                num_key_value_heads=2,
                head_dim=64,
                intermediate_size=256,
                moe_intermediate_size=32,
                num_experts=24,
                num_experts_per_tok=4,
                norm_topk_prob=True,
                mlp_only_layers=[0],
                output_router_logits=True,
                router_aux_loss_coef=0.005,
            ),
            layer=2,
            dtype=torch.float16,
            fused=True,
            shards=1,
            passages=("Ecclesiastes 3",),
            tokens=110,
            seed=1612,
        ),
        "deepseek_v3": Recipe(
            model_class=DeepseekV3ForCausalLM,
            config=DeepseekV3Config(
                **_COMMON,
                num_hidden_layers=2,
                first_k_dense_replace=1,
                intermediate_size=256,
                moe_intermediate_size=32,
                n_routed_experts=16,
                n_shared_experts=2,
                num_experts_per_tok=4,
                n_group=4,
                topk_group=2,
                norm_topk_prob=True,
                routed_scaling_factor=2.5,
                q_lora_rank=96,
                kv_lora_rank=64,
                qk_nope_head_dim=32,
                qk_rope_head_dim=32,
                v_head_dim=64,
                num_mtp_layers=0,
            ),
            layer=1,
            dtype=torch.bfloat16,
            fused=False,
            shards=1,
            passages=("Ruth 1", "1 Corinthians 13"),
            tokens=56,
            seed=1613,
            bias_step=0.002,
        ),
    }


def build(recipe):
    torch.manual_seed(recipe.seed)
    model = recipe.model_class(recipe.config)
    model.set_experts_implementation("eager")  # the plain loop over experts
    return model


def moe_block(model, recipe):
    return model.model.layers[recipe.layer].mlp
