"""The training loop of all stages: steps, evaluation, the best kept, checkpoints, resuming, and a clean end."""

import math
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, DynamoBackend, broadcast_object_list
from torch import Tensor, nn
from torch.nn.attention import sdpa_kernel

from boolbert.core.errors import Interrupted, TrainingError
from boolbert.retrieval.prefetch import prefetch
from boolbert.retrieval.recorded import RecordedStep
from boolbert.retrieval.tokens import ATTENTION
from boolbert.train.arguments import RunArguments
from boolbert.train.checkpoints import Checkpoints
from boolbert.train.logs import RunLog
from boolbert.train.optimizer import build_optimizer, learning_rate_share, place_learning_rates, set_learning_rate

Metrics = dict[str, Any]
# Parts of a Bool-BERT that are compiled next to its layers: they have many small operations.
COMPILED_PARTS = ("cue_predictor", "scope_reader", "gate", "composer")


class Stage(Protocol):
    """What the loop needs of a stage. A batch, and what is random within a step, are functions of the step alone."""

    model: Any  # the loop puts what Accelerate prepared in its place
    steps_per_epoch: int
    is_recorded: bool  # whether batches come in few shapes, for steps to be recorded: see `can_record`
    metric: str  # the metric that chooses the best evaluation
    lower_is_better: bool

    def trial(self) -> Tensor:
        """A number that depends on every parameter that training uses."""

    def load(self, epoch: int, step: int) -> Any:
        """This process's part of a batch, tensors on the CPU; called in another thread."""

    def reseed(self, step: int) -> None: ...

    def backward(self, batch: Any, step: int) -> dict[str, Tensor]:
        """Add the gradients of the batch, and return its losses, "loss" among them; a GPU may record it."""

    def evaluate(self) -> Metrics:
        """The metrics on held-out data; called on every process, the main one's count."""


