"""Manifests of earlier prompts: stored with the answers as numbers, listed and compared. They contain no text."""
