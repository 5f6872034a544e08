"""Tasks: how each problem is asked, how an answer is read, how it is graded. Text only."""

from unmask.tasks.countdown import Countdown
from unmask.tasks.mini_code import MiniCode
from unmask.tasks.mini_gsm import MiniGsm
from unmask.tasks.mini_math import MiniMath
from unmask.tasks.sudoku import Sudoku
from unmask.tasks.task import Grade, Metric, Problem, Split, Task, task

__all__ = [
    "Countdown",
    "Grade",
    "Metric",
    "MiniCode",
    "MiniGsm",
    "MiniMath",
    "Problem",
    "Split",
    "Sudoku",
    "Task",
    "task",
]
