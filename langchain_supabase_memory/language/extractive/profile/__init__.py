"""Find what a user says of themselves, and how they want to be answered, without a model.

A clause counts that begins with a frame such as "I live in", or that tells the assistant what to do. `mask` hides what
is not the user's, `statements` leaves out what is supposed, reported, ironic or asked, `frames` reads a clause, and
`subjects` names what it is about. The words are data, in the `profile.toml` of each language.
"""
