"""Remove secrets and personal data from a message before it is stored: the rules, their two groups, the redactor."""
