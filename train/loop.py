"""The training loop of all stages: steps, evaluation, the best kept, checkpoints, resuming, and a clean end."""

import math
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, send_to_device
from torch import Tensor, nn

from boolbert.errors import Interrupted, TrainingError
from boolbert.train.arguments import RunArguments
from boolbert.train.checkpoints import Checkpoints, out_of_memory
from boolbert.train.loader import prefetch
from boolbert.train.logs import RunLog
from boolbert.train.optimizer import build_optimizer, linear_schedule, set_learning_rate

Metrics = dict[str, Any]


class Stage(Protocol):
    """What the loop needs to know of a stage. A batch is a function of its epoch and step, and nothing else."""

    steps_per_epoch: int
    metric: str  # the metric that tells the best epoch; higher is better

    @property
    def model(self) -> nn.Module: ...

    def load(self, epoch: int, step: int) -> Any:
        """This process's part of a batch, tensors on the CPU; called in another thread."""

    def backward(self, batch: Any, step: int) -> dict[str, Tensor]:
        """Add the gradients of the batch, and return its losses; "loss" is the one that is minimised."""

    def evaluate(self) -> Metrics:
        """The metrics on held-out data; called on every process, the main one's count."""


@dataclass
class Progress:
    """What a checkpoint holds besides weights: where the run stands, and what it has seen."""

    step: int = 0
    seconds: float = 0.0
    best: dict[str, Any] | None = None  # step, value and metrics
    history: list[Metrics] = field(default_factory=list)

    def metrics(self, metric: str) -> dict[str, Any]:
        """What a finished run writes into metrics.json: the best epoch by `metric`, and how it came about."""
        best = self.best or {}
        return {
            "metric": metric,
            "best_epoch": best.get("epoch"),
            "dev": best.get("metrics"),
            "history": self.history,
            "steps": self.step,
            "seconds": round(self.seconds, 1),
        }


