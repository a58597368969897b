"""The base instructions: what every session gives its model first, by model family. Texts beside the code."""
