"""`unmask fill`: fill the gaps of a text."""

from unmask import api
from unmask.cli.generate import add_command

HELP = """Fill the gaps of a text, each written `<mask:n>` for n tokens.

\b
Examples:
  unmask fill 'ab<mask:3>cd<mask:2>'
  unmask fill 'ab<mask:3>' --length 4 --decoder 'low-confidence(block=1)' --json
"""
add_command(api.fill, HELP, "early_end")
