        updated_at = greatest(excluded.updated_at, memory_private.next_microsecond(i.updated_at));
