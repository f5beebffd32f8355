"""What was said and fits a question.

- `ranges`: the times that a question is about.
- `question`: what is asked, as the SQL function takes it.
- `search`: the flows.
- `lines`: what was found, as text for a prompt.
- `timeline`: what was found, as a picture.
"""
