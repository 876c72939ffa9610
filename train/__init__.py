"""Training: one script per stage (pretrain.py, quest.py, boolquestions.py), one loop for all of them."""

import os

# Threads that wait should sleep: on a busy machine they would take the processor from those that compute. OpenMP reads
# this when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
