"""What a files store does when its tree and its index differ: absorb, rebuild, recover, examine, mend."""
