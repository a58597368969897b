-- One call writes what waited together. Per batch: its last change, its last expectation, its fence (f_text by twos:
-- session, owner), the original of each change that copies one (o_). Arrays of what no batch of the group has are NULL.

-- A batch alone: what is wrong with it is raised. a_top is given when it may be one for `append`, after the record of
-- its session perhaps (a fork, an import).
CREATE OR REPLACE FUNCTION {f}commit_one(
  names text[], makes text[], b_to int[], c_bits int[], c_session text[], c_id text[], c_parent text[],
  c_columns text[], c_words text[], c_data text[], e_to int[], e_bits int[], e_text text[], e_seq bigint[],
  f_text text[], f_number bigint[], f_release boolean[], gone text[], given_ms bigint,
  o_session text[], o_position bigint[], o_seq bigint[], a_low text, a_top text
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {f}now_ms(given_ms);
  rising text[];
  numbers bigint[];
  made bigint[];   -- the number of the session's own record, when it comes first
  first int := 1;
BEGIN
  PERFORM {f}durable();
  -- What is expected must be judged under the lock, or two that expect the same would both be right. The fence of a
  -- batch with one session is the lock of that session.
  IF makes IS NOT NULL OR cardinality(names) > 1 OR e_to IS NOT NULL AND f_number IS NULL THEN
    PERFORM {f}lock_sessions(names, makes);
  END IF;
  IF f_number IS NOT NULL OR e_to IS NOT NULL THEN
    rising := {f}check_batch(
      1, coalesce(e_to[1], 0), e_bits, e_text, e_seq, f_text[1], f_text[2], f_number[1], gone, moment);
  END IF;
  IF a_top IS NOT NULL THEN
    IF c_columns[1] IS NULL THEN
      numbers := {f}append(
        c_session[1], c_bits, c_id, c_words, c_data, a_low, a_top, rising, o_session, o_position, o_seq);
    ELSE
      made := ARRAY[{f}put_session(c_session[1], c_columns[1]::jsonb, c_data[1], c_words[1])];
      first := 2;
      numbers := {f}append(
        c_session[1], c_bits[2:], c_id[2:], c_words[2:], c_data[2:], a_low, a_top, rising,
        o_session[2:], o_position[2:], o_seq[2:]);
    END IF;
  END IF;
  IF numbers IS NULL THEN
    numbers := {f}write_changes(
      first, b_to[1], c_bits, c_session, c_id, c_parent, c_columns, c_words, c_data, rising, moment,
      o_session, o_position, o_seq);
  END IF;
  IF f_release[1] THEN
    UPDATE {s}.session SET owner = NULL WHERE id = f_text[1];
  END IF;
  RETURN made || numbers;
END $$;

-- Several: each in a subtransaction of its own, each with an answer of its own.
CREATE OR REPLACE FUNCTION {f}commit_group(
  names text[], makes text[], b_to int[], c_bits int[], c_session text[], c_id text[], c_parent text[],
  c_columns text[], c_words text[], c_data text[], e_to int[], e_bits int[], e_text text[], e_seq bigint[],
  f_text text[], f_number bigint[], f_release boolean[], gone text[], given_ms bigint,
  o_session text[], o_position bigint[], o_seq bigint[]
) RETURNS TABLE(numbers bigint[], code text, message text) LANGUAGE plpgsql AS $$
DECLARE
  moment bigint := {f}now_ms(given_ms);
  c_first int := 1;
  e_first int := 1;
  rising text[];
BEGIN
  PERFORM {f}durable();
  PERFORM {f}lock_sessions(names, makes);
  FOR b IN 1 .. cardinality(b_to) LOOP
    code := NULL; message := NULL;
    BEGIN
      rising := {f}check_batch(e_first, coalesce(e_to[b], 0), e_bits, e_text, e_seq,
        f_text[2 * b - 1], f_text[2 * b], f_number[b], gone, moment);
      numbers := {f}write_changes(
        c_first, b_to[b], c_bits, c_session, c_id, c_parent, c_columns, c_words, c_data, rising, moment,
        o_session, o_position, o_seq);
      IF f_release[b] THEN
        UPDATE {s}.session SET owner = NULL WHERE id = f_text[2 * b - 1];
      END IF;
    EXCEPTION WHEN SQLSTATE 'HF001' OR SQLSTATE 'HF002' OR SQLSTATE 'HF003' THEN
      numbers := NULL; code := SQLSTATE; message := SQLERRM;
    END;
    c_first := b_to[b] + 1;
    e_first := coalesce(e_to[b], 0) + 1;
    RETURN NEXT;
  END LOOP;
END $$;