@dataclass
class Progress:
    """What a checkpoint holds next to the weights: the step the run has reached, and its evaluations."""

    step: int = 0
    seconds: float = 0.0
    best: dict[str, Any] | None = None  # epoch, step, value and metrics
    history: list[Metrics] = field(default_factory=list)

    def metrics(self, metric: str) -> dict[str, Any]:
        """What a finished run writes into metrics.json: the best evaluation by `metric`, and how it came about."""
        best = self.best or {}
        found = {"best_epoch": best.get("epoch"), "best_step": best.get("step"), "dev": best.get("metrics")}
        seconds = round(self.seconds, 1)
        return {"metric": metric, **found, "history": self.history, "steps": self.step, "seconds": seconds}


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C, or a scheduler's SIGTERM: the run saves and ends. A second one ends it at once."""
    asked = threading.Event()

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Trainer:
    """Runs a stage. `fit` returns the run's progress; the model then has the weights of the best evaluation."""

    def __init__(
        self, stage: Stage, args: RunArguments, accelerator: Accelerator, identity: dict[str, Any] | None = None
    ):
        self.stage = stage
        self.args = args
        self.accelerator = accelerator
        self.identity = identity or {}
        self.run = Path(args.output_dir)
        self.checkpoints = Checkpoints(self.run, args.keep_last)
        steps = args.epochs * stage.steps_per_epoch
        self.total = min(steps, args.max_steps or steps)
        model: nn.Module = stage.model.to(accelerator.device)
        freeze_unused(model, stage)
        compile_layers(model, args, accelerator)
        optimizer = build_optimizer(
            model,
            learning_rate=args.learning_rate,
            boolean_learning_rate=args.boolean_learning_rate,
            weight_decay=args.weight_decay,
        )
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        stage.model = self.model
        self.learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.compute = RecordedStep(
            self._compute, accelerator.device, forget=self.optimizer.zero_grad, on=stage.is_recorded
        )
        self._place_learning_rates()
        self.progress = Progress()
        self._pending: list[tuple[int, dict[str, Tensor]]] = []
        self._logged = 0.0

    def fit(self) -> Progress:
        steps = self.checkpoints.steps()
        if self.args.resume and steps:
            state = self.checkpoints.state(steps[-1])
            del state["identity"]
            self.progress = Progress(**state)
            self.checkpoints.load(self.accelerator, steps[-1])
            self._place_learning_rates()
        self.log = RunLog(self.accelerator, self.run, self.total, self.progress.step)
        try:
            with stop_signals() as stop:
                self._steps(stop)
        except Exception as error:
            if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
                raise TrainingError(self._no_memory()) from error
            raise
        finally:
            self.log.bar.close()
            self.compute.close()
        if self.progress.best is not None:
            self.checkpoints.load_best(self.accelerator.unwrap_model(self.model), self.progress.best["step"])
        return self.progress

    def batches(self) -> Generator[Any]:
        """The batches from here to the end, prepared ahead of time."""
        per_epoch = self.stage.steps_per_epoch
        return prefetch(
            lambda step: self.stage.load(*divmod(step, per_epoch)),
            range(self.progress.step, self.total),
            pin=self.accelerator.device.type == "cuda",
        )

    def _steps(self, stop: threading.Event) -> None:
        progress = self.progress
        started, before = time.perf_counter(), progress.seconds
        self._logged = started
        per_epoch = self.stage.steps_per_epoch
        evaluated_every = self.args.eval_steps or self.args.eval_every * per_epoch
        saved_every = self.args.save_every or per_epoch
        batches = self.batches()
        self.model.train()
        try:
            if self.args.eval_first and not progress.history:
                self._evaluate()
            while progress.step < self.total and not self._is_out_of_patience():
                self._step(batches)
                progress.seconds = before + time.perf_counter() - started
                if progress.step % evaluated_every == 0 or progress.step == self.total:
                    self._evaluate()
                stops = self._must_stop(stop)
                ends = progress.step == self.total or self._is_out_of_patience()
                if progress.step % saved_every == 0 or stops or ends:
                    self._flush()
                    self.checkpoints.save(self.accelerator, {**asdict(progress), "identity": self.identity})
                if stops and not ends:
                    raise Interrupted(f"stopped after step {progress.step} of {self.total}; go on with --resume")
        finally:
            batches.close()
            self._flush()

    @sdpa_kernel(ATTENTION)
    def _step(self, batches: Iterator[Any]) -> None:
        batch = next(batches)
        set_learning_rate(self.optimizer, self._share(self.progress.step))
        self.stage.reseed(self.progress.step)
        losses = self.compute(batch)
        self.progress.step += 1
        self._pending.append((self.progress.step, losses))
        # Reading a loss makes the processor wait for the GPU, so it is done once in a while.
        if self.accelerator.device.type == "cpu" or self.progress.step % self.args.log_every == 0:
            self._check_finite()
        if self.progress.step % self.args.log_every == 0 or self.progress.step == self.total:
            self._flush()
        self.log.bar.update()

    def _compute(self, batch: Any) -> dict[str, Tensor]:
        """What a step does on the GPU."""
        losses = self.stage.backward(batch, self.progress.step)
        # The norm is computed without a limit too: it shows a gradient that is not finite.
        norm = self.accelerator.clip_grad_norm_(self.learned, self.args.max_grad_norm or math.inf)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {**losses, "gradient_norm": norm}

    def _place_learning_rates(self) -> None:
        place_learning_rates(self.optimizer, self.accelerator.device if self.compute.on else None)

    def _share(self, step: int) -> float:
        return learning_rate_share(step, self.total, self.args.warmup, self.args.schedule)

    def _flush(self) -> None:
        """Write the mean losses since the last line."""
        self._check_finite()
        if not self._pending:
            return
        names = self._pending[0][1]
        values = {name: float(torch.stack([row[name] for _, row in self._pending]).mean()) for name in names}
        now, step = time.perf_counter(), self.progress.step
        values["epoch"] = step / self.stage.steps_per_epoch
        values["learning_rate"] = self._share(step - 1) * self.args.learning_rate
        values["seconds"] = self.progress.seconds
        values["rows_per_second"] = len(self._pending) * self.args.batch_size / (now - self._logged)
        if self.accelerator.device.type == "cuda":
            values["gpu_memory_gb"] = torch.cuda.max_memory_allocated(self.accelerator.device) / 1e9
        self._pending.clear()
        self._logged = now
        self.log.losses(step, values)

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

    def _evaluate(self) -> None:
        self._flush()
        self.model.eval()
        with torch.no_grad():
            metrics = self.compute.with_room(self.stage.evaluate)
        # The processes must agree on which evaluation is the best, to the last bit.
        metrics = broadcast_object_list([metrics])[0]
        self.model.train()
        progress, step = self.progress, self.progress.step
        epoch: float = step / self.stage.steps_per_epoch
        epoch = int(epoch) if epoch.is_integer() else round(epoch, 2)
        progress.history.append({"epoch": epoch, "step": step, **metrics})
        self.log.write(step, {f"dev/{name}": value for name, value in metrics.items()})
        value = metrics[self.stage.metric]
        best = None if progress.best is None else progress.best["value"]
        better = best is None or (value < best if self.stage.lower_is_better else value > best)
        shown = ", ".join(f"{name} {number:.4f}" for name, number in metrics.items() if isinstance(number, float))
        self.log.say(f"epoch {epoch} of {self.args.epochs}: {shown}{'  (best)' if better else ''}")
        if better:
            progress.best = {"epoch": epoch, "step": step, "value": value, "metrics": metrics}
            self.checkpoints.save_best(self.accelerator, self.model, step)
        elif self._is_out_of_patience():
            self.log.say(f"no better for {self.args.patience} evaluations: training ends here")
        self._logged = time.perf_counter()

    def _is_out_of_patience(self) -> bool:
        """Whether the last evaluations, as many as --patience says, were no better than the best one."""
        best, patience = self.progress.best, self.args.patience
        if patience is None or best is None:
            return False
        return sum(row["step"] > best["step"] for row in self.progress.history) >= patience

    def _must_stop(self, stop: threading.Event) -> bool:
        """Whether to end here: all processes have to agree, and asking them costs a wait."""
        if self.accelerator.num_processes == 1:
            return stop.is_set()
        if self.progress.step % self.args.log_every and self.progress.step % self.stage.steps_per_epoch:
            return False
        if stop.is_set():
            self.accelerator.set_trigger()
        return bool(self.accelerator.check_trigger())

    def _no_memory(self) -> str:
        smaller = max(1, (self.args.mini_batch_size or self.args.batch_size) // 2)
        return (
            f"out of memory at step {self.progress.step + 1}; {self.checkpoints.last()}. "
            f"Try --mini_batch_size {smaller} (the same gradients in less memory), --gradient_checkpointing or "
            "--graphs False; all can be given with --resume"
        )


def can_record(args: RunArguments, accelerator: Accelerator) -> bool:
    """Whether steps may be recorded: on one GPU, where no number has to be looked at within a step."""
    # Other compilers than torch's, and some modes of that, make graphs of their own.
    plugin = accelerator.state.dynamo_plugin
    is_plain = plugin.backend in (DynamoBackend.NO, DynamoBackend.INDUCTOR) and plugin.mode == "default"
    is_simple = args.mini_batch_size is None and not args.gradient_checkpointing and is_plain
    is_alone = accelerator.distributed_type == DistributedType.NO and accelerator.scaler is None
    return args.graphs and is_simple and is_alone and accelerator.device.type == "cuda"


def check_batch(rows: int, processes: int) -> None:
    """Every process needs a row of every batch."""
    if rows < processes:
        raise TrainingError(
            f"a batch of {rows} cannot be shared out among {processes} processes; "
            "give a larger --batch_size, more data, or start fewer processes"
        )


def freeze_unused(model: nn.Module, stage: Stage) -> None:
    """Freeze parameters that no loss depends on, such as a pooler, or a gate whose operators are given.

    DistributedDataParallel waits for a gradient of every parameter that is not frozen.
    """
    model.train()
    stage.trial().backward()
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.requires_grad_(False)
    model.zero_grad()


def compile_layers(model: nn.Module, args: RunArguments, accelerator: Accelerator) -> None:
    """Compile the encoders' layers, and what stands around them, as --compile or the launcher asks: in place, so that
    weights keep their names. Accelerate must not compile the model around them a second time."""
    plugin = accelerator.state.dynamo_plugin
    backend, mode = plugin.backend, plugin.mode
    plugin.backend = DynamoBackend.NO
    if backend == DynamoBackend.NO and not args.compile:
        return
    name = "inductor" if backend == DynamoBackend.NO else backend.value.lower()
    options = {"mode": mode} if name == "inductor" and mode != "default" else {}
    for path, module in model.named_modules():
        names = path.split(".")
        if names[-2:-1] == ["layer"] or names[-1] in COMPILED_PARTS:
            module.compile(backend=name, dynamic=True, **options)
