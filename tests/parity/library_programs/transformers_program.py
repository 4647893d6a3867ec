"""transformers: an encoder, decoders, an encoder-decoder and a vision model from their configurations; training, and greedy generation."""

import torch
from report import show
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)  # fmt: skip

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
torch.manual_seed(0)
ids = torch.randint(0, 100, (2, 16))
classes = torch.tensor([0, 1])
models = {
    "bert": (BertForSequenceClassification(BertConfig(vocab_size=100, max_position_embeddings=64, **SMALL, **STILL)), {"input_ids": ids, "labels": classes}),
    "gpt2": (GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)), {"input_ids": ids, "labels": ids}),
    "llama": (LlamaForCausalLM(LlamaConfig(vocab_size=100, num_key_value_heads=2, max_position_embeddings=64, **SMALL)), {"input_ids": ids, "labels": ids}),
    "t5": (T5ForConditionalGeneration(T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0)), {"input_ids": ids, "labels": ids}),
    "vit": (ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=2, **SMALL, **STILL)), {"pixel_values": torch.randn(2, 3, 16, 16), "labels": classes}),
}  # fmt: skip
for name, (model, inputs) in models.items():
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    show(**{name: losses})
llama = models["llama"][0].eval()
show(generated=llama.generate(ids[:, :4], max_new_tokens=5, do_sample=False, pad_token_id=0))
