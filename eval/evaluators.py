"""Evaluators for sentence-transformers' trainer: QUEST-format data and BoolQuestions, any model.

evaluator = QuestEvaluator(split="dev")            # the embedded countries
SentenceTransformerTrainer(model, evaluator=evaluator, ...)
evaluator(model)["countries_dev_r_precision"]
"""

from pathlib import Path
from typing import Any

from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator

from boolbert.data.tasks import Task, boolquestions_task, quest_task
from boolbert.eval.results import slug
from boolbert.eval.systems import Dense
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.metrics import Metrics, boolquestions_metrics, main_metric, means, quest_metrics, search_depth


class TaskEvaluator(SentenceEvaluator):
    """Any task as an evaluator. Its numbers go to the trainer's log and the model's card; `output_path` is not used."""

    def __init__(self, task: Task, metrics: Metrics, primary: str, name: str = ""):
        super().__init__()
        self.task, self.metrics, self.primary_metric = task, metrics, primary
        self.name = name or f"{slug(Path(task.name).name.removesuffix(' (embedded)'))}_{task.split}"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        training = model.training
        vectors = encode_inputs(model, self.task.corpus.texts(), "document", 32)
        _, rows = Dense(self.name, model, vectors).search(self.task.questions, search_depth(self.task))
        model.train(training)
        result = self.prefix_name_to_metrics(means(self.metrics(self.task, rows)), self.name)
        self.store_metrics_in_model_card_data(model, result, epoch, steps)
        return result


class QuestEvaluator(TaskEvaluator):
    """QUEST's recalls, R-precision, violations and the rest, on a folder, a Hub data set or the embedded countries."""

    def __init__(self, data: str | None = None, split: str = "dev", *, limit: int | None = None, name: str = ""):
        task = quest_task(data, split, limit, progress=False)
        super().__init__(task, quest_metrics, main_metric(len(task.corpus)), name)


class BoolQuestionsEvaluator(TaskEvaluator):
    """MRR@10 and accuracy@K on positives and negatives."""

    def __init__(
        self,
        data: str | None = None,
        split: str = "eval",
        *,
        subset: str = "MSMARCO",
        limit: int | None = None,
        name: str = "",
    ):
        task = boolquestions_task(data, split, subset, limit, progress=False)
        super().__init__(task, boolquestions_metrics, "mrr@10", name)
