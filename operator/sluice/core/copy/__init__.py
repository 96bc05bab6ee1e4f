"""A copy of one stream: plan, journal, observation, next step."""
