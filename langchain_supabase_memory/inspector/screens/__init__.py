"""The pages of the inspector, a module for each; `frame` is what those of one conversation share."""
