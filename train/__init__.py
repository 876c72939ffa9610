"""Training: one script per stage (pretrain.py, quest.py, boolquestions.py), one loop for all of them."""
