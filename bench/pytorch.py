"""The Llama-family module of `isogym bench train` in PyTorch, eager, with its fused attention: a training step (policy loss, clipping,
AdamW) and cached decoding with sampling. Prints one JSON object. pytorch.py MODEL_JSON ROWS LENGTH DECODE_ROWS SECONDS"""
import json
import sys
import time

import torch
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(2)
config = json.loads(sys.argv[1])
B, T = int(sys.argv[2]), int(sys.argv[3])
decode_rows = [int(n) for n in sys.argv[4].split(",")]
seconds = float(sys.argv[5])
V, L, d, H, K, hw, ff = (config[k] for k in ("vocabulary", "layers", "width", "heads", "kvHeads", "headWidth", "hidden"))
PROMPT, NEW = 8, 32

P = {"embedding": torch.nn.Parameter(torch.randn(V, d) * 0.02), "norm": torch.nn.Parameter(torch.ones(d))}
for i in range(L):
    shapes = {"qkv": (d, (H + 2 * K) * hw), "o": (H * hw, d), "gate": (d, ff), "up": (d, ff), "down": (ff, d)}
    for name, shape in shapes.items():
        P[f"{i}.{name}"] = torch.nn.Parameter(torch.randn(*shape) * 0.02)
    for name in ("n1", "n2"):
        P[f"{i}.{name}"] = torch.nn.Parameter(torch.ones(d))
angle = torch.arange(1024)[:, None] * config["ropeBase"] ** (-torch.arange(0, hw, 2) / hw)
COS, SIN = torch.cat([angle.cos()] * 2, 1), torch.cat([angle.sin()] * 2, 1)


def turn(x, cos, sin):
    half = hw // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def block(x, i, attend):
    y = F.rms_norm(x, (d,), P[f"{i}.n1"], config["epsilon"])
    x = x + attend(y @ P[f"{i}.qkv"], i) @ P[f"{i}.o"]
    y = F.rms_norm(x, (d,), P[f"{i}.n2"], config["epsilon"])
    return x + (F.silu(y @ P[f"{i}.gate"]) * (y @ P[f"{i}.up"])) @ P[f"{i}.down"]


def head(x):
    return F.rms_norm(x, (d,), P["norm"], config["epsilon"]) @ P["embedding"].T


def forward(ids):
    b, t = ids.shape

    def attend(fused, _):
        q, k, v = fused.split([H * hw, K * hw, K * hw], -1)
        q, k, v = (z.view(b, t, -1, hw).transpose(1, 2) for z in (q, k, v))
        q, k = turn(q, COS[:t], SIN[:t]), turn(k, COS[:t], SIN[:t])
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=K != H).transpose(1, 2).reshape(b, t, -1)

    x = P["embedding"][ids]
    for i in range(L):
        x = block(x, i, attend)
    return head(x)


ids = torch.randint(0, V, (B, T))
advantages = torch.where(torch.arange(B) % 2 == 0, 1.0, -1.0)[:, None]
behaviour = torch.full((B, T - 1), -torch.log(torch.tensor(float(V))).item())
optimizer = torch.optim.AdamW(P.values(), 1e-5, (0.9, 0.95), 1e-8, 0.0)


def step():
    logp = torch.log_softmax(forward(ids)[:, :-1], -1)
    own = logp.gather(-1, ids[:, 1:, None])[..., 0]
    # As isogym's step, which reports the entropy.
    entropy = -(logp.detach().exp() * logp.detach()).sum(-1).mean()
    ratio = torch.exp(own - behaviour)
    loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(P.values(), 1.0)
    optimizer.step()
    return loss.item(), entropy.item(), norm.item()


@torch.no_grad()
def decode(rows):
    keys = [torch.zeros(rows, K, PROMPT + NEW, hw) for _ in range(L)]
    values = [torch.zeros(rows, K, PROMPT + NEW, hw) for _ in range(L)]
    tokens, at = torch.randint(0, V, (rows, PROMPT)), 0
    for _ in range(NEW):
        t = tokens.shape[1]

        def attend(fused, i):
            q, k, v = fused.split([H * hw, K * hw, K * hw], -1)
            q, k, v = (z.view(rows, t, -1, hw).transpose(1, 2) for z in (q, k, v))
            cos, sin = COS[at : at + t], SIN[at : at + t]
            keys[i][:, :, at : at + t], values[i][:, :, at : at + t] = turn(k, cos, sin), v
            y = F.scaled_dot_product_attention(
                turn(q, cos, sin), keys[i][:, :, : at + t], values[i][:, :, : at + t], is_causal=t > 1, enable_gqa=K != H
            )
            return y.transpose(1, 2).reshape(rows, t, -1)

        x = P["embedding"][tokens]
        for i in range(L):
            x = block(x, i, attend)
        logp = torch.log_softmax(head(x[:, -1]), -1)
        drawn = torch.multinomial(logp.exp(), 1)
        logp.gather(-1, drawn).tolist()
        at += t
        tokens = drawn


def median(run):
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < seconds and len(times) < 20):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


print(
    json.dumps(
        {
            "torch": torch.__version__,
            "parameters": sum(p.numel() for p in P.values()),
            "trainStepMs": median(step),
            "decode": [{"rows": n, "msPerToken": median(lambda: decode(n)) / NEW} for n in decode_rows],
        }
    )
)
