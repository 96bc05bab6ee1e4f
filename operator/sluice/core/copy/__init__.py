"""A copy of one stream: its plan, its journal, what is seen of it, its next step."""
