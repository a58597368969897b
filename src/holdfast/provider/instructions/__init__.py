"""The base instructions: what every session tells its model first, by model family. Texts beside the code."""
