"""From prompts to outputs, and the files that remember them."""
