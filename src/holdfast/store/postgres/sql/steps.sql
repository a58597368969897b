-- The steps of a commit. Codes: HF001 not found, HF002 conflict, HF003 lease lost, HF004 refused, HF005 too new.
-- {f} begins the names of functions: the schema, and their version.

CREATE OR REPLACE FUNCTION {f}now_ms(given bigint) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) $$;

-- Whether an owner runs what it claimed: not buried, its deadline not passed, not known to be gone.
CREATE OR REPLACE FUNCTION {f}living(who text, moment bigint, gone text[]) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT EXISTS (SELECT 1 FROM {s}.owner WHERE id = who AND NOT dead AND deadline >= moment AND NOT id = ANY(gone)) $$;

-- A weaker setting of the server or the role must not make an acknowledged commit forgettable.
CREATE OR REPLACE FUNCTION {f}durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- Nor may a process that was open when a later release changed the format write on.
  IF (SELECT value FROM {s}.store WHERE key = 'format') IS DISTINCT FROM '{format}' THEN
    RAISE EXCEPTION 'the store has another format by now; end this process, and upgrade Holdfast' USING ERRCODE = 'HF005';
  END IF;
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- Take every lock of a group at once, in one order for all processes: first the names of sessions that are
-- yet to be made (or expected to be absent), then the rows of those that exist.
CREATE OR REPLACE FUNCTION {f}lock_sessions(names text[], makes text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF makes IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(k) FROM (
      SELECT DISTINCT hashtextextended('{s}.' || name, 0) AS k FROM unnest(makes) AS name
      WHERE NOT EXISTS (SELECT 1 FROM {s}.session WHERE id = name) ORDER BY 1) AS keys;
  END IF;
  PERFORM 1 FROM {s}.session WHERE id = ANY(names) ORDER BY id FOR NO KEY UPDATE;
END $$;

CREATE OR REPLACE FUNCTION {f}check_fence(f_session text, f_owner text, f_number bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM {s}.session WHERE id = f_session AND owner = f_owner AND fence = f_number FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'session % was taken over or given back (fence %); stop running it', f_session, f_number
      USING ERRCODE = 'HF003';
  END IF;
END $$;

CREATE OR REPLACE FUNCTION {f}check_expectation(
  e_type smallint, name text, e_kind smallint, kind_name text, e_id text, e_seq bigint, moment bigint, gone text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s record;
  latest bigint;
BEGIN
  SELECT n, seq, owner, data IS NOT NULL AS live INTO s FROM {s}.session WHERE id = name;
  IF e_type = 0 THEN  -- Unchanged
    IF s.n IS NULL OR NOT s.live THEN latest := 0;
    ELSIF e_kind = 0 THEN latest := s.seq;
    ELSE
      SELECT r.seq INTO latest FROM {s}.record r
        WHERE r.session = s.n AND r.id = e_id AND r.kind = e_kind AND r.data IS NOT NULL;
    END IF;
    IF coalesce(latest, 0) <> e_seq THEN
      RAISE EXCEPTION '% % changed meanwhile (number %, expected %); read it again',
        kind_name, e_id, coalesce(latest, 0), e_seq USING ERRCODE = 'HF002';
    END IF;
  ELSIF e_type = 1 THEN  -- Settled
    IF EXISTS (SELECT 1 FROM {s}.record r WHERE r.mark = 1 AND r.kind = e_kind AND r.session = s.n) THEN
      RAISE EXCEPTION 'session % still has an open %', name, kind_name USING ERRCODE = 'HF002';
    END IF;
  ELSIF e_type = 2 THEN  -- Unclaimed
    IF s.owner IS NOT NULL AND {f}living(s.owner, moment, gone) THEN
      RAISE EXCEPTION 'session % is busy: it runs in another process; wait or interrupt it', name
        USING ERRCODE = 'HF002';
    END IF;
    -- Whoever ran it and no longer lives has lost it with this commit, or its late writes would mix with ours.
    UPDATE {s}.session SET owner = NULL WHERE id = name AND owner IS NOT NULL;
  END IF;
END $$;

-- Create or replace a session's own record; answers its number.
CREATE OR REPLACE FUNCTION {f}put_session(name text, columns jsonb, body text, words_text text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  s record;
  me xid8 := pg_current_xact_id();
  up text := columns->>'parent';
  number bigint;
BEGIN
  SELECT n, head, parent, data IS NOT NULL AS live INTO s FROM {s}.session WHERE id = name FOR NO KEY UPDATE;
  IF s.live THEN
    IF s.parent IS DISTINCT FROM up THEN
      RAISE EXCEPTION 'session % cannot change its parent', name USING ERRCODE = 'HF002';
    END IF;
  ELSIF up IS NOT NULL THEN
    PERFORM 1 FROM {s}.session WHERE id = up AND scope = 0 AND data IS NOT NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'parent session % of % does not exist', up, name USING ERRCODE = 'HF001';
    END IF;
  END IF;
  number := coalesce(s.head, 0) + 1;
  IF s.n IS NULL THEN
    INSERT INTO {s}.session(id, position, seq, head, xid, born) VALUES (name, number, number, number, me, me);
  ELSIF NOT s.live THEN
    -- A tombstone: a new life with a number of its own. Fence numbers stay used, or an old runner could return.
    UPDATE {s}.session SET n = nextval(pg_get_serial_sequence('{s}.session', 'n')), position = number, born = me,
      owner = NULL, top = '' WHERE id = name;
  END IF;
  UPDATE {s}.session SET seq = number, head = number, xid = me, project = columns->>'project',
    directory = columns->>'directory', path = columns->>'path', parent = up, slug = columns->>'slug',
    title = columns->>'title', folded = columns->>'folded', placement = columns->>'placement',
    updated = (columns->>'updated')::bigint, archived = (columns->>'archived')::double precision,
    agent_run = columns->>'agent_run',
    words = array_to_tsvector(string_to_array(words_text, ' ')), data = body WHERE id = name;
  RETURN number;
END $$;

-- Whether a batch may be written: its fence and its expectations. Answers the sessions whose new ids must rise.
-- e_bits: the type, 4 × kind. e_text, by threes: session, name of the kind, id.
CREATE OR REPLACE FUNCTION {f}check_batch(
  e_first int, e_last int, e_bits int[], e_text text[], e_seq bigint[],
  f_session text, f_owner text, f_number bigint, gone text[], moment bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  rising text[] := '{{}}';
BEGIN
  IF f_session IS NOT NULL THEN
    PERFORM {f}check_fence(f_session, f_owner, f_number);
  END IF;
  FOR e IN e_first .. e_last LOOP
    IF e_bits[e] & 3 = 3 THEN
      rising := rising || e_text[3 * e - 2];
    ELSE
      PERFORM {f}check_expectation((e_bits[e] & 3)::smallint, e_text[3 * e - 2], (e_bits[e] >> 2)::smallint,
        e_text[3 * e - 1], e_text[3 * e], e_seq[e], moment, gone);
    END IF;
  END LOOP;
  RETURN rising;
END $$;

-- Write records that are all new, of one session, in one statement; each part's message comes before it.
-- NULL, and nothing written, when that is not how it is. c_bits as in `write_changes`.
CREATE OR REPLACE FUNCTION {f}append(
  name text, c_bits int[], c_id text[], c_words text[], c_data text[], lowest text, greatest_ text, rising text[],
  o_session text[], o_position bigint[], o_seq bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  s record;
  me xid8 := pg_current_xact_id();
  source text;
  source_n bigint;
  written bigint;
BEGIN
  SELECT n, head, top INTO s FROM {s}.session WHERE id = name AND data IS NOT NULL FOR NO KEY UPDATE;
  IF NOT FOUND OR name = ANY(rising) AND lowest COLLATE "C" <= s.top
    OR EXISTS (SELECT 1 FROM {s}.record r WHERE r.session = s.n AND r.id = ANY(c_id)) THEN
    RETURN NULL;
  END IF;
  INSERT INTO {s}.record(session, position, kind, mark, seq, parent, xid, born, id, words, data)
    SELECT s.n, s.head + c.i, c.bits >> 4 & 15, c.bits >> 2 & 3, s.head + c.i,
      CASE WHEN c.bits >> 8 > 0 THEN s.head + (c.bits >> 8) END, me, me, c.id,
      array_to_tsvector(string_to_array(c.words, ' ')), c.data
    FROM unnest(c_bits, c_id, c_words, c_data) WITH ORDINALITY AS c(bits, id, words, data, i)
    WHERE o_position[c.i] IS NULL;
  IF o_position IS NOT NULL THEN
    SELECT o INTO source FROM unnest(o_session) AS o WHERE o IS NOT NULL LIMIT 1;
    source_n := {f}source_number(source);
    INSERT INTO {s}.record(session, position, kind, mark, seq, parent, xid, born, id, words, data)
      SELECT s.n, s.head + c.i, o.kind, o.mark, s.head + c.i,
        CASE WHEN c.bits >> 8 > 0 THEN s.head + (c.bits >> 8) END, me, me, c.id,
        CASE WHEN c.data IS NULL THEN o.words ELSE array_to_tsvector(string_to_array(c.words, ' ')) END,
        coalesce(c.data, o.data)
      FROM unnest(c_bits, c_id, c_words, c_data, o_position, o_seq)
        WITH ORDINALITY AS c(bits, id, words, data, position, seq, i)
      JOIN {s}.record o ON o.session = source_n AND o.position = c.position AND o.seq = c.seq
        AND o.kind = c.bits >> 4 & 15 AND o.data IS NOT NULL;
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written <> (SELECT count(p) FROM unnest(o_position) AS p) THEN
      PERFORM {f}source_changed(source);
    END IF;
  END IF;
  UPDATE {s}.session SET head = head + cardinality(c_id), top = greatest(top, greatest_) WHERE n = s.n;
  RETURN ARRAY(SELECT s.head + i FROM generate_series(1, cardinality(c_id)) AS i);
END $$;

-- The session whose records are copied.
CREATE OR REPLACE FUNCTION {f}source_number(source text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  found_n bigint;
BEGIN
  SELECT n INTO found_n FROM {s}.session WHERE id = source AND data IS NOT NULL;
  IF found_n IS NULL THEN
    RAISE EXCEPTION 'session % does not exist', source USING ERRCODE = 'HF001';
  END IF;
  RETURN found_n;
END $$;

CREATE OR REPLACE FUNCTION {f}source_changed(source text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'what is copied from session % changed meanwhile; read it again', source USING ERRCODE = 'HF002';
END $$;

-- Write changes of any kind, one by one; answers the number of each. A batch's stand at first .. last of the arrays.
-- c_bits: 1 put, 2 placed, 4 × mark, 16 × kind, 256 × the place of its message in the batch (for `append`).
CREATE OR REPLACE FUNCTION {f}write_changes(
  first int, last int, c_bits int[], c_session text[], c_id text[], c_parent text[], c_columns text[],
  c_words text[], c_data text[], rising text[], moment bigint,
  o_session text[], o_position bigint[], o_seq bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  me xid8 := pg_current_xact_id();
  o record;
  c_content text;
  c_vector tsvector;
  numbers bigint[] := '{{}}';
  s_id text; s_n bigint; s_head bigint; s_top text COLLATE "C"; s_live boolean;   -- the session at hand
  s_dirty boolean := false;
  m_id text; m_position bigint;                                                  -- the message at hand
  is_put boolean; c_kind smallint; name text;
  had record;
  parent_position bigint;
  body text COLLATE "C";
BEGIN
  FOR i IN first .. last LOOP
    is_put := c_bits[i] & 1 = 1;
    c_kind := c_bits[i] >> 4 & 15;
    name := c_id[i];
    IF s_id IS DISTINCT FROM c_session[i] OR c_kind = 0 THEN
      IF s_dirty THEN
        UPDATE {s}.session SET head = s_head, top = s_top WHERE n = s_n;
      END IF;
      s_dirty := false; m_id := NULL; s_id := c_session[i];
      IF c_kind = 0 THEN
        numbers := numbers || {f}put_session(s_id, c_columns[i]::jsonb, c_data[i], c_words[i]);
        s_id := NULL;
        CONTINUE;
      END IF;
      SELECT n, head, top, data IS NOT NULL INTO s_n, s_head, s_top, s_live
        FROM {s}.session WHERE id = s_id FOR NO KEY UPDATE;
      IF s_n IS NULL AND is_put AND c_kind > 8 THEN
        INSERT INTO {s}.session(id, scope, position, seq, head, xid, born, data)
          VALUES (s_id, CASE WHEN starts_with(s_id, 'project_') THEN 1 ELSE 2 END, 0, 0, 0, me, me, '')
          RETURNING n INTO s_n;
        s_head := 0; s_top := ''; s_live := true;
      END IF;
    END IF;
    IF s_live IS NOT TRUE THEN
      IF is_put THEN
        RAISE EXCEPTION 'session % does not exist', s_id USING ERRCODE = 'HF001';
      END IF;
      numbers := numbers || 0::bigint;
      CONTINUE;
    END IF;

    IF NOT is_put THEN
      UPDATE {s}.record SET data = NULL, words = NULL, mark = 0, seq = s_head + 1, xid = me, at = moment
        WHERE session = s_n AND id = name AND kind = c_kind AND data IS NOT NULL RETURNING position INTO had;
      IF NOT FOUND THEN
        numbers := numbers || 0::bigint;
        CONTINUE;
      END IF;
      IF c_kind = 1 THEN
        DELETE FROM {s}.record WHERE session = s_n AND parent = had.position;
        m_id := NULL;
      END IF;
      s_head := s_head + 1; s_dirty := true;
      numbers := numbers || s_head;
      CONTINUE;
    END IF;

    parent_position := NULL;
    IF c_parent[i] IS NOT NULL THEN
      IF m_id IS DISTINCT FROM c_parent[i] THEN
        m_id := c_parent[i];
        SELECT position INTO m_position FROM {s}.record
          WHERE session = s_n AND id = m_id AND kind = 1 AND data IS NOT NULL;
        IF NOT FOUND THEN
          RAISE EXCEPTION 'message % of part % does not exist in session %', m_id, name, s_id
            USING ERRCODE = 'HF001';
        END IF;
      END IF;
      parent_position := m_position;
    END IF;
    SELECT r.position, r.parent, r.at, r.data IS NOT NULL AS live INTO had FROM {s}.record r
      WHERE r.session = s_n AND r.id = name AND r.kind = c_kind;
    s_head := s_head + 1; s_dirty := true;
    c_content := c_data[i]; c_vector := array_to_tsvector(string_to_array(c_words[i], ' '));
    IF o_position[i] IS NOT NULL THEN
      SELECT r.words, r.data INTO o FROM {s}.record r WHERE r.session = {f}source_number(o_session[i])
        AND r.position = o_position[i] AND r.seq = o_seq[i] AND r.kind = c_kind AND r.data IS NOT NULL;
      IF NOT FOUND THEN
        PERFORM {f}source_changed(o_session[i]);
      END IF;
      body := substr(name, strpos(name || '_', '_') + 1);
      IF body <= s_top THEN
        RAISE EXCEPTION 'id % is not above the ids of session %; mint the copies'' ids anew', name, s_id
          USING ERRCODE = 'HF002';
      END IF;
      IF c_content IS NULL THEN
        c_content := o.data; c_vector := o.words;
      END IF;
    END IF;
    IF had.live THEN
      IF had.parent IS DISTINCT FROM parent_position THEN
        RAISE EXCEPTION 'part % belongs to another message; a part cannot change its message', name
          USING ERRCODE = 'HF002';
      END IF;
      UPDATE {s}.record SET mark = c_bits[i] >> 2 & 3, seq = s_head, xid = me, data = c_content,
        place = CASE WHEN c_bits[i] & 2 = 2 THEN s_head ELSE place END,
        words = c_vector
        WHERE session = s_n AND position = had.position;
    ELSE
      IF had.position IS NOT NULL THEN  -- A tombstone: the id is made anew, at the end of the list.
        DELETE FROM {s}.record WHERE session = s_n AND position = had.position;
      END IF;
      IF c_kind <= 2 THEN
        body := substr(name, strpos(name || '_', '_') + 1);
        IF body > s_top THEN
          s_top := body;
        ELSIF s_id = ANY(rising) THEN
          RAISE EXCEPTION 'id % is not above the ids of session %; mint it anew', name, s_id
            USING ERRCODE = 'HF002';
        END IF;
      END IF;
      INSERT INTO {s}.record(session, position, kind, mark, seq, parent, xid, born, at, id, words, data)
        VALUES (s_n, s_head, c_kind, c_bits[i] >> 2 & 3, s_head, parent_position, me, me, had.at, name,
          c_vector, c_content);
    END IF;
    IF c_kind = 1 THEN
      m_id := name; m_position := CASE WHEN had.live THEN had.position ELSE s_head END;
    END IF;
    numbers := numbers || s_head;
  END LOOP;
  IF s_dirty THEN
    UPDATE {s}.session SET head = s_head, top = s_top WHERE n = s_n;
  END IF;
  RETURN numbers;
END $$;
