-- From a relational schema to rowkeys: orders of customers with their payments, one wide table, and
-- index tables for the questions that its rowkey cannot answer. It follows "Porting your RDBMS SQL
-- database to a NoSQL wide column database, part four: row key", and every key and every result
-- printed there is printed here.
--
--   rowkeydb run sql_examples/customer_order.sql

-- ---------------------------------------------------------------------------------------------
\echo == Order: keys sort byte by byte, from left to right
-- ---------------------------------------------------------------------------------------------
CREATE TABLE id_text (rowkey VARCHAR PRIMARY KEY);
INSERT INTO id_text VALUES ('1'), ('09'), ('005'), ('2'), ('3'), ('22'), ('11');
SELECT '{' || string_agg(rowkey, ',' ORDER BY rowkey::INT) || '}' AS as_numbers FROM id_text;
SELECT '{' || string_agg(rowkey, ',' ORDER BY rowkey) || '}' AS as_bytes FROM id_text;

-- 'S' is a smaller byte than 's', so ASH comes before Ash; digits come before letters.
INSERT INTO id_text VALUES ('Ash'), ('ASH');
SELECT '{' || string_agg(rowkey, ',' ORDER BY rowkey) || '}' AS as_bytes FROM id_text;

-- ---------------------------------------------------------------------------------------------
\echo == Padding: numbers of one width sort as numbers
-- ---------------------------------------------------------------------------------------------
-- Asked for 1 to 5, text keys give back unwanted rows and leave wanted ones out.
SELECT '{' || string_agg(rowkey, ',' ORDER BY rowkey) || '}' AS one_to_five FROM id_text
WHERE rowkey BETWEEN '1' AND '5';

-- lpad(id, 4) writes every number with four digits.
CREATE TABLE id_padded (id BIGINT, PRIMARY KEY (lpad(id, 4)));
INSERT INTO id_padded VALUES (1), (9), (5), (2), (3), (22), (11);
SELECT '{' || string_agg(rowkey, ',' ORDER BY rowkey) || '}' AS as_bytes FROM id_padded;
SELECT '{' || string_agg(rowkey, ',' ORDER BY rowkey) || '}' AS one_to_five FROM id_padded
WHERE id BETWEEN 1 AND 5;
EXPLAIN SELECT rowkey FROM id_padded WHERE id BETWEEN 1 AND 5;

-- Up to a million customers: six digits, and no more. Short keys are fast keys.
CREATE TABLE customer (customer_id BIGINT, PRIMARY KEY (lpad(customer_id, 6)));
INSERT INTO customer VALUES (123), (100);
SELECT customer_id, rowkey FROM customer ORDER BY rowkey;

-- ---------------------------------------------------------------------------------------------
\echo == Descending: store the greatest value minus the value
-- ---------------------------------------------------------------------------------------------
CREATE TABLE customer_desc (customer_id BIGINT, PRIMARY KEY (lpad(999999 - customer_id, 6)));
INSERT INTO customer_desc VALUES (123), (100);
SELECT customer_id, rowkey FROM customer_desc ORDER BY rowkey;

-- The engine knows that this key runs backwards: descending ids are a forward scan, without a sort.
EXPLAIN SELECT customer_id FROM customer_desc WHERE customer_id < 200 ORDER BY customer_id DESC;

