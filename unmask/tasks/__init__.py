"""Tasks: how each problem is asked, how an answer is read, how it is graded. Text only."""

from unmask.tasks.task import Grade, Metric, Problem, Split, Task, task

__all__ = ["Grade", "Metric", "Problem", "Split", "Task", "task"]
