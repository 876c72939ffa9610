"""Training: one script per stage (pretrain.py, quest.py, boolquestions.py), one loop for all of them."""

from ..core.environment import keep_freed_memory, let_waiting_threads_sleep

keep_freed_memory()
let_waiting_threads_sleep()
