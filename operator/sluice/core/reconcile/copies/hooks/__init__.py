"""A copy's hooks: how they stand, and the steps that follow from it."""
