"""What is understood without a model."""
