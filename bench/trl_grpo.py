"""TRL's GRPOTrainer on the CPU: a Llama of 0.43 M parameters from scratch, prompts of 8 tokens, 64 completions of 32 forced tokens a
step in groups of 8, a trivial reward, float32. Prints one JSON object. trl_grpo.py STEPS"""
import json
import os
import statistics
import sys
import tempfile
import time

os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1")
import torch
import transformers
import trl
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

torch.manual_seed(0)
torch.set_num_threads(2)
steps = int(sys.argv[1])
V = 256
vocab = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i for i in range(2, V)}}
raw = Tokenizer(models.WordLevel(vocab, unk_token="<pad>"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", padding_side="left")
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=V, hidden_size=128, intermediate_size=344, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        max_position_embeddings=512, tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )
)  # fmt: skip

generating, steps_at = [], []


class Timed(GRPOTrainer):
    def _generate_and_score_completions(self, inputs):
        start = time.perf_counter()
        out = super()._generate_and_score_completions(inputs)
        generating.append(time.perf_counter() - start)
        return out

    def training_step(self, *args, **named):
        steps_at.append(time.perf_counter())
        return super().training_step(*args, **named)


def reward(completions, **_):
    return [float(sum(word == "w7" for word in text.split())) for text in completions]


data = Dataset.from_list([{"prompt": " ".join(f"w{2 + (i * 7 + j) % 250}" for j in range(8))} for i in range(256)])
with tempfile.TemporaryDirectory() as out:
    # Gradient checkpointing, TRL's default, would be slower here.
    args = GRPOConfig(
        output_dir=out, use_cpu=True, bf16=False, fp16=False, per_device_train_batch_size=64, num_generations=8,
        gradient_accumulation_steps=1, max_completion_length=32, max_steps=steps, beta=0.0, learning_rate=1e-4, logging_steps=1,
        report_to=[], save_strategy="no", disable_tqdm=True, gradient_checkpointing=False, dataloader_pin_memory=False,
        generation_kwargs={"min_new_tokens": 32}, temperature=1.0,
    )  # fmt: skip
    trainer = Timed(model=model, reward_funcs=reward, args=args, train_dataset=data, processing_class=tokenizer)
    sys.stdout, shown = sys.stderr, sys.stdout
    trainer.train()
    sys.stdout = shown
    lengths = [log["completions/mean_length"] for log in trainer.state.log_history if "completions/mean_length" in log]

# From the start of one step to that of the next; the first three warm up.
step = statistics.median(b - a for a, b in zip(steps_at[3:], steps_at[4:]))
generate = statistics.median(generating[3:])
print(
    json.dumps(
        {
            "trl": trl.__version__, "transformers": transformers.__version__, "torch": torch.__version__,
            "parameters": sum(p.numel() for p in model.parameters()), "completionLength": lengths[-1],
            "stepMs": 1e3 * step, "generateMs": 1e3 * generate, "updateMs": 1e3 * (step - generate),
        }
    )  # fmt: skip
)
