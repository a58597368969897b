"""The shadow repository: the files of a project as git trees, kept outside of the project."""
