"""Segments beside a target that hold unpublished bytes."""
