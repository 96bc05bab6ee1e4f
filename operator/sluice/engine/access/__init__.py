"""Stores as plans name them: open them, choose runs of archives, ask about many streams at once."""
