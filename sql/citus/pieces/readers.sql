  -- A policy on a distributed table has no subquery, so that spaces are reached by a server alone.
  v_reads  constant text := v_is_own;
  v_no_space constant text := $$coalesce(auth.jwt() ->> 'sub', '') !~ '^space:'$$;