-- ---------------------------------------------------------------------------------------------
\echo == CustomerOrder: Reverse(Pad(OrderID, '0'))
-- ---------------------------------------------------------------------------------------------
-- Order ids come from a sequence. A week of them would lie in one region, and a report on that week
-- would read that region only. Reversed after padding, they spread over all of them.
--
-- The columns that are read together are stored together, in six column families with short names:
-- C customer, O order, P payment, S shipping, B billing, D discount.
CREATE TABLE customer_order (
  order_id         BIGINT,

  customer_id      BIGINT NOT NULL,
  first_name       VARCHAR,
  last_name        VARCHAR,
  business_name    VARCHAR,
  email_address    VARCHAR,
  designation      VARCHAR,

  order_no         VARCHAR,
  order_time       TIMESTAMP,
  o_total_amount   DECIMAL(12,2),
  o_gross_amount   DECIMAL(12,2),
  order_status     VARCHAR,
  item_count       INTEGER,

  payment_id       BIGINT,
  payment_time     TIMESTAMP,
  payment_mode     VARCHAR,
  card_name        VARCHAR,
  card_number      VARCHAR,
  amount           DECIMAL(12,2),
  expiry_date      DATE,
  auth_details     VARCHAR,
  payment_status   VARCHAR,

  s_address_id     BIGINT,
  s_address1       VARCHAR,
  s_address2       VARCHAR,
  s_city           VARCHAR,
  s_state          VARCHAR,
  s_zip            VARCHAR,

  b_address_id     BIGINT,
  b_address1       VARCHAR,
  b_address2       VARCHAR,
  b_city           VARCHAR,
  b_state          VARCHAR,
  b_zip            VARCHAR,

  discount_code    VARCHAR,
  d_gross_amount   DECIMAL(12,2),
  d_total_amount   DECIMAL(12,2),

  PRIMARY KEY (reverse(lpad(order_id, 12))),
  FAMILY c (customer_id, first_name, last_name, business_name, email_address, designation),
  FAMILY o (order_no, order_time, o_total_amount, o_gross_amount, order_status, item_count),
  FAMILY p (payment_id, payment_time, payment_mode, card_name, card_number, amount, expiry_date,
            auth_details, payment_status),
  FAMILY s (s_address_id, s_address1, s_address2, s_city, s_state, s_zip) WITH (compression = 'lz4'),
  FAMILY b (b_address_id, b_address1, b_address2, b_city, b_state, b_zip) WITH (compression = 'lz4'),
  FAMILY d (discount_code, d_gross_amount, d_total_amount)
);

-- Secondary index tables: a concatenated key, and the rowkey of the order it leads to.
-- The payment id at the end makes the keys unique: two people may pay in the same second.
CREATE INDEX payments_by_date ON customer_order
  (to_char(payment_time, 'DD-MM-YYYY HH24:MI:SS'), '_', lpad(customer_id, 6), '_', lpad(payment_id, 9));
CREATE INDEX payments_by_customer ON customer_order
  (lpad(customer_id, 6), '_', to_char(payment_time, 'DD-MM-YYYY HH24:MI:SS'), '_', lpad(payment_id, 9));
CREATE INDEX customer_orders ON customer_order
  (to_char(order_time, 'DD-MM-YYYY HH24:MI:SS'), '_', lpad(customer_id, 6), '_', lpad(order_id, 12));

INSERT INTO customer_order
  (order_id, customer_id, first_name, last_name, order_no, order_time, o_total_amount, order_status,
   payment_id, payment_time, payment_mode, amount, payment_status, s_city, discount_code)
VALUES
  (240001000000, 123, 'Asha',  'Rao',   'W-1000', '2017-01-01 08:58:10', 120.00, 'shipped',
   12345678, '2017-01-01 09:00:00', 'card', 120.00, 'paid', 'Pune', NULL),
  (240001000001, 156, 'Bilal', 'Khan',  'W-1001', '2017-01-01 08:59:02',  80.50, 'shipped',
   12345679, '2017-01-01 09:00:30', 'card',  80.50, 'paid', 'Mumbai', 'NEWYEAR'),
  (240001000002, 129, 'Chen',  'Li',    'W-1002', '2017-01-01 09:00:05',  15.00, 'packed',
   12345680, '2017-01-01 09:00:40', 'cash',  15.00, 'paid', 'Nagpur', NULL),
  (240001000003, 163, 'Dana',  'Weiss', 'W-1003', '2017-01-01 09:04:00', 310.00, 'packed',
   12345681, '2017-01-01 09:05:00', 'card', 310.00, 'paid', 'Pune', NULL),
  (240001000004, 123, 'Asha',  'Rao',   'W-1004', '2017-01-01 16:05:00',  42.00, 'open',
   12345682, '2017-01-01 16:06:30', 'card',  42.00, 'paid', 'Pune', 'NEWYEAR');

-- By order id: one GET. Of the six families it reads S alone.
SELECT rowkey, order_id, s_city FROM customer_order WHERE order_id = 240001000000;
EXPLAIN SELECT rowkey, order_id, s_city FROM customer_order WHERE order_id = 240001000000;

-- ---------------------------------------------------------------------------------------------
\echo == PaymentDateTime_CustomerID_PaymentID
-- ---------------------------------------------------------------------------------------------
-- Payments of customer 123 on a day, start and end key as one would first think of them:
SELECT rowkey FROM payments_by_date
WHERE rowkey BETWEEN '01-01-2017 00:00:00_000123' AND '01-01-2017 16:59:59_000123';
-- Other customers' rows are in the result. Time stands left of the customer, so the range is one of
-- time; the customer only counts among payments of the same second. This key cannot give the payments
-- of one customer over a range of dates.
EXPLAIN SELECT rowkey FROM payments_by_date
WHERE rowkey BETWEEN '01-01-2017 00:00:00_000123' AND '01-01-2017 16:59:59_000123';

