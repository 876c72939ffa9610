"""What Boolean-aware attention costs: Bool-BERT against plain BERT of the same size, interleaved in one run.

python bench/attention.py                          # inference and a training step, MiniLM's size, on this machine
python bench/attention.py --size base --compile --dtype bfloat16 --shapes 1x64 32x64 256x64
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from transformers import BertConfig, BertModel, HfArgumentParser

from boolbert import BoolBertConfig, BoolBertModel

SIZES = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "base": {},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}


@dataclass
class Arguments:
    size: str = field(default="minilm", metadata={"help": f"one of {', '.join(SIZES)}"})
    shapes: list[str] = field(
        default_factory=lambda: ["1x16", "8x32", "32x64"], metadata={"help": "batch x length, as 32x64"}
    )
    rounds: int = field(default=7, metadata={"help": "how often each is timed; the median counts"})
    dtype: str = field(default="float32", metadata={"help": "float32, bfloat16 or float16"})
    compile: bool = field(default=False, metadata={"help": "compile both models"})
    device: str = field(default="cuda" if torch.cuda.is_available() else "cpu", metadata={"help": "cpu or cuda"})


def make_models(args: Arguments) -> dict[str, torch.nn.Module]:
    if args.size not in SIZES:
        raise SystemExit(f"--size must be one of {', '.join(SIZES)}, got {args.size!r}")
    bert = BertModel(BertConfig(**SIZES[args.size]))
    boolean = BoolBertModel(BoolBertConfig(**SIZES[args.size]))
    return {"BERT": bert.to(args.device), "Bool-BERT": boolean.to(args.device)}


def make_batch(shape: str, device: str) -> dict[str, torch.Tensor]:
    """Rows of different lengths, padded, as queries come."""
    batch, length = (int(number) for number in shape.split("x"))
    lengths = torch.linspace(max(1, length // 2), length, batch).long()
    mask = (torch.arange(length) < lengths[:, None]).long()
    return {
        "input_ids": torch.randint(1000, 30000, (batch, length)).to(device),
        "attention_mask": mask.to(device),
    }


def interleaved(steps: dict[str, Callable[[], None]], rounds: int, device: str) -> dict[str, float]:
    """Median milliseconds of each step, timed in turn so that a busy machine hits both alike."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(3):
            step()
    for _ in range(rounds):
        for name, step in steps.items():
            synchronize(device)
            start = time.perf_counter()
            step()
            synchronize(device)
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def inference_step(model, batch, dtype, device) -> Callable[[], None]:
    def step() -> None:
        with torch.inference_mode(), torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
            model(**batch)

    model.eval()
    return step


def training_step(model, batch, dtype, device) -> Callable[[], None]:
    def step() -> None:
        model.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
            loss = model(**batch).last_hidden_state[:, 0].float().square().mean()
        loss.backward()

    model.train()
    return step


def main() -> None:
    (args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    torch.manual_seed(0)
    models = make_models(args)
    device, dtype = args.device.split(":")[0], getattr(torch, args.dtype)
    sizes = ", ".join(f"{name} {model.num_parameters() / 1e6:.1f}M" for name, model in models.items())
    compiled = ", compiled" if args.compile else ""
    print(f"{args.size} size on {args.device}, {args.dtype}{compiled}. Parameters: {sizes}. Times are medians in ms.\n")
    print(f"{'batch x length':<16}{'what':<12}{'BERT':>10}{'Bool-BERT':>12}{'ratio':>8}")
    for shape in args.shapes:
        batch = make_batch(shape, args.device)
        for what, make_step in (("inference", inference_step), ("training", training_step)):
            runs = {n: torch.compile(m) if args.compile else m for n, m in models.items()}
            median = interleaved(
                {name: make_step(model, batch, dtype, device) for name, model in runs.items()}, args.rounds, device
            )
            ratio = median["Bool-BERT"] / median["BERT"]
            print(f"{shape:<16}{what:<12}{median['BERT']:>10.2f}{median['Bool-BERT']:>12.2f}{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
