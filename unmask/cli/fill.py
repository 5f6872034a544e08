"""`unmask fill`: fill the gaps of a text."""

from unmask import api
from unmask.cli.generate import add_command

HELP = """Fill the gaps of a text, each written `<mask:n>` for n tokens.

\b
Examples:
  unmask fill $'Numbers: [87, 28, 35]\\nTarget: 94\\n<mask:17>\\n<answer>87-28+35</answer>'
  unmask fill $'Numbers: [87, 28, 35]\\nTarget: 94\\n87-28=<mask:2>' --length 30 --decoder search --json
"""
add_command(api.fill, HELP, "early_end")
