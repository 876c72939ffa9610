"""The ranking metrics as modules of the `evaluate` library: `evaluate.load("eval/metrics/recall_at_k")`."""
