-- Hotspots: keys that grow send every write to the end of the table, where one machine does all the
-- work. The same four ids, foo0001 to foo0004, and the same numbers, under every cure and its price.
--
--   rowkeydb run sql_examples/hotspots.sql

-- ---------------------------------------------------------------------------------------------
\echo == The hotspot
-- ---------------------------------------------------------------------------------------------
-- With one region for each letter, all of these lie in region f.
CREATE TABLE plain (id VARCHAR PRIMARY KEY);
INSERT INTO plain VALUES ('foo0001'), ('foo0002'), ('foo0003'), ('foo0004');
SELECT rowkey FROM plain;

-- What every cure below gives up a part of: the ids of a range lie side by side.
EXPLAIN SELECT id FROM plain WHERE id BETWEEN 'foo0002' AND 'foo0003';

-- ---------------------------------------------------------------------------------------------
\echo == Random salt: random(4), '-', id
-- ---------------------------------------------------------------------------------------------
-- Each insert draws one of four buckets, 0 to 3, so that four regions take the writes. (The keys differ
-- from run to run; here they are shown without the bucket.)
CREATE TABLE salted (id VARCHAR, PRIMARY KEY (random(4), '-', id));
INSERT INTO salted SELECT * FROM plain;
SELECT substr(rowkey, 2) AS rowkey_without_bucket, length(rowkey) AS bytes FROM salted ORDER BY id;

-- Price: nobody knows where an id went. One id is looked for in all four buckets,
EXPLAIN SELECT id FROM salted WHERE id = 'foo0003';
-- and a range is four ranges, merged back into order.
EXPLAIN SELECT id FROM salted WHERE id BETWEEN 'foo0002' AND 'foo0003' ORDER BY id;
-- And the same id may be stored twice, as 2-foo0003 beside 0-foo0003.

-- [userId][orderid][random(100)]: at the end of the key a random number keeps rows of one user and one
-- order apart. It does nothing against hotspots: the left end decides where a row goes.
CREATE TABLE salted_last (
  user_id  BIGINT,
  order_id BIGINT,
  PRIMARY KEY (lpad(user_id, 6), lpad(order_id, 6), '_', random(100))
);
INSERT INTO salted_last VALUES (123, 1), (123, 2);
SELECT left(rowkey, 13) AS rowkey_without_bucket, length(rowkey) AS bytes FROM salted_last ORDER BY order_id;

-- ---------------------------------------------------------------------------------------------
\echo == Hash salt: left(md5(id), 4), id
-- ---------------------------------------------------------------------------------------------
-- A hash always gives the same salt for the same id, so whoever knows the id knows the whole key.
CREATE TABLE hash_salted (id VARCHAR, PRIMARY KEY (left(md5(id), 4), id));
INSERT INTO hash_salted SELECT * FROM plain;
SELECT rowkey, id FROM hash_salted ORDER BY rowkey;

-- One id is one GET again.
EXPLAIN SELECT id FROM hash_salted WHERE id = 'foo0003';
-- Price: a range of ids lies anywhere.
EXPLAIN SELECT id FROM hash_salted WHERE id BETWEEN 'foo0002' AND 'foo0003';

-- The salt of a time: the MD5 of 1364248490 ends with ffe5, so its key is ffe51364248490. Drop the
-- first four digits, and there is the time again.
CREATE TABLE events (ts BIGINT, PRIMARY KEY (right(md5(ts), 4), lpad(ts, 10)));
INSERT INTO events VALUES (1364248490), (1364248491), (1364248492);
SELECT rowkey, ts FROM events ORDER BY ts;
EXPLAIN SELECT ts FROM events WHERE ts = 1364248490;

-- [md5(userid).subStr(0,4)][userId][orderid]: the salt of the user alone. All orders of a user stay
-- together, and users are spread.
CREATE TABLE user_orders (
  user_id  BIGINT,
  order_id BIGINT,
  PRIMARY KEY (substr(md5(user_id), 1, 4), lpad(user_id, 6), lpad(order_id, 6))
);
INSERT INTO user_orders VALUES (123, 1), (123, 2), (124, 3), (125, 4);
SELECT rowkey, user_id, order_id FROM user_orders ORDER BY rowkey;
EXPLAIN SELECT order_id FROM user_orders WHERE user_id = 123 AND order_id >= 2;

-- ---------------------------------------------------------------------------------------------
\echo == The whole hash: md5(id)
-- ---------------------------------------------------------------------------------------------
-- The best spread and 16 bytes, whatever the id. The id itself cannot be read back from the key, so it
-- is kept in the row.
CREATE TABLE hashed (id VARCHAR, PRIMARY KEY (md5(id)));
INSERT INTO hashed SELECT * FROM plain;
SELECT rowkey, id FROM hashed ORDER BY rowkey;
EXPLAIN SELECT id FROM hashed WHERE id = 'foo0003';

