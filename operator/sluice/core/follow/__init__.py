"""Following a source: what comes after the planned bytes, for as long as the copy lives."""
