"""Models on this machine: one that Holdfast installs and serves itself, and servers that already run."""
