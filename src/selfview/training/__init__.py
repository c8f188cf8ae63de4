"""Training: the loop, which knows no method; schedules, progress, and the state of a run."""
