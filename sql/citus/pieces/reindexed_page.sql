  -- One at a time: a node cannot join a page of all owners with their vectors.
  declare
    v_i     record;
    v_last  record; -- the last of the page
    v_seen  integer := 0;
    v_size  bigint := 0;
    v_one   json;
    v_items json[] := '{}';
    v_after json;
  begin
    for v_i in
      select i.user_id, i.path, i.key, octet_length(i.value::text) as bytes,
             i.index_fields is distinct from '{}' and (i.expires_at is null or i.expires_at > clock_timestamp()) as embeds
      from memory.store_items i
      where (p_user_id is null or i.user_id = p_user_id)
        and (p_after is null
             or (i.user_id, i.path, i.key) > (p_after ->> 'user_id', p_after ->> 'path', p_after ->> 'key'))
      order by i.user_id, i.path, i.key limit least(v_limit, 1) * 1000
    loop
      v_seen := v_seen + 1;
      if v_i.embeds and not exists (
        select from memory.store_vectors v
        where v.user_id = v_i.user_id and v.path = v_i.path and v.key = v_i.key and v.model = p_model
          and v.dimensions = p_dimensions)
      then
        if v_size >= v_bytes then
          v_after := json_build_object('user_id', v_last.user_id, 'path', v_last.path, 'key', v_last.key);
          exit;
        end if;
        select json_build_object(
                 'user_id', i.user_id, 'namespace', i.namespace, 'key', i.key, 'value', i.value,
                 'index', i.index_fields, 'updated_at', i.updated_at) into v_one
          from memory.store_items i where i.user_id = v_i.user_id and i.path = v_i.path and i.key = v_i.key;
        v_items := v_items || v_one;
        v_size := v_size + v_i.bytes;
        v_last := v_i;
      end if;
      if cardinality(v_items) = v_limit or v_seen = 1000 then
        v_after := json_build_object('user_id', v_i.user_id, 'path', v_i.path, 'key', v_i.key);
        exit;
      end if;
    end loop;
    select array_to_json(v_items) as items, v_after as after into v_page;
  end;
