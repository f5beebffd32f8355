-- What a client may leave out of a message: the rest is made of what it says. Nothing here runs for messages that are whole,
-- as Python sends them. Both count alike: tests/cases/messages.json holds this and language/messages to the same words,
-- characters, tokens and images.

-- Estimates the tokens of a text as language/tokens.py does, in twentieths of a token. Each character has a weight.
-- Runs of digits or punctuation, and a capital after a small letter, are split into more tokens and add to that.
create or replace function memory_private.estimate_tokens(p_text text) returns bigint
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_text   text := p_text collate "C";
  v_all    bigint := length(v_text);
  v_beyond text; -- ASCII
  v_weight bigint := 4 * v_all
    + 3 * (v_all - length(translate(v_text, '0123456789agkn', '')))
    + 5 * (v_all - length(translate(v_text, E'ABCDEFGHIJKLMNOPQRSTUVWXYZ!"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~\n\t', '')))
    + 20 * (v_all - length(translate(v_text, 'jqxz', '')))
    + 27 * regexp_count(v_text, '[0-9]+')
    + 8 * regexp_count(v_text, '[!-/:-@[-`{-~\n\t]+')
    + 12 * regexp_count(v_text, '[a-z][A-Z]');
begin
  if octet_length(v_text) > v_all then
    v_beyond := regexp_replace(v_text, '[\u0001-\u007f]+', '', 'g');
    -- Two bytes; the alphabets of India, others of Asia and Georgia, and those that no vocabulary holds much of; symbols;
    -- CJK; private and full width; emoji.
    v_weight := v_weight - 4 * length(v_beyond)
      + 10 * regexp_count(v_beyond, '[\u0080-\u07ff\u0900-\u0d7f]')
      + 14 * regexp_count(v_beyond, '[\u0d80-\u0e7f\u1000-\u10ff\u1780-\u17ff\u1e00-\u1fff]')
      + 60 * regexp_count(v_beyond, '[\u0800-\u08ff\u0e80-\u0fff\u1100-\u177f\u1800-\u1dff]')
      + 30 * regexp_count(v_beyond, '[\u2000-\u2fff]')
      + 20 * regexp_count(v_beyond, '[\u3000-\u9fff\uac00-\udfff]')
      + 66 * regexp_count(v_beyond, '[\ua000-\uabff]')
      + 40 * regexp_count(v_beyond, '[\ue000-\uffff]')
      + 60 * regexp_count(v_beyond, '[\U00010000-\U0010ffff]');
  end if;
  return ceil(v_weight / 20.0);
end
$function$;

-- Returns the texts in a value at any depth, each with its key. Ids are left out.
create or replace function memory_private.json_texts(p_value jsonb) returns table (key text, leaf text)
language sql immutable security invoker set search_path = ''
as $function$
  with recursive found (key, value) as (
    select '', p_value
    union all
    select e.key, e.value
    from found f
    cross join lateral (
      select o.key, o.value
      from jsonb_each(case when jsonb_typeof(f.value) = 'object' then f.value else '{}' end) o
      where o.key <> all ('{type,id,index}')
      union all
      select f.key, a.value
      from jsonb_array_elements(case when jsonb_typeof(f.value) = 'array' then f.value else '[]' end) a (value)) e)
  select f.key, f.value #>> '{}' from found f where jsonb_typeof(f.value) = 'string'
$function$;

-- Says whether a text is a signature or encrypted.
create or replace function memory_private.is_encrypted(p_key text, p_leaf text) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select p_key ~* 'encrypted|signature' and strpos(btrim(p_leaf), ' ') = 0
$function$;

