"""Tasks: how a problem is posed, how an answer is read, how it is graded. Text only."""

from unmask.tasks.countdown import Countdown
from unmask.tasks.countdown_d1 import CountdownD1
from unmask.tasks.gsm8k import GSM8K
from unmask.tasks.humaneval import HumanEval
from unmask.tasks.math500 import Math500
from unmask.tasks.mbpp import MBPP
from unmask.tasks.mini_code import MiniCode
from unmask.tasks.mini_gsm import MiniGsm
from unmask.tasks.mini_math import MiniMath
from unmask.tasks.sudoku import Sudoku
from unmask.tasks.sudoku_d1 import SudokuD1
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
