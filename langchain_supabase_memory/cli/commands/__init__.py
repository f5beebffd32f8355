"""The commands, one module each with the command's name. Each is a thin layer over the package's functions."""