-- Returns what is stored beside a message for an image, a sound or a file in it.
create or replace function memory_private.media_reference(p_block jsonb) returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_source  jsonb := case when jsonb_typeof(p_block -> 'source') = 'object' then p_block -> 'source' else p_block end;
  v_type    text := coalesce(
    nullif(v_source ->> 'media_type', ''), nullif(v_source ->> 'mime_type', ''), nullif(p_block ->> 'mime_type', ''));
  v_inline  text := coalesce(
    nullif(v_source ->> 'data', ''), nullif(v_source ->> 'base64', ''), nullif(p_block ->> 'file_data', ''));
  v_address text := coalesce(
    case when jsonb_typeof(p_block -> 'image_url') = 'object' then p_block #>> '{image_url,url}'
         else nullif(p_block ->> 'image_url', '') end,
    nullif(p_block ->> 'url', ''), nullif(p_block ->> 'file_url', ''), nullif(p_block ->> 'file_id', ''));
begin
  if starts_with(v_address, 'data:') then
    v_type := coalesce(v_type, split_part(substr(v_address, 6), ';', 1));
    v_inline := v_address;
    v_address := null;
  end if;
  v_address := coalesce(nullif(v_address, ''), v_source ->> 'url');
  return jsonb_strip_nulls(jsonb_build_object(
    'kind', case when p_block ->> 'type' in ('image', 'image_url', 'input_image') then 'image' else p_block ->> 'type' end,
    'url', v_address,
    'inline_characters', case when v_address is null then length(v_inline) end,
    'mime_type', v_type));
end
$function$;

-- Returns a file's name as one line, cut if it is very long.
create or replace function memory_private.clean_file_name(p_text text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select case when length(t.line) <= 200 then t.line else left(t.line, 200) || '…' end
  from (select btrim(regexp_replace(left(p_text, 800), '\s+', ' ', 'g')) as line) t
$function$;

-- Returns the words of a message's content. Python alone knows the words of blocks that say more than their text.
create or replace function memory_private.content_words(
  p_content jsonb, -- a text, or a list of texts and blocks
  p_calls   jsonb, -- the message's calls
  out words   text,
  out unsaid  text,    -- what is sent to a model beside words: reasoning, signatures
  out media   integer, -- how many images, sounds and files there are
  out images  jsonb,   -- what is stored of them beside the message
  out strange text     -- what would have to be put into words first
)
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_media  constant text[] := '{image,image_url,input_image,audio,input_audio,video,file,input_file}';
  v_names  constant text[] := '{filename,file_name,name,display_name}';
  -- Fields that a provider adds to a block, and fields of media.
  v_mute   constant text[] := '{tool_use_id,tool_call_id,call_id,item_id,container_id,caller,cache_control,start_index,
    end_index,object}';
  v_plain  constant text[] := '{data,base64,file_data,bytes,b64_json,image_data,mime_type,media_type,mimeType,format,url,
    uri,source,file_id,file_url,file_uri,image_url,audio_url,video_url,detail,source_type,status}';
  v_ids    constant jsonb := (
    select jsonb_object_agg(c.value ->> 'id', true) filter (where c.value ->> 'id' <> '')
    from jsonb_array_elements(p_calls) c);
  v_block  jsonb;
  v_kind   text;
  v_leaf   record;
  v_line   text;
  -- Lists that are joined at the end: the time is linear in the number of blocks.
  v_run    text[] := '{}'; -- texts that follow one another are one text
  v_lines  text[] := '{}';
  v_unsaid text[] := '{}';
  v_images jsonb[] := '{}';
