      -- Citus cannot lock rows of several nodes at once: lock each of the next owners alone, if no other worker has.
      declare
        v_next record;
      begin
        v_round := '{}';
        for v_next in
          select o.user_id, o.turn_at from memory_private.owners o
          where o.turn_at >= v_last and o.turn_at <= v_by and o.due_at <= v_until and o.user_id <> all (v_locked)
            and coalesce((p_held ->> o.user_id)::integer, 0) < v_most
          order by o.turn_at limit v_limit - cardinality(v_users)
        loop
          v_last := v_next.turn_at;
          perform 1 from memory_private.owners o where o.user_id = v_next.user_id for update skip locked;
          if found then
            v_round := v_round || v_next.user_id;
          end if;
        end loop;
      end;
