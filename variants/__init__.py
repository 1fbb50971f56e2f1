"""The variants that ship with the project: plugins like any other."""