-- It does give everybody's payments in a time. What stands to the right can be left out.
SELECT rowkey FROM payments_by_date
WHERE rowkey BETWEEN '01-01-2017 00:00:00' AND '01-01-2017 09:59:59';

-- A sixth payment comes in; the index tables have it at once. (The article's results leave it out.)
INSERT INTO customer_order
  (order_id, customer_id, first_name, last_name, order_no, order_time, o_total_amount, order_status,
   payment_id, payment_time, payment_mode, amount, payment_status, s_city)
VALUES
  (240001000005, 23, 'Emil', 'Novak', 'W-1005', '2017-01-01 09:06:10', 9.90, 'open',
   12345683, '2017-01-01 09:07:00', 'cash', 9.90, 'paid', 'Thane');

-- The keys as they are sorted. (The article lists 16:06:30 before 09:07:00; bytes do not.)
SELECT rowkey FROM payments_by_date;

-- A key holds one value. Writing the first payment again changes its row, and adds no second one.
UPSERT INTO customer_order (order_id, customer_id, payment_id, payment_time)
VALUES (240001000000, 123, 12345678, '2017-01-01 09:00:00');
SELECT count(*) AS payments FROM payments_by_date;

-- ---------------------------------------------------------------------------------------------
\echo == CustomerID_PaymentDateTime_PaymentID
-- ---------------------------------------------------------------------------------------------
-- The same parts in another order. The more important a part, the further left it stands.
SELECT rowkey FROM payments_by_customer;

-- The search keys in that order, and only what was wanted comes back.
SELECT rowkey FROM payments_by_customer
WHERE rowkey BETWEEN '000123_01-01-2017 00:00:00' AND '000123_01-01-2017 16:59:59';

-- All payments of customer 123: start and end key '000123'. In SQL that is a prefix,
SELECT rowkey FROM payments_by_customer WHERE rowkey LIKE '000123%';
-- or just the question, and the engine finds the prefix.
SELECT rowkey FROM payments_by_customer WHERE customer_id = 123;
EXPLAIN SELECT rowkey FROM payments_by_customer WHERE customer_id = 123;

-- All payments of customer 123 on 1 January 2017: start and end key '000123_01-01-2017',
SELECT rowkey FROM payments_by_customer WHERE rowkey LIKE '000123\_01-01-2017%';
-- or with everything to the right written out.
SELECT rowkey FROM payments_by_customer
WHERE rowkey BETWEEN '000123_01-01-2017 00:00:00_000000000' AND '000123_01-01-2017 23:59:59_999999999';
EXPLAIN SELECT rowkey FROM payments_by_customer
WHERE rowkey BETWEEN '000123_01-01-2017 00:00:00_000000000' AND '000123_01-01-2017 23:59:59_999999999';

-- ---------------------------------------------------------------------------------------------
\echo == From an index table to the order
-- ---------------------------------------------------------------------------------------------
-- OrderID = Reverse(Pad(OrderID, '0')): the value of an entry is the rowkey of the order.
SELECT rowkey, primary_rowkey FROM payments_by_customer WHERE customer_id = 123;

-- Asked of the table itself, the engine reads the index table and fetches each order by its rowkey.
SELECT order_no, payment_time, amount, order_status FROM customer_order WHERE customer_id = 123;
EXPLAIN SELECT order_no, payment_time, amount, order_status FROM customer_order WHERE customer_id = 123;

-- OrderDateTime_CustomerID_OrderID. The layout holds the order id already.
SELECT rowkey, primary_rowkey FROM customer_orders;

-- ---------------------------------------------------------------------------------------------
\echo == A better time
-- ---------------------------------------------------------------------------------------------
-- 'DD-MM-YYYY' puts the day first, so keys do not sort by time: 02-01 comes before 03-12 of the year
-- before. CREATE INDEX warned of it. Ranges of time cannot be ranges of such keys:
EXPLAIN SELECT payment_id FROM customer_order
WHERE customer_id = 123 AND payment_time >= '2017-01-01' AND payment_time < '2017-02-01';

-- With the year first they can, and the same question reads just what it wants.
CREATE INDEX payments_by_customer_time ON customer_order
  (lpad(customer_id, 6), '_', to_char(payment_time, 'YYYY-MM-DD HH24:MI:SS'), '_', lpad(payment_id, 9));
EXPLAIN SELECT payment_id FROM customer_order
WHERE customer_id = 123 AND payment_time >= '2017-01-01' AND payment_time < '2017-02-01';
