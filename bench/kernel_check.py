"""The kernel of `kernels_boolbert.py` on a GPU: the plain version's numbers, and how close to BERT it comes.

python bench/kernel_check.py                  # under a minute
python bench/kernel_check.py --graphs         # also as CUDA graphs
"""

import argparse
import contextlib
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from speed.made_up import make_batch
from speed.timing import as_graph, find_package, in_turn

SHAPES = ("1x64", "32x64", "256x64", "192x256", "32x512")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), help="batch x length")
    parser.add_argument("--rounds", type=int, default=15, help="how often each is timed")
    parser.add_argument("--graphs", action="store_true", help="time CUDA graphs too")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    options.gpu = True
    find_package()
    if not torch.cuda.is_available():
        raise SystemExit("bench/kernel_check.py needs a CUDA device")
    torch.manual_seed(0)
    figures: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(json.dumps(figures), flush=True)
    figures["errors"] = check(options)
    figures["times"] = times(options)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """Bool-BERT without the kernel."""
    from boolbert import modeling_boolbert

    usable = modeling_boolbert.is_usable
    modeling_boolbert.is_usable = lambda *_: False
    try:
        yield
    finally:
        modeling_boolbert.is_usable = usable


def check(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Both ways against the plain way in double precision, with weights that make scopes and biases matter.

    Distances are 1 - cosine over tokens. "effect" is what switching the operators off would change: a wrong kernel is
    about that far off. A scope is 0 or 1, and in half precision one near its threshold may flip, either way of
    computing: single tokens are far off then, so the median decides there.
    """
    from boolbert import BoolBertConfig, BoolBertModel, modeling_boolbert
    from boolbert.retrieval.kernels import quick_kernels

    rows = []
    print(f"{'model':<34}{'dtype':<10}{'effect':>9}  {'plain: median, worst':<22}{'kernel: median, worst':<22}layers")
    settings: list[dict[str, Any]] = [
        {},
        {"not_reach": "both"},
        {"not_reach": "all", "conv_kernel": 5},
        {"attention_operators": ["not"]},
        {"hidden_size": 384, "num_attention_heads": 12},
    ]
    inputs, taken = modeling_boolbert.attention_inputs, []

    def counted(*args: Any, **kwargs: Any) -> Any:
        taken.append(1)
        return inputs(*args, **kwargs)

    modeling_boolbert.attention_inputs = counted
    # Few tokens and many take different ways, and so do values where cuDNN is not used.
    for changes, (shape, context) in product(settings, (("8x48", quick_kernels), ("192x64", contextlib.nullcontext))):
        model = BoolBertModel(BoolBertConfig(**{"num_hidden_layers": 2, **changes})).eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "scope_predictor.context" in name or "cue_weight" in name or "output_weight" in name:
                    weight.normal_(std=0.1)
            for layer in model.encoder.layer:
                layer.attention.self.bias_predictor.output_bias.fill_(3.0)
            model.scope_reader.output_bias.zero_()
        batch = make_batch(shape, "cuda")
        on = torch.ones(len(batch["input_ids"]), 3, device="cuda")
        real = batch["attention_mask"].bool()

        def states(
            operators: Tensor, model: Any = model, batch: Any = batch, real: Tensor = real, context: Any = context
        ) -> Tensor:
            with torch.no_grad(), context():
                return model(**batch, operators=operators).last_hidden_state[real].double()

        model.to("cuda", torch.float64)
        with plain():
            exact, off = states(on), states(0 * on)

        def distances(found: Tensor, exact: Tensor = exact) -> list[float]:
            each = 1 - torch.cosine_similarity(found, exact)
            return [each.median().item(), each.max().item()]

        for dtype in (torch.float32, torch.bfloat16):
            model.to(dtype)
            with plain():
                expected = distances(states(on))
            taken.clear()
            got, effect = distances(states(on)), distances(off)[0]
            is_right = len(taken) == 2 and got[0] < 2 * expected[0] + 1e-9 and got[1] < max(effect, 2 * expected[1])
            row = {"model": f"{shape} {changes}", "dtype": str(dtype).removeprefix("torch."), "effect": effect}
            rows.append({**row, "plain": expected, "kernel": got, "layers": len(taken), "right": is_right})
            print(
                f"{row['model'][:33]:<34}{row['dtype']:<10}{effect:>9.1e}  {expected[0]:<10.1e}{expected[1]:<12.1e}"
                f"{got[0]:<10.1e}{got[1]:<12.1e}{len(taken)}{'' if is_right else '   WRONG'}",
                flush=True,
            )
    modeling_boolbert.attention_inputs = inputs
    return rows


def times(options: argparse.Namespace) -> list[dict[str, Any]]:
    from boolbert import BoolBertConfig, BoolBertModel

    bert = BertModel(BertConfig()).to("cuda", torch.bfloat16).eval()
    boolean = BoolBertModel(BoolBertConfig()).to("cuda", torch.bfloat16).eval()
    rows = []
    print(f"\n{'shape':<9}{'mode':<8}{'BERT ms':>9}{'plain':>9}{'kernel':>9}{'plain/BERT':>12}{'kernel/BERT':>13}")
    for shape in options.shapes:
        batch = make_batch(shape, "cuda")
        operators = torch.ones(len(batch["input_ids"]), 3, device="cuda")

        def run_bert(batch: Any = batch) -> None:
            bert(**batch)

        def run_kernel(batch: Any = batch, operators: Tensor = operators) -> None:
            boolean(**batch, operators=operators)

        def run_plain(batch: Any = batch, operators: Tensor = operators) -> None:
            with plain():
                boolean(**batch, operators=operators)

        works = {"BERT": run_bert, "plain": run_plain, "kernel": run_kernel}
        with torch.inference_mode():
            modes = {"eager": works}
            if options.graphs:
                modes["graph"] = {name: as_graph(work) for name, work in works.items()}
            for mode, steps in modes.items():
                took = {name: values["median"] for name, values in in_turn(steps, options).items()}
                ratios = {name: took[name] / took["BERT"] for name in ("plain", "kernel")}
                rows.append({"shape": shape, "mode": mode, "ms": took, "ratios": ratios})
                print(
                    f"{shape:<9}{mode:<8}{took['BERT']:>9.3f}{took['plain']:>9.3f}{took['kernel']:>9.3f}"
                    f"{ratios['plain']:>12.2f}{ratios['kernel']:>13.2f}",
                    flush=True,
                )
    return rows


if __name__ == "__main__":
    main()
