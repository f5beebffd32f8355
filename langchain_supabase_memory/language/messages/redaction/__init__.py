"""What is not to be stored is taken out of a message before it is: rules, the two groups of them, the redactor."""
