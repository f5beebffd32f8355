      foreach v_user in array v_round loop
        if v_user <> all (v_locked) then
          perform 1 from memory_private.owners o where o.user_id = v_user for update skip locked;
          if found then
            v_locked := v_locked || v_user;
          end if;
        end if;
      end loop;
