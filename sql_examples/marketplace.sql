-- A marketplace keeps one table of orders and asks for them in four ways: by order number, and by
-- seller, by buyer and by customer, each with time. A rowkey answers one of these questions; index
-- tables, which every write keeps up to date, answer the other three.
--
--   rowkeydb run sql_examples/marketplace.sql

-- ---------------------------------------------------------------------------------------------
\echo == The table: [order number]
-- ---------------------------------------------------------------------------------------------
-- Order numbers count up. Stored as they are, every new row would land at the end of the table, where
-- one machine takes all the writes. Reversed, the digit that changes most comes first, and
-- neighbours in time lie far apart. Nobody asks for a range of order numbers, so nothing is lost.

CREATE TABLE orders (
  order_no    BIGINT,
  seller_id   BIGINT        NOT NULL,
  buyer_id    BIGINT        NOT NULL,  -- the account that pays
  customer_id BIGINT        NOT NULL,  -- the person the goods go to
  order_time  TIMESTAMP     NOT NULL,
  amount      DECIMAL(10,2) NOT NULL,
  status      VARCHAR       NOT NULL DEFAULT 'open',
  PRIMARY KEY (reverse(lpad(order_no, 12)))
);

-- ---------------------------------------------------------------------------------------------
\echo == The index tables: [who][time], and the rowkey of the order behind them
-- ---------------------------------------------------------------------------------------------
-- A seller looks at a day, a week, a month: seller first, then time. Every part is text here, so the
-- keys can be read by eye; padding makes the text sort as the numbers do.
CREATE INDEX orders_by_seller ON orders (lpad(seller_id, 6), '_', to_char(order_time, 'YYYYMMDDHH24MISS'));

-- A buyer looks at the latest orders: time runs backwards, so that the newest entry comes first.
-- These parts are binary, 8 bytes each. INCLUDE keeps a copy of what the list shows.
CREATE INDEX orders_by_buyer ON orders (buyer_id, order_time DESC) INCLUDE (amount, status);

-- A customer is asked about in both directions.
CREATE INDEX orders_by_customer ON orders (customer_id, order_time);

-- Few orders are open at any moment. An index table with WHERE holds only those.
CREATE INDEX open_orders ON orders (order_time) WHERE status = 'open';

INSERT INTO orders (order_no, seller_id, buyer_id, customer_id, order_time, amount, status) VALUES
  (240001000001, 7,  301, 5001, '2024-03-01 09:00:12',   59.90, 'paid'),
  (240001000002, 7,  302, 5002, '2024-03-01 09:02:40',   12.50, 'paid'),
  (240001000003, 12, 301, 5001, '2024-03-01 09:15:05',  249.00, 'paid'),
  (240001000004, 7,  303, 5004, '2024-03-01 18:44:00',   59.90, 'cancelled'),
  (240001000005, 31, 301, 5003, '2024-03-02 08:01:33',    8.75, 'paid'),
  (240001000006, 12, 304, 5002, '2024-03-02 11:20:00',  120.00, 'paid'),
  (240001000007, 7,  301, 5001, '2024-03-02 12:05:59',   17.25, 'paid'),
  (240001000008, 31, 302, 5002, '2024-03-02 20:30:10',   64.00, 'open'),
  (240001000009, 7,  304, 5005, '2024-03-03 07:45:21',   59.90, 'open'),
  (240001000010, 12, 301, 5001, '2024-03-03 10:10:10', 1049.00, 'open'),
  (240001000011, 7,  302, 5002, '2024-03-03 10:10:11',   12.50, 'open'),
  (240001000012, 70, 303, 5004, '2024-03-03 10:12:00',    3.20, 'open');

-- In the order in which they are stored. The last digit of the number leads.
SELECT rowkey, order_no, order_time FROM orders ORDER BY rowkey;

-- ---------------------------------------------------------------------------------------------
\echo == By order number
-- ---------------------------------------------------------------------------------------------
-- All of the rowkey is known, so it is fetched by one GET: the fastest way there is.
SELECT * FROM orders WHERE order_no = 240001000010;
EXPLAIN SELECT * FROM orders WHERE order_no = 240001000010;

-- Three numbers are three GETs.
SELECT order_no, status FROM orders WHERE order_no IN (240001000003, 240001000004, 240001000011);
EXPLAIN SELECT order_no, status FROM orders WHERE order_no IN (240001000003, 240001000004, 240001000011);

-- ---------------------------------------------------------------------------------------------
\echo == By seller and time
-- ---------------------------------------------------------------------------------------------
-- Seller 7 and seller 70 do not mix: 000007 and 000070.
SELECT rowkey, primary_rowkey FROM orders_by_seller;

-- What seller 7 sold on 2 and 3 March: one range of keys, then a GET for each entry's order.
SELECT order_no, order_time, amount FROM orders
WHERE seller_id = 7 AND order_time >= '2024-03-02' AND order_time < '2024-03-04';
EXPLAIN SELECT order_no, order_time, amount FROM orders
WHERE seller_id = 7 AND order_time >= '2024-03-02' AND order_time < '2024-03-04';

-- ---------------------------------------------------------------------------------------------
\echo == By buyer and time
-- ---------------------------------------------------------------------------------------------
-- The three latest orders of buyer 301. The entries lie in this order and hold every column that is
-- asked for: three entries are read, nothing is sorted, no order is fetched.
SELECT order_no, order_time, amount, status FROM orders WHERE buyer_id = 301 ORDER BY order_time DESC LIMIT 3;
EXPLAIN ANALYZE
SELECT order_no, order_time, amount, status FROM orders WHERE buyer_id = 301 ORDER BY order_time DESC LIMIT 3;

-- ---------------------------------------------------------------------------------------------
\echo == By customer and time
-- ---------------------------------------------------------------------------------------------
-- Oldest first as the entries lie; newest first by walking the same range from its end.
SELECT order_no, order_time, amount FROM orders WHERE customer_id = 5002 ORDER BY order_time;
SELECT order_no, order_time, amount FROM orders WHERE customer_id = 5002 ORDER BY order_time DESC LIMIT 1;
EXPLAIN
SELECT order_no, order_time, amount FROM orders WHERE customer_id = 5002 ORDER BY order_time DESC LIMIT 1;

-- ---------------------------------------------------------------------------------------------
\echo == Open orders
-- ---------------------------------------------------------------------------------------------
-- Usable because the query asks for open orders and for no others.
EXPLAIN SELECT * FROM orders WHERE status = 'open' ORDER BY order_time LIMIT 2;
SELECT order_no, order_time, status FROM orders WHERE status = 'open' ORDER BY order_time LIMIT 2;

-- One statement changes a row and the index tables it shows in, all at once or not at all. The order
-- leaves open_orders; its entries by seller and by customer do not change and are not written.
UPDATE orders SET status = 'paid' WHERE order_no = 240001000008;
SELECT order_time, primary_rowkey FROM open_orders;

-- ---------------------------------------------------------------------------------------------
\echo == What no key answers
-- ---------------------------------------------------------------------------------------------
-- No layout leads with the amount, so every row is read and checked. EXPLAIN says for each index why it
-- cannot serve.
SELECT order_no, customer_id, amount FROM orders WHERE amount > 200 ORDER BY order_no;
EXPLAIN SELECT order_no, customer_id, amount FROM orders WHERE amount > 200;

-- Reading everything is right when every row counts. What this asks for is all in orders_by_buyer, so
-- its entries are read instead of the wider rows.
SELECT buyer_id, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY buyer_id ORDER BY buyer_id;
EXPLAIN SELECT buyer_id, amount FROM orders;
