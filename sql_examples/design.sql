-- A rowkey is chosen once and lived with for long. What a layout will do can be seen before: which regions
-- take the writes, which queries find their way, and what is wrong with the data that is there.
--
--   rowkeydb run sql_examples/design.sql

-- ---------------------------------------------------------------------------------------------
\echo == A first design: the order number as it comes
-- ---------------------------------------------------------------------------------------------
CREATE TABLE orders (
  order_no   BIGINT    PRIMARY KEY,
  buyer_id   INTEGER   NOT NULL,
  order_time TIMESTAMP NOT NULL,
  shop       VARCHAR   NOT NULL,
  amount     INTEGER   NOT NULL
);
CREATE INDEX orders_by_shop ON orders (shop);
INSERT INTO orders
  SELECT i.value, i.value * 7919 % 500, to_timestamp(1700000000 + i.value * 90),
         CASE WHEN i.value % 3 = 0 THEN 'Taobao' WHEN i.value % 3 = 1 THEN 'Tmall' ELSE 'Jingdong' END, i.value % 97
  FROM generate_series(1, 6000) i;

-- ---------------------------------------------------------------------------------------------
\echo == What is wrong with it
-- ---------------------------------------------------------------------------------------------
LINT orders;

-- ---------------------------------------------------------------------------------------------
\echo == The same writes under other layouts, in the order they came
-- ---------------------------------------------------------------------------------------------
-- The share of the hottest region, how many regions work at once, how many are idle.
-- rowkeydb heatmap draws the same as a picture.
SIMULATE WRITES ON orders INTO 8 REGIONS
  UNDER LAYOUT (reverse(lpad(order_no, 8))), LAYOUT (md5_bucket(order_no, 8), order_no), LAYOUT (buyer_id, order_no);

-- ---------------------------------------------------------------------------------------------
\echo == What an index would change, tried on a copy
-- ---------------------------------------------------------------------------------------------
EXPLAIN WHATIF (INDEX (buyer_id, order_time DESC))
  SELECT order_no, amount FROM orders WHERE buyer_id = 7 ORDER BY order_time DESC LIMIT 3;

ADVISE FOR (SELECT order_no, amount FROM orders WHERE buyer_id = 7 ORDER BY order_time DESC LIMIT 3),
           (SELECT * FROM orders WHERE order_no = 7);

-- ---------------------------------------------------------------------------------------------
\echo == A change of mind: spread, and cut into regions where its keys are, while the table is in use
-- ---------------------------------------------------------------------------------------------
ALTER TABLE orders REKEY (reverse(lpad(order_no, 8)));
ALTER TABLE orders SPLIT INTO 4;
DROP INDEX orders_by_shop;
CREATE INDEX orders_by_buyer ON orders (buyer_id, order_time DESC);
SELECT rowkey, order_no, buyer_id, shop FROM orders WHERE order_no = 1234;
SELECT order_no, amount FROM orders WHERE buyer_id = 7 ORDER BY order_time DESC LIMIT 3;
SHOW REGIONS FROM orders;
DESCRIBE KEY OF orders_by_buyer;
LINT orders;
