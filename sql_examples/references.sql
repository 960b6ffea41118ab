-- Foreign keys: no order without its customer, whatever the keys look like.
--
--   rowkeydb run sql_examples/references.sql

CREATE TABLE customer (id BIGINT, email VARCHAR UNIQUE, PRIMARY KEY (reverse(lpad(id, 8))));
CREATE TABLE orders (
  id BIGINT,
  customer_id BIGINT NOT NULL REFERENCES customer ON DELETE CASCADE,
  sent_to VARCHAR REFERENCES customer (email) ON DELETE SET NULL,
  PRIMARY KEY (reverse(lpad(id, 8)))
);
CREATE TABLE item (
  order_id BIGINT REFERENCES orders ON DELETE CASCADE,
  n INT,
  name VARCHAR,
  PRIMARY KEY (order_id, n)
);
-- It finds the orders of a customer who goes.
CREATE INDEX orders_by_customer ON orders (customer_id);

INSERT INTO customer VALUES (1, 'ann@x'), (2, 'bob@x'), (3, 'cid@x');
INSERT INTO orders VALUES (100, 1, 'ann@x'), (101, 1, NULL), (102, 2, 'ann@x'), (103, 3, 'cid@x');
INSERT INTO item VALUES (100, 1, 'tea'), (100, 2, 'cup'), (101, 1, 'pot'), (102, 1, 'can'), (103, 1, 'box');

\echo == What is read for each order that is written, and for each customer who is deleted
EXPLAIN INSERT INTO orders VALUES (104, 2, NULL);
EXPLAIN DELETE FROM customer WHERE id = 1;

\echo == LINT knows which of them would read the whole table
LINT orders;
CREATE INDEX orders_by_address ON orders (sent_to);
LINT orders;

\echo == A customer goes, with two orders and their three items; a third order loses its address. It is one step
DELETE FROM customer WHERE id = 1;
SELECT id, customer_id, sent_to, item.n, name FROM orders JOIN item ON order_id = id ORDER BY id;

\echo == Rows that refer to each other wait for COMMIT
ALTER TABLE customer ADD COLUMN first_order BIGINT;
ALTER TABLE customer ADD FOREIGN KEY (first_order) REFERENCES orders DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO customer VALUES (4, 'dan@x', 104);
INSERT INTO orders VALUES (104, 4, 'dan@x');
COMMIT;
SELECT c.id, email, first_order, sent_to FROM customer AS c JOIN orders ON orders.id = first_order;

\echo == Every order has its customer, and every index entry its order
CHECK TABLE orders;
