    memory_private.just_after(timestamptz),
