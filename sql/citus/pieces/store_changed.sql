        updated_at = greatest(excluded.updated_at, memory_private.just_after(i.updated_at));
