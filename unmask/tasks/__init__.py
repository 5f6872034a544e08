"""Tasks: how a problem is posed, how an answer is read and how it is graded, all as text."""

from unmask.tasks.generated.countdown import Countdown
from unmask.tasks.generated.mini_code import MiniCode
from unmask.tasks.generated.mini_gsm import MiniGsm
from unmask.tasks.generated.mini_math import MiniMath
from unmask.tasks.generated.sudoku import Sudoku
from unmask.tasks.published.countdown import CountdownD1
from unmask.tasks.published.gsm8k import GSM8K
from unmask.tasks.published.humaneval import HumanEval
from unmask.tasks.published.math500 import Math500
from unmask.tasks.published.mbpp import MBPP
from unmask.tasks.published.sudoku import SudokuD1
from unmask.tasks.task import Grade, Metric, Problem, Split, Task, configure, task

__all__ = [
    "GSM8K",
    "MBPP",
    "Countdown",
    "CountdownD1",
    "Grade",
    "HumanEval",
    "Math500",
    "Metric",
    "MiniCode",
    "MiniGsm",
    "MiniMath",
    "Problem",
    "Split",
    "Sudoku",
    "SudokuD1",
    "Task",
    "configure",
    "task",
]
