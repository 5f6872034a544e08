"""A terminal for tests."""

import io
import re


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """Return the lines without control sequences."""
        text = re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]", "", self.getvalue())
        return [line for line in re.split(r"[\r\n]+", text) if line.strip()]
