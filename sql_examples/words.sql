-- A dictionary: the word itself is the rowkey. What does a sorted table find fast, and what not?
--
--   rowkeydb run sql_examples/words.sql

CREATE TABLE words (rowkey VARCHAR PRIMARY KEY);

INSERT INTO words VALUES
  ('abc'), ('abcd'), ('abcw'), ('abcx'), ('abcxy'), ('abdomen'), ('affix'), ('fix'), ('pre'), ('preach'),
  ('precise'), ('predict'), ('prefab'), ('prefer'), ('prefix'), ('prefixed'), ('press'), ('pretty'),
  ('prey'), ('suffix'), ('unfixed'), ('Zebra'), ('zebra');

-- ---------------------------------------------------------------------------------------------
\echo == One word: a GET
-- ---------------------------------------------------------------------------------------------
SELECT * FROM words WHERE rowkey = 'prefix';
EXPLAIN SELECT * FROM words WHERE rowkey = 'prefix';

-- ---------------------------------------------------------------------------------------------
\echo == Words that begin with ...: a range
-- ---------------------------------------------------------------------------------------------
-- All words with one beginning lie side by side, so they are one range: from the first word that
-- begins so to just before the first that comes after them all.
SELECT * FROM words WHERE rowkey LIKE 'pre%';
EXPLAIN SELECT * FROM words WHERE rowkey LIKE 'pre%';

SELECT * FROM words WHERE rowkey LIKE 'prefi%';
EXPLAIN SELECT * FROM words WHERE rowkey LIKE 'prefi%';

-- What follows the first wildcard cannot narrow the range; it is checked on each row inside it.
EXPLAIN SELECT * FROM words WHERE rowkey LIKE 'pre%ed';

-- ---------------------------------------------------------------------------------------------
\echo == Words between two words: a range
-- ---------------------------------------------------------------------------------------------
-- As HBase users write it, with the rowkey in the middle. Both ends are left out:
SELECT * FROM words WHERE 'abc' < rowkey < 'abcx';
EXPLAIN SELECT * FROM words WHERE 'abc' < rowkey < 'abcx';

-- and with both ends, as SQL has it.
SELECT * FROM words WHERE rowkey BETWEEN 'abc' AND 'abcx';
EXPLAIN SELECT * FROM words WHERE rowkey BETWEEN 'abc' AND 'abcx';

-- Upper case sorts before lower case: 'Z' is byte 5a, 'a' is byte 61.
SELECT * FROM words ORDER BY rowkey LIMIT 2;

-- The last words come from the end: a reverse scan that stops after two rows.
SELECT * FROM words ORDER BY rowkey DESC LIMIT 2;
EXPLAIN SELECT * FROM words ORDER BY rowkey DESC LIMIT 2;

-- ---------------------------------------------------------------------------------------------
\echo == Words that end with ...: every row is read
-- ---------------------------------------------------------------------------------------------
-- Words with one ending lie all over the table. The left end of the rowkey is not known, so there is
-- nowhere to start. Twenty-three words are read for four.
SELECT * FROM words WHERE rowkey LIKE '%fix';
EXPLAIN ANALYZE SELECT * FROM words WHERE rowkey LIKE '%fix';

-- The same goes for words with something in the middle.
EXPLAIN SELECT * FROM words WHERE rowkey LIKE '%efi%';

-- ---------------------------------------------------------------------------------------------
\echo == Words that end with ...: an index table over the reversed word
-- ---------------------------------------------------------------------------------------------
-- Written backwards, the ending comes first: 'prefix' is stored as 'xiferp'. Now the same question is
-- a range, and four entries are read for four words.
CREATE INDEX words_reversed ON words (reverse(rowkey));

SELECT * FROM words WHERE rowkey LIKE '%fix';
EXPLAIN ANALYZE SELECT * FROM words WHERE rowkey LIKE '%fix';

-- Something in the middle is still beyond any sorted key.
EXPLAIN SELECT * FROM words WHERE rowkey LIKE '%efi%';
