"""The training loop: learner, schedule, optimisers, averages, distributed training."""