-- ---------------------------------------------------------------------------------------------
\echo == Hash buckets: md5_bucket(id, 6), '-', id
-- ---------------------------------------------------------------------------------------------
-- As many buckets as we choose, each found by the hash: one id is one GET, and a range is one range in
-- each bucket. Of all salts the one to try first. (16 is a good number; six are easier to look at.)
CREATE TABLE bucketed (id VARCHAR, PRIMARY KEY (md5_bucket(id, 6), '-', id));
INSERT INTO bucketed SELECT * FROM plain;
SELECT rowkey, id FROM bucketed ORDER BY rowkey;
EXPLAIN SELECT id FROM bucketed WHERE id = 'foo0003';

-- In lexicographic order again, by merging the buckets.
SELECT id FROM bucketed WHERE id > 'foo0001' ORDER BY id;
EXPLAIN SELECT id FROM bucketed WHERE id > 'foo0001' ORDER BY id;

-- ---------------------------------------------------------------------------------------------
\echo == Modulo: id % 4, id
-- ---------------------------------------------------------------------------------------------
-- For numbers, the remainder is a bucket that can be read by eye.
CREATE TABLE numbers (id BIGINT PRIMARY KEY);
INSERT INTO numbers VALUES (123), (124), (125), (126);

CREATE TABLE modulo (id BIGINT, PRIMARY KEY (id % 4, '-', lpad(id, 6)));
INSERT INTO modulo SELECT * FROM numbers;
SELECT rowkey, id FROM modulo ORDER BY rowkey;
EXPLAIN SELECT id FROM modulo WHERE id = 125;
EXPLAIN SELECT id FROM modulo WHERE id BETWEEN 124 AND 125 ORDER BY id;

-- Salt + Pad(OrderID, '0') with the digit in the units place is the remainder by ten.
CREATE TABLE units (order_id BIGINT, PRIMARY KEY (order_id % 10, lpad(order_id, 6)));
INSERT INTO units SELECT * FROM numbers;
SELECT rowkey, order_id FROM units ORDER BY order_id;

-- ---------------------------------------------------------------------------------------------
\echo == Reversing: reverse(id)
-- ---------------------------------------------------------------------------------------------
-- The digit that changes most comes first. Nothing is added to the key and nothing is hashed, but the
-- order of the ids is gone.
CREATE TABLE reversed (id VARCHAR, PRIMARY KEY (reverse(id)));
INSERT INTO reversed SELECT * FROM plain;
SELECT rowkey, id FROM reversed ORDER BY rowkey;
EXPLAIN SELECT id FROM reversed WHERE id = 'foo0003';
EXPLAIN SELECT id FROM reversed WHERE id BETWEEN 'foo0002' AND 'foo0003';

-- Numbers are padded first: Reverse(Pad(OrderID, '0')).
CREATE TABLE reversed_number (id BIGINT, PRIMARY KEY (reverse(lpad(id, 6))));
INSERT INTO reversed_number SELECT * FROM numbers;
SELECT rowkey, id FROM reversed_number ORDER BY rowkey;

-- reverse_bytes(id) does it to the 8 bytes of the number: shorter than the text, and not for the eye.
CREATE TABLE reversed_bytes (id BIGINT, PRIMARY KEY (reverse_bytes(id)));
INSERT INTO reversed_bytes SELECT * FROM numbers;
SELECT rowkey, id FROM reversed_bytes ORDER BY rowkey;
EXPLAIN SELECT id FROM reversed_bytes WHERE id = 125;

-- ---------------------------------------------------------------------------------------------
\echo == Short keys
-- ---------------------------------------------------------------------------------------------
-- Every byte of a rowkey is stored again with every family and in every index table. A BIGINT is 8
-- bytes; the same number as text is 10, its MD5 16.
CREATE TABLE as_bigint (n BIGINT PRIMARY KEY);
CREATE TABLE as_text (n BIGINT, PRIMARY KEY (lpad(n, 10)));
CREATE TABLE as_md5 (n BIGINT, PRIMARY KEY (md5(n)));
INSERT INTO as_bigint VALUES (1234567890);
INSERT INTO as_text VALUES (1234567890);
INSERT INTO as_md5 VALUES (1234567890);
SELECT 'BIGINT' AS stored_as, length(rowkey) AS bytes FROM as_bigint
UNION ALL SELECT 'text', length(rowkey) FROM as_text
UNION ALL SELECT 'MD5', length(rowkey) FROM as_md5
ORDER BY bytes;

-- A name that comes back in every key is best a code: [shop][order]. Unknown names are refused.
CREATE TABLE shop_orders (
  shop     VARCHAR,
  order_id BIGINT,
  PRIMARY KEY (code(shop, 'Taobao=tb, Tmall=tm'), lpad(order_id, 6))
);
INSERT INTO shop_orders VALUES ('Taobao', 1), ('Tmall', 2);
SELECT rowkey, shop, order_id FROM shop_orders ORDER BY rowkey;