begin
  unsaid := '';
  media := 0;
  if jsonb_typeof(p_content) = 'string' then
    words := p_content #>> '{}';
    return;
  end if;
  for v_block in select jsonb_strip_nulls(e.value) from jsonb_array_elements(p_content) e loop
    v_kind := case jsonb_typeof(v_block) when 'string' then 'bare' else v_block ->> 'type' end;
    v_line := '';
    if v_kind = 'bare' and jsonb_typeof(v_block) = 'string' then
      v_run := array_append(v_run, v_block #>> '{}');
    elsif coalesce(v_kind, 'text') in ('text', 'output_text', 'input_text') and jsonb_typeof(v_block -> 'text') = 'string'
    then
      v_run := array_append(v_run, v_block ->> 'text');
      v_unsaid := array_append(v_unsaid, (
        select string_agg(l.leaf, '') from jsonb_each(v_block) e cross join lateral memory_private.json_texts(e.value) l
        where e.key = any (v_mute)));
      strange := coalesce(strange, 'text block with ' || (
        select min(left(e.key, 64)) from jsonb_each(v_block - '{type,id,index,text}'::text[] - v_mute) e
        where e.key not in ('annotations', 'citations') or e.value <> '[]'));
    elsif v_kind in ('reasoning', 'thinking', 'redacted_thinking', 'reasoning_content') then
      v_unsaid := array_append(v_unsaid, (select string_agg(l.leaf, '') from memory_private.json_texts(v_block) l));
    elsif v_kind in (
      'tool_use', 'function_call', 'tool_call', 'tool_call_chunk', 'invalid_tool_call', 'custom_tool_call')
    then
      if not coalesce(v_ids ? coalesce(v_block ->> 'id', '') or v_ids ? coalesce(v_block ->> 'call_id', ''), false) then
        strange := coalesce(strange, v_kind || ' block that is not among its tool_calls');
      end if;
      v_unsaid := array_append(v_unsaid, (
        select string_agg(l.leaf, '') from memory_private.json_texts(v_block) l
        where memory_private.is_encrypted(l.key, l.leaf)));
    elsif v_kind = any (v_media) and coalesce(v_block #>> '{source,type}' not in ('text', 'content'), true) then
      media := media + 1;
      for v_leaf in select l.key, l.leaf from memory_private.json_texts(v_block) l loop
        if v_leaf.key = any (v_names) then
          v_line := concat_ws(E'\n', nullif(v_line, ''), format(
            '[%s %s]', replace(replace(v_kind, 'input_', ''), '_url', ''),
            memory_private.clean_file_name(v_leaf.leaf)));
        elsif memory_private.is_encrypted(v_leaf.key, v_leaf.leaf) then
          v_unsaid := array_append(v_unsaid, v_leaf.leaf);
        elsif v_leaf.leaf <> '' and v_leaf.key <> all (v_plain || v_mute)
          and v_leaf.leaf !~* '^data:[\w.+/-]*(;[^,;]{1,100}){0,5},'
        then
          strange := coalesce(strange, v_kind || ' block with ' || left(v_leaf.key, 64));
        end if;
      end loop;
    else
      strange := coalesce(
        strange, case when v_kind ~ '^[a-z_-]{1,40}$' then v_kind || ' block' else 'block of no known type' end);
    end if;
    if v_kind = any (v_media || '{text-plain,media,document}'::text[]) then
      v_images := array_append(v_images, memory_private.media_reference(v_block));
    end if;
    if v_line <> '' then
      v_lines := array_append(v_lines, array_to_string(v_run, ''));
      v_lines := array_append(v_lines, v_line);
      v_run := '{}';
    end if;
  end loop;
  words := array_to_string(array_remove(array_append(v_lines, array_to_string(v_run, '')), ''), E'\n');
  unsaid := array_to_string(v_unsaid, '');
  if v_images <> '{}' then
    images := to_jsonb(v_images);
  end if;
end
$function$;

-- Removes the thinking that a model's text begins with, as local models write it. Python knows the other forms.
create or replace function memory_private.strip_thinking(p_text text, out words text, out thought text)
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_opened constant text := (regexp_match(p_text, '^\s{0,99}<think(?:ing)?>'))[1];
  v_inside text := substr(p_text, 1 + length(coalesce(v_opened, '')));
  v_closed constant text := (regexp_match(v_inside, '</think(?:ing)?>'))[1];
  v_at     constant integer := coalesce(strpos(v_inside, v_closed), 0);
begin
  words := p_text;
  thought := '';
  if v_opened is null and (v_closed is null or strpos(p_text, '`') > 0
    or substr(v_inside, v_at + length(v_closed), 1) is distinct from E'\n')
  then
    return; -- there is none, or the prompt's template has opened none
  end if;
  if substr(v_inside, v_at + coalesce(length(v_closed), 0)) ~* '</?think' and v_closed is not null then
    return;
  end if;
  thought := case when v_closed is null then v_inside else left(v_inside, v_at - 1) end;
  words := case when v_closed is null then ''
    else btrim(substr(v_inside, v_at + length(v_closed)), E' \t\r\n') end;
end
$function$;

-- Returns the columns beside a message's payload: its words, its size and its media.
create or replace function memory_private.message_columns(
  p_data jsonb, -- as LangChain has it
  p_text text,  -- its words, where the client says them
  out text text, out characters bigint, out tokens bigint, out images jsonb,
  out strange text -- what would have to be put into words first
)
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_listed constant jsonb := coalesce(p_data -> 'tool_calls', '[]') || coalesce(p_data -> 'invalid_tool_calls', '[]');
  v_said   record;
  v_aside  record;
  v_calls  text;
begin
  v_said := memory_private.content_words(p_data -> 'content', v_listed);
  if p_data ->> 'type' = 'ai' and jsonb_typeof(p_data -> 'content') = 'string' and strpos(v_said.words, 'think') > 0 then
    select t.words, v_said.unsaid || t.thought into v_said.words, v_said.unsaid
      from memory_private.strip_thinking(v_said.words) t;
  end if;
  -- Fields that providers put beside the content.
  for v_aside in
    select a.key, a.value, 'additional_kwargs' as place from jsonb_each(p_data -> 'additional_kwargs') a
    union all
    select a.key, a.value, 'response_metadata' from jsonb_each(p_data -> 'response_metadata') a
    where a.key in ('grounding_metadata', 'groundingMetadata', 'citations')
  loop
    continue when v_aside.value in ('null', '""', '[]', '{}');
    if v_aside.key in ('reasoning', 'reasoning_content', 'thinking', '__gemini_function_call_thought_signatures__') then
      v_said.unsaid := v_said.unsaid || coalesce(
        (select string_agg(l.leaf, '') from memory_private.json_texts(v_aside.value) l), '');
    elsif v_aside.key = 'refusal' and jsonb_typeof(v_aside.value) = 'string' then
      v_said.words := concat_ws(E'\n', nullif(v_said.words, ''), v_aside.value #>> '{}');
    elsif v_aside.key in (
      'citations', 'search_results', 'grounding_metadata', 'groundingMetadata', 'refusal', 'audio', 'tool_outputs')
      or v_aside.key in ('function_call', 'tool_calls') and v_listed = '[]'
    then
      v_said.strange := coalesce(v_said.strange, format('%s.%s', v_aside.place, v_aside.key));
    end if;
  end loop;
  if p_text is not null then
    v_said.strange := null;
  end if;
  text := coalesce(p_text, v_said.words);
  select string_agg(coalesce(c.value ->> 'name', 'None') || case jsonb_typeof(c.value -> 'args')
           when 'string' then c.value ->> 'args' else (c.value -> 'args')::text end, '')
    into v_calls from jsonb_array_elements(v_listed) c;
  v_calls := coalesce(v_calls, '');
  characters := length(text) + length(v_calls) + length(v_said.unsaid);
  tokens := 4 + memory_private.estimate_tokens(text) + memory_private.estimate_tokens(v_calls)
    + memory_private.estimate_tokens(v_said.unsaid) + 800 * v_said.media;
  images := v_said.images;
  strange := v_said.strange;
end
$function$;

-- Refuses a message with its position and the reason, never with its words.
create or replace function memory_private.raise_invalid_message(p_place bigint, p_why text, p_hint text) returns void
language plpgsql immutable security invoker set search_path = ''
as $function$
begin
  raise exception 'the message at position % %', p_place, p_why using errcode = 'PT400', hint = p_hint;
end
$function$;

-- Refuses values of a wrong type. Null counts as absent.
create or replace function memory_private.check_types(
  p_place bigint, p_object jsonb, p_types jsonb, p_in text default ''
)
returns void
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_key  text;
  v_type text;
begin
  select t.key, t.value #>> '{}' into v_key, v_type from jsonb_each(p_types) t
   where jsonb_typeof(p_object -> t.key) not in ('null', t.value #>> '{}')
   limit 1;
  if found then
    perform memory_private.raise_invalid_message(
      p_place, format('has %s%s of another type', p_in, v_key), format('%s%s is %s', p_in, v_key, case v_type
        when 'string' then 'a text' when 'array' then 'a list' when 'object' then 'an object' else 'a number' end));
  end if;
end
$function$;

-- Parses the arguments of a call from a model's text; null if they are no JSON object.
create or replace function memory_private.parse_arguments(p_text text) returns json
language plpgsql immutable security invoker set search_path = ''
as $function$
begin
  if btrim(p_text) = '' then
    return '{}';
  end if;
  return case when jsonb_typeof(p_text::jsonb) = 'object' then p_text::json end;
exception when data_exception then
  return null;
end
$function$;

-- Returns a message's calls as LangChain has them, from its own form or OpenAI's.
create or replace function memory_private.normalize_calls(
  p_place bigint, p_calls json, p_invalid json, out valid json, out invalid json
)
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_hint    constant text := 'a call is {"name", "args", "id"}, or {"id", "type", "function"} as OpenAI has it';
  v_call    record;
  v_b       jsonb;
  v_key     text;
  v_args    json;
  v_written text;
  v_valid   json[] := '{}';
  v_invalid json[] := '{}';
begin
  for v_call in
    select e.value, false as is_invalid from json_array_elements(p_calls) e
    union all
    select e.value, true from json_array_elements(p_invalid) e
  loop
    v_b := v_call.value;
    if jsonb_typeof(v_b) <> 'object' then
      perform memory_private.raise_invalid_message(p_place, 'has a call that is no object', v_hint);
    end if;
    select k into v_key from jsonb_object_keys(v_b) k
     where k <> all (case when v_call.is_invalid then '{name,args,id,type,error}'::text[]
                          when v_b ? 'function' then '{id,type,function,index}' else '{name,args,id,type}' end)
     limit 1;
    if found then
      perform memory_private.raise_invalid_message(
        p_place, format('has a call with an unknown key "%s"', left(v_key, 64)), v_hint);
    end if;
    perform memory_private.check_types(
      p_place, v_b, '{"name": "string", "id": "string", "type": "string", "error": "string", "function": "object"}',
      'a call''s ');
    perform memory_private.check_types(
      p_place, v_b, jsonb_build_object('args', case when v_call.is_invalid then 'string' else 'object' end),
      'a call''s ');
    v_args := case when jsonb_typeof(v_b -> 'args') = 'object' then v_call.value -> 'args' else '{}' end;
    v_written := v_b ->> 'args';
    if v_b ? 'function' then
      v_b := v_b || jsonb_build_object('name', v_b #> '{function,name}', 'args', v_b #> '{function,arguments}');
      perform memory_private.check_types(
        p_place, v_b, '{"name": "string", "args": "string"}', 'a call''s function''s ');
      v_written := coalesce(v_b ->> 'args', '');
      v_args := memory_private.parse_arguments(v_written);
    end if;
    if coalesce(v_b ->> 'name', '') = '' and not v_call.is_invalid then
      perform memory_private.raise_invalid_message(p_place, 'has a call without a name', v_hint);
    end if;
    if v_call.is_invalid or v_args is null then
      v_invalid := v_invalid || json_build_object(
        'type', 'invalid_tool_call', 'id', v_b ->> 'id', 'name', v_b ->> 'name', 'args', v_written,
        'error', v_b ->> 'error');
    else
      v_valid := v_valid || json_build_object(
        'name', v_b ->> 'name', 'args', v_args, 'id', v_b ->> 'id', 'type', 'tool_call');
    end if;
  end loop;
  valid := array_to_json(v_valid);
  invalid := array_to_json(v_invalid);
end
$function$;

-- Returns a message's `data` as LangChain has it: every key in its place, with its default where it is absent.
create or replace function memory_private.normalize_data(p_place bigint, p_type text, p_id text, p_data json)
returns json
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_keys    constant text[] := '{content,additional_kwargs,response_metadata,type,name,id}'::text[] || case p_type
    when 'ai' then '{tool_calls,invalid_tool_calls,usage_metadata}'::text[]
    when 'tool' then '{tool_call_id,artifact,status}' else '{}' end;
  v_data    constant jsonb := p_data;
  v_body    constant jsonb := nullif(v_data -> 'content', 'null');
  v_content json := p_data -> 'content';
  v_calls   record;
  v_key     text;
begin
  perform memory_private.check_types(
    p_place, v_data,
    '{"additional_kwargs": "object", "response_metadata": "object", "name": "string", "tool_calls": "array",
      "invalid_tool_calls": "array", "usage_metadata": "object", "tool_call_id": "string", "status": "string"}');
  if v_body is null and p_type = 'ai' and coalesce(v_data -> 'tool_calls', 'null') not in ('null', '[]') then
    v_content := '""'; -- OpenAI has null beside calls
  elsif v_body is null then
    perform memory_private.raise_invalid_message(
      p_place, 'has no content', 'content is a text, or a list of texts and blocks');
  elsif jsonb_typeof(v_body) not in ('string', 'array')
     or jsonb_path_exists(v_body, 'strict $[*] ? (@.type() != "string" && @.type() != "object")', silent => true)
  then
    perform memory_private.raise_invalid_message(
      p_place, 'has content of another type', 'content is a text, or a list of texts and blocks');
  end if;
  v_calls := memory_private.normalize_calls(
    p_place,
    case when p_type = 'ai' and jsonb_typeof(v_data -> 'tool_calls') = 'array' then p_data -> 'tool_calls' end,
    case when p_type = 'ai' and jsonb_typeof(v_data -> 'invalid_tool_calls') = 'array'
         then p_data -> 'invalid_tool_calls' end);
  select min(k) into v_key from unnest('{input_tokens,output_tokens,total_tokens}'::text[]) k
   where jsonb_typeof(v_data -> 'usage_metadata') = 'object'
     and coalesce(v_data -> 'usage_metadata' ->> k, '') !~ '^\d+$';
  if v_key is not null then
    perform memory_private.raise_invalid_message(
      p_place, format('has a usage_metadata without a number of %s', v_key),
      'usage_metadata has input_tokens, output_tokens and total_tokens');
  end if;
  if p_type = 'tool' and coalesce(v_data ->> 'tool_call_id', '') = '' then
    perform memory_private.raise_invalid_message(
      p_place, 'has no tool_call_id', 'pass the id of the call that it answers');
  end if;
  if p_type = 'tool' and v_data ->> 'status' not in ('success', 'error') then
    perform memory_private.raise_invalid_message(p_place, 'has an unknown status', 'the status is success or error');
  end if;
  if v_data ? 'content_blocks' then
    perform memory_private.raise_invalid_message(p_place, 'has content_blocks', 'pass them as content');
  end if;
  return (
    select json_object_agg(t.key, t.value order by t.place)
    from (
      select k.key, k.place,
             case k.key
               when 'content' then v_content
               when 'type' then to_json(p_type)
               when 'id' then to_json(p_id)
               when 'tool_calls' then v_calls.valid
               when 'invalid_tool_calls' then v_calls.invalid
               else case
                 when jsonb_typeof(v_data -> k.key) <> 'null' then p_data -> k.key
                 when k.key in ('additional_kwargs', 'response_metadata') then '{}'
                 when k.key = 'status' then '"success"'
                 else 'null' end
             end as value
      from unnest(v_keys) with ordinality k (key, place)
      union all
      -- Other keys stay: LangChain's messages allow any.
      select e.key, 100 + e.place, e.value from json_each(p_data) with ordinality e (key, value, place)
      where e.key <> all (v_keys)) t);
end
$function$;

-- Returns a client's message as Python would send it. The client sends {"role", "content", …}, or LangChain's
-- {"type", "data"}, by itself or as its payload. What it sends beside that is kept.
create or replace function memory_private.normalize_message(p_place bigint, p_message json) returns json
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  -- The roles of OpenAI and the types of LangChain.
  v_types  constant jsonb := '{"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "system": "system",
    "tool": "tool"}';
  v_roles  constant jsonb := '{"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}';
  v_parts  constant text[] := '{content,name,tool_calls,tool_call_id,artifact,status,usage_metadata,additional_kwargs,'
    'response_metadata}';
  v_beside constant text[] := '{id,text,characters,tokens,images,created_at,metadata}';
  v_m      jsonb;
  v_form   json := p_message;
  v_type   text;
  v_id     text;
  v_data   json;
  v_key    text;
  v_made   record;
begin
  begin
    v_m := p_message;
  exception when data_exception then
    perform memory_private.raise_invalid_message(
      p_place, 'holds what cannot be stored',
      'leave out U+0000, halves of surrogate pairs (in JavaScript: text.toWellFormed()), and numbers without end');
  end;
  if jsonb_typeof(v_m) <> 'object' then
    perform memory_private.raise_invalid_message(
      p_place, 'is no object', 'a message is {"role": "user", "content": "Hello"}');
  end if;
  select k into v_key from jsonb_object_keys(v_m) k
   where k <> all (v_parts || v_beside || '{role,type,data,payload}'::text[]) limit 1;
  if found then
    perform memory_private.raise_invalid_message(
      p_place, format('has an unknown key "%s"', left(v_key, 64)),
      format('the keys are role, %s, %s; or type and data, as toDict() of LangChain makes them',
             array_to_string(v_parts, ', '), array_to_string(v_beside, ', ')));
  end if;
  perform memory_private.check_types(
    p_place, v_m,
    '{"id": "string", "role": "string", "type": "string", "text": "string", "characters": "number", "tokens": "number",
      "images": "array", "created_at": "string", "metadata": "object", "data": "object", "payload": "object"}');
  select coalesce(jsonb_object_agg(e.key, e.value) filter (where e.value <> 'null'), '{}') into v_m
    from jsonb_each(v_m) e;

  select min(k) into v_key from unnest('{characters,tokens}'::text[]) k where v_m ->> k !~ '^\d{1,9}$';
  if v_key is not null then
    perform memory_private.raise_invalid_message(
      p_place, format('has %s that are no count', v_key), 'pass a whole number, or leave it out');
  end if;
  begin
    if (v_m ->> 'created_at')::timestamptz not between '0002-01-01 00:00+00' and '9998-12-31 00:00+00' then
      raise datetime_field_overflow;
    end if;
  exception when data_exception then
    perform memory_private.raise_invalid_message(
      p_place, 'has a created_at that is no time',
      'pass a time such as 2026-01-31T12:00:00Z, in JavaScript: toISOString()');
  end;

  if v_m ?& '{id,role,text,characters,tokens,payload}' and v_m ->> 'role' in ('user', 'assistant', 'system', 'tool')
  then
    return p_message;
  end if;
  if v_m ? 'payload' then
    v_form := p_message -> 'payload';
    select k into v_key from json_object_keys(v_form) k where k not in ('type', 'data') limit 1;
    if found then
      perform memory_private.raise_invalid_message(
        p_place, format('has a payload with an unknown key "%s"', left(v_key, 64)), 'a payload is {"type", "data"}');
    end if;
    perform memory_private.check_types(p_place, v_form::jsonb, '{"type": "string", "data": "object"}', 'a payload''s ');
  end if;
  if v_m ?| '{payload,data}' then
    v_type := v_form ->> 'type';
    v_data := v_form -> 'data';
    if not v_roles ? coalesce(v_type, '') then
      perform memory_private.raise_invalid_message(
        p_place, 'has no type that is known', 'the type is human, ai, system or tool');
    end if;
    if v_m ?| v_parts or v_m ?& '{payload,data}' or coalesce(json_typeof(v_data), 'null') = 'null' then
      perform memory_private.raise_invalid_message(
        p_place, 'says what it is in two ways, or in none',
        'pass role and content, or type and data, or a payload of these');
    end if;
    perform memory_private.check_types(p_place, v_data::jsonb, '{"id": "string", "type": "string"}', 'data''s ');
    v_id := v_data ->> 'id';
    if v_id <> v_m ->> 'id' or v_data ->> 'type' <> v_type then
      perform memory_private.raise_invalid_message(
        p_place, 'has another id or type in its data', 'leave them out of one of the two places');
    end if;
  else
    v_type := v_types ->> coalesce(v_m ->> 'role', v_m ->> 'type');
    if v_type is null then
      perform memory_private.raise_invalid_message(
        p_place, 'has no role that is known', 'the role is user, assistant, system or tool');
    end if;
    select min(k) into v_key from unnest(v_parts) k
     where v_m ? k and (k in ('tool_calls', 'usage_metadata') and v_type <> 'ai'
                        or k in ('tool_call_id', 'artifact', 'status') and v_type <> 'tool');
    if v_key is not null then
      perform memory_private.raise_invalid_message(
        p_place, format('has %s', v_key),
        'tool_calls and usage_metadata are an assistant''s; tool_call_id, artifact and status a tool''s');
    end if;
    select coalesce(json_object_agg(e.key, e.value), '{}') into v_data
      from json_each(p_message) e where e.key = any (v_parts);
  end if;
  if v_types ->> (v_m ->> 'role') is distinct from v_type and v_m ? 'role' then
    perform memory_private.raise_invalid_message(
      p_place, 'has a role that is unknown, or not its type''s', 'the role is user, assistant, system or tool');
  end if;

  v_id := coalesce(v_m ->> 'id', v_id, 'lc_' || gen_random_uuid()); -- the prefix: providers are not sent it
  if octet_length(v_id) not between 1 and 512 or v_id ~ '[\u0001-\u001f\u007f-\u009f]' then
    perform memory_private.raise_invalid_message(
      p_place, 'has an id that cannot name it', 'an id has 1 to 512 bytes and no control characters');
  end if;
  v_data := memory_private.normalize_data(p_place, v_type, v_id, v_data);
  v_made := memory_private.message_columns(v_data::jsonb, v_m ->> 'text');
  if v_made.strange is not null then
    perform memory_private.raise_invalid_message(
      p_place, format('has words that are not known here: %s', v_made.strange), 'pass what the message says as text');
  end if;
  return json_build_object(
    'id', v_id,
    'role', v_roles ->> v_type,
    'text', v_made.text,
    'characters', coalesce((v_m ->> 'characters')::bigint, v_made.characters),
    'tokens', coalesce((v_m ->> 'tokens')::bigint, v_made.tokens),
    'created_at', v_m -> 'created_at',
    'metadata', v_m -> 'metadata',
    'images', coalesce(v_m -> 'images', v_made.images),
    'payload', json_build_object('type', v_type, 'data', v_data));
end
$function$;

-- Returns messages as Python would send them. Complete ones stay as they are.
create or replace function memory_private.normalize_messages(p_given json) returns json
language sql volatile security invoker set search_path = ''
as $function$
  select json_agg(memory_private.normalize_message(e.place - 1, e.value) order by e.place)
  from json_array_elements(p_given) with ordinality e (value, place)
$function$;
