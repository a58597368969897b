"""What a running session uses: its dependencies, limits, recorder and events."""
