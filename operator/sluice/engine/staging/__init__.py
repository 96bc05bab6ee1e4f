"""Segments beside a target that hold what is not published yet."""
