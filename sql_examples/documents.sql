-- Documents: a table of JSON under keys of their own, as in a document store, with indexes on what is inside.
--
--   rowkeydb run sql_examples/documents.sql

CREATE TABLE place (_id VARCHAR PRIMARY KEY, doc JSON, CHECK (json_typeof(doc) = 'object'));

-- An index part may be any part of the document; rows without it are NULL there.
CREATE INDEX place_by_city ON place (doc ->> 'city', doc #>> '{address,street}');
CREATE INDEX place_by_first_tag ON place (doc -> 'tags' ->> 0) WHERE doc ->> 'kind' = 'shop';

INSERT INTO place VALUES
  ('oslo-1', '{"city": "Oslo", "kind": "shop", "address": {"street": "Markveien"}, "tags": ["books", "maps"]}'),
  ('oslo-2', '{"city": "Oslo", "kind": "bar", "address": {"street": "Torggata"}, "seats": 40}'),
  ('rome-1', '{"city": "Rome", "kind": "shop", "address": {"street": "Via Appia", "no": "7b"}, "tags": ["books"]}'),
  ('rome-2', '{"city": "Rome", "kind": "shop", "tags": []}'),
  ('sea-1', '{"kind": "bar", "seats": 12}');

\echo == What is inside: -> is a part, ->> its text, #>> follows a path; a number counts elements
SELECT _id, doc -> 'address' AS address, doc #>> '{address,street}' AS street, doc -> 'tags' ->> -1 AS last_tag
FROM place ORDER BY _id;

\echo == A condition on a part that has an index is a range of that index
SELECT _id FROM place WHERE doc ->> 'city' = 'Oslo' ORDER BY doc #>> '{address,street}' DESC;
EXPLAIN SELECT _id FROM place WHERE doc ->> 'city' = 'Oslo' ORDER BY doc #>> '{address,street}' DESC;
EXPLAIN SELECT _id FROM place WHERE doc -> 'tags' ->> 0 LIKE 'bo%' AND doc ->> 'kind' = 'shop';

\echo == Groups and numbers
SELECT doc ->> 'kind' AS kind, count(*), sum((doc ->> 'seats')::int) AS seats FROM place GROUP BY doc ->> 'kind' ORDER BY kind;

\echo == Elements and members as rows, beside those that they are in
SELECT tag, count(*) FROM place, json_array_elements_text(doc -> 'tags') AS tag GROUP BY tag ORDER BY tag;
SELECT _id, part.key, part.value FROM place, json_each(doc -> 'address') AS part ORDER BY _id, part.key;
SELECT _id FROM place WHERE _id IN (SELECT value FROM json_array_elements_text('["sea-1", "rome-2"]')) ORDER BY _id;

\echo == Every write keeps the indexes in step
UPDATE place SET doc = '{"city": "Bergen", "kind": "shop", "tags": ["fish"]}' WHERE _id = 'sea-1';
SELECT _id, doc ->> 'city' AS city FROM place WHERE doc ->> 'city' < 'C';
SELECT rowkey, * FROM place_by_first_tag;
CHECK TABLE place;
