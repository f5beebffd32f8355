    memory_private.next_microsecond(timestamptz),