class Stop:
    """Ctrl-C, or a scheduler's SIGTERM: asked once, the run saves and ends; asked twice, it ends at once."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def listening(self) -> Iterator["Stop"]:
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Trainer:
    """Runs a stage. `fit` returns what the best epoch's metrics were; the model then has that epoch's weights."""

    def __init__(self, stage: Stage, args: RunArguments, accelerator: Accelerator, eval_every: int = 1):
        self.stage = stage
        self.args = args
        self.accelerator = accelerator
        self.eval_every = eval_every
        self.run = Path(args.output_dir)
        self.checkpoints = Checkpoints(self.run, args.keep_last)
        self.total = args.epochs * stage.steps_per_epoch
        stage.model.to(accelerator.device)
        # Prepared as for evaluation: autocast and device, but no DistributedDataParallel.
        self.model = accelerator.prepare_model(stage.model, evaluation_mode=True)
        self.learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        optimizer = build_optimizer(
            self.model,
            learning_rate=args.learning_rate,
            boolean_learning_rate=args.boolean_learning_rate,
            weight_decay=args.weight_decay,
        )
        self.optimizer = accelerator.prepare_optimizer(optimizer)
        self.progress = Progress()
        self.waited = 0.0
        self._pending: list[tuple[int, dict[str, Tensor]]] = []

    def fit(self) -> Progress:
        self._start()
        self.log = RunLog(self.accelerator, self.run, self.total, self.progress.step)
        try:
            with Stop().listening() as stop:
                self._steps(stop)
        except Exception as error:
            if out_of_memory(error):
                raise TrainingError(self._no_memory(error)) from error
            raise
        finally:
            self.log.close()
        if self.progress.best is not None:
            self.checkpoints.load_best(self.model, self.progress.best["step"])
        return self.progress

    def _start(self) -> None:
        """Go on from the last checkpoint, if asked to and there is one."""
        steps = self.checkpoints.steps()
        if self.accelerator.is_main_process:
            self.checkpoints.folder.mkdir(parents=True, exist_ok=True)
            self.checkpoints.remove_torn()
        if not (self.args.resume and steps):
            return
        state = self.checkpoints.state(steps[-1])
        self._check_same_run(state.get("identity", {}))
        state = self.checkpoints.load(self.accelerator, steps[-1])
        self.progress = Progress(state["step"], state["seconds"], state["best"], state["history"])

    def _check_same_run(self, before: dict[str, Any]) -> None:
        for name, value in self.args.identity().items():
            if name in before and before[name] != value:
                raise TrainingError(
                    f"--resume: the run in {self.run} has {name}={before[name]!r}, not {value!r}; "
                    "give the same flags, or another --output_dir"
                )

    def batches(self) -> Generator[Any]:
        """The batches from here to the end, prepared ahead of time."""
        per_epoch = self.stage.steps_per_epoch
        return prefetch(
            lambda step: self.stage.load(*divmod(step, per_epoch)),
            range(self.progress.step, self.total),
            pin=self.accelerator.device.type == "cuda",
        )

    def _steps(self, stop: Stop) -> None:
        per_epoch, progress = self.stage.steps_per_epoch, self.progress
        started, before = time.perf_counter(), progress.seconds
        batches = self.batches()
        self.model.train()
        try:
            while progress.step < self.total:
                self._step(batches)
                progress.seconds = before + time.perf_counter() - started
                epoch, rest = divmod(progress.step, per_epoch)
                if rest == 0 and (epoch % self.eval_every == 0 or epoch == self.args.epochs):
                    self._evaluate(epoch)
                asked = self._asked(stop)
                if self._save_due(rest) or asked:
                    self._save()
                if asked and progress.step < self.total:
                    raise Interrupted(f"stopped after step {progress.step} of {self.total}; go on with --resume")
        finally:
            batches.close()
            self._flush()

    def _step(self, batches: Iterator[Any]) -> None:
        waiting = time.perf_counter()
        batch = send_to_device(next(batches), self.accelerator.device, non_blocking=True)
        self.waited += time.perf_counter() - waiting
        step = self.progress.step
        rate = linear_schedule(step, self.total, self.args.warmup)
        set_learning_rate(self.optimizer, rate)
        losses = self.stage.backward(batch, step)
        sum_gradients(self.accelerator, self.learned)
        # Without a limit the norm is still wanted: it tells a gradient that is not finite.
        norm = self.accelerator.clip_grad_norm_(self.learned, self.args.max_grad_norm or math.inf)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.step += 1
        self._pending.append((self.progress.step, {**losses, "gradient_norm": norm}))
        # Reading a loss makes the processor wait for the GPU, so it is done once in a while.
        if self.accelerator.device.type == "cpu" or self.progress.step % self.args.log_every == 0:
            self._check_finite()
        if self.progress.step % self.args.log_every == 0 or self.progress.step == self.total:
            shown = self._flush()
            self.log.advance(loss=f"{shown['loss']:.4f}", rate=f"{rate * self.args.learning_rate:.1e}")
        else:
            self.log.advance()

    def _flush(self) -> dict[str, float]:
        """Write the mean losses since the last line."""
        self._check_finite()
        if not self._pending:
            return {}
        names = self._pending[0][1]
        values = {name: float(torch.stack([row[name] for _, row in self._pending]).mean()) for name in names}
        self._pending.clear()
        step = self.progress.step
        values["epoch"] = step / self.stage.steps_per_epoch
        values["learning_rate"] = linear_schedule(step - 1, self.total, self.args.warmup) * self.args.learning_rate
        values["seconds"] = self.progress.seconds
        self.log.write(step, values)
        return values

    def _check_finite(self) -> None:
        for step, losses in self._pending:
            for name, value in losses.items():
                overflow = name == "gradient_norm" and self.accelerator.scaler is not None  # fp16 skips such a step
                if not overflow and not math.isfinite(float(value)):
                    self._pending.clear()
                    raise TrainingError(
                        f"{name} is {float(value)} at step {step}; {self.checkpoints.last()}. "
                        "Try a lower --learning_rate, --max_grad_norm 1, or --mixed_precision no"
                    )

    def _evaluate(self, epoch: int) -> None:
        self._flush()
        self.model.eval()
        with torch.no_grad():
            metrics = self.stage.evaluate()
        # The processes must agree on which epoch is the best, to the last bit.
        metrics = broadcast_object_list([metrics])[0]
        self.model.train()
        step = self.progress.step
        self.progress.history.append({"epoch": epoch, "step": step, **metrics})
        self.log.write(step, {f"dev/{name}": value for name, value in metrics.items()})
        value = metrics[self.stage.metric]
        better = self.progress.best is None or value > self.progress.best["value"]
        shown = ", ".join(f"{name} {number:.4f}" for name, number in metrics.items() if isinstance(number, float))
        self.log.say(f"epoch {epoch} of {self.args.epochs}: {shown}{'  (best)' if better else ''}")
        if better:
            self.progress.best = {"epoch": epoch, "step": step, "value": value, "metrics": metrics}
            if self.accelerator.is_main_process:
                self.checkpoints.save_best(self.model, step)
            self.accelerator.wait_for_everyone()

    def _save_due(self, rest: int) -> bool:
        every = self.args.save_every
        return self.progress.step == self.total or (rest == 0 if every is None else self.progress.step % every == 0)

    def _save(self) -> None:
        self._flush()
        progress = self.progress
        state = {"seconds": progress.seconds, "best": progress.best, "history": progress.history}
        self.checkpoints.save(self.accelerator, progress.step, {**state, "identity": self.args.identity()})

    def _asked(self, stop: Stop) -> bool:
        """Whether to end here: all processes have to agree, and asking them costs a wait."""
        if self.accelerator.num_processes == 1:
            return stop.asked
        if self.progress.step % self.args.log_every and self.progress.step % self.stage.steps_per_epoch:
            return False
        if stop.asked:
            self.accelerator.set_trigger()
        return bool(self.accelerator.check_trigger())

    def _no_memory(self, error: Exception) -> str:
        return (
            f"out of memory at step {self.progress.step + 1}; {self.checkpoints.last()}. Try "
            f"--gradient_accumulation_steps {2 * self.args.gradient_accumulation_steps} (the same result in less "
            "memory), --gradient_checkpointing, or --mixed_precision bf16"
        )


BUCKET = 25_000_000  # numbers that are summed at once


def sum_gradients(accelerator: Accelerator, parameters: Iterable[nn.Parameter]) -> None:
    """Add up the gradients of all processes. A parameter that has none anywhere keeps none."""
    if accelerator.num_processes == 1:
        return
    learned = list(parameters)
    present = torch.tensor([p.grad is not None for p in learned], dtype=torch.float32, device=accelerator.device)
    torch.distributed.all_reduce(present)
    shared = [p for p, count in zip(learned, present.tolist(), strict=True) if count]
    for parameter in shared:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    for bucket in _buckets(shared):
        gradients = [p.grad for p in bucket if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        torch.distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterable[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(p.numel() for p in bucket) + parameter.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
