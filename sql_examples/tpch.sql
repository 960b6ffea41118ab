-- TPC-H: eight tables of a wholesale supplier, 22 questions about them, and keys that suit the questions.
--
--   rowkeydb run sql_examples/tpch.sql                      scale 0.1: 100 MB, 866,602 rows
--   rowkeydb run --set scale=1 sql_examples/tpch.sql        ten times as much
--   rowkeydb run --db tpch sql_examples/tpch.sql            the same, kept in the folder tpch
--
-- The rows come from tpch('table', scale), which generates them while it is read. A scale below 0.01 will not
-- do: the specification's formula then gives a part the same supplier twice. The queries are those of the
-- specification with its validation parameters; "adapted" marks what is written otherwise.

\default scale 0.1

-- --------------------------------------------------------------------------------------------------------
-- Tables
-- --------------------------------------------------------------------------------------------------------

-- Small tables that every join reads whole: the number is the key and nothing else is needed.
CREATE TABLE region (
    r_regionkey BIGINT PRIMARY KEY,
    r_name      VARCHAR NOT NULL,
    r_comment   VARCHAR
);

CREATE TABLE nation (
    n_nationkey BIGINT PRIMARY KEY,
    n_name      VARCHAR NOT NULL,
    n_regionkey BIGINT NOT NULL,
    n_comment   VARCHAR
);

-- Words that no query computes with stand in a family of their own, "text": it is stored apart, so a scan
-- for numbers does not read it. It is also what compresses.
CREATE TABLE supplier (
    s_suppkey   BIGINT PRIMARY KEY,
    s_name      VARCHAR NOT NULL,
    s_address   VARCHAR NOT NULL,
    s_nationkey BIGINT NOT NULL,
    s_phone     VARCHAR NOT NULL,
    s_acctbal   DECIMAL(15, 2) NOT NULL,
    s_comment   VARCHAR NOT NULL,
    FAMILY text (s_address, s_comment) WITH (compression = 'lz4')
);

CREATE TABLE part (
    p_partkey     BIGINT PRIMARY KEY,
    p_name        VARCHAR NOT NULL,
    p_mfgr        VARCHAR NOT NULL,
    p_brand       VARCHAR NOT NULL,
    p_type        VARCHAR NOT NULL,
    p_size        INTEGER NOT NULL,
    p_container   VARCHAR NOT NULL,
    p_retailprice DECIMAL(15, 2) NOT NULL,
    p_comment     VARCHAR NOT NULL
);

-- Q2 looks for parts of one size whose type ENDS in BRASS. The end of a text is the beginning of the
-- reversed text: size and reversed type make it one range.
CREATE INDEX part_by_size_type ON part (p_size, reverse(p_type)) INCLUDE (p_mfgr);
-- Q17 and Q19: parts of one brand in one kind of container.
CREATE INDEX part_by_brand ON part (rpad(p_brand, 10, ' '), p_container) INCLUDE (p_size);

-- A composite key: the suppliers of one part lie together, and (part, supplier) is one GET.
CREATE TABLE partsupp (
    ps_partkey    BIGINT,
    ps_suppkey    BIGINT,
    ps_availqty   INTEGER NOT NULL,
    ps_supplycost DECIMAL(15, 2) NOT NULL,
    ps_comment    VARCHAR NOT NULL,
    PRIMARY KEY (ps_partkey, ps_suppkey),
    FAMILY text (ps_comment) WITH (compression = 'lz4')
);

-- The other way round, for what one supplier has in stock (Q11).
CREATE INDEX partsupp_by_supplier ON partsupp (ps_suppkey) INCLUDE (ps_availqty, ps_supplycost);

CREATE TABLE customer (
    c_custkey    BIGINT PRIMARY KEY,
    c_name       VARCHAR NOT NULL,
    c_address    VARCHAR NOT NULL,
    c_nationkey  BIGINT NOT NULL,
    c_phone      VARCHAR NOT NULL,
    c_acctbal    DECIMAL(15, 2) NOT NULL,
    c_mktsegment VARCHAR NOT NULL,
    c_comment    VARCHAR NOT NULL,
    FAMILY text (c_address, c_comment) WITH (compression = 'lz4')
);

-- Q3 wants the customers of one segment and nothing of them but their number, which the index table holds
-- anyway as its pointer: the table itself is not read.
CREATE INDEX customer_by_segment ON customer (c_mktsegment);

CREATE TABLE orders (
    o_orderkey      BIGINT PRIMARY KEY,
    o_custkey       BIGINT NOT NULL,
    o_orderstatus   VARCHAR NOT NULL,
    o_totalprice    DECIMAL(15, 2) NOT NULL,
    o_orderdate     DATE NOT NULL,
    o_orderpriority VARCHAR NOT NULL,
    o_clerk         VARCHAR NOT NULL,
    o_shippriority  INTEGER NOT NULL,
    o_comment       VARCHAR NOT NULL,
    FAMILY text (o_clerk, o_comment) WITH (compression = 'lz4')
);

-- Q4, Q5, Q8 and Q10 ask for a quarter, a year, two years of orders: ranges of this index table, which
-- covers what they need of an order.
CREATE INDEX orders_by_date ON orders (o_orderdate) INCLUDE (o_custkey, o_orderpriority);
-- The last orders of a customer (and Q22: customers without any).
CREATE INDEX orders_by_customer ON orders (o_custkey, o_orderdate DESC);

-- The lines of an order lie together, in order, so that joining orders with their lines reads both forward.
CREATE TABLE lineitem (
    l_orderkey      BIGINT,
    l_partkey       BIGINT NOT NULL,
    l_suppkey       BIGINT NOT NULL,
    l_linenumber    INTEGER,
    l_quantity      DECIMAL(15, 2) NOT NULL,
    l_extendedprice DECIMAL(15, 2) NOT NULL,
    l_discount      DECIMAL(15, 2) NOT NULL,
    l_tax           DECIMAL(15, 2) NOT NULL,
    l_returnflag    VARCHAR NOT NULL,
    l_linestatus    VARCHAR NOT NULL,
    l_shipdate      DATE NOT NULL,
    l_commitdate    DATE NOT NULL,
    l_receiptdate   DATE NOT NULL,
    l_shipinstruct  VARCHAR NOT NULL,
    l_shipmode      VARCHAR NOT NULL,
    l_comment       VARCHAR NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber),
    FAMILY text (l_shipinstruct, l_comment) WITH (compression = 'lz4')
);

-- Q6, Q14, Q15 and Q20 take a month, a quarter or a year of shipments, and only these columns of them.
CREATE INDEX lineitem_by_shipdate ON lineitem (l_shipdate)
    INCLUDE (l_partkey, l_suppkey, l_quantity, l_extendedprice, l_discount);
-- Q12: a year of deliveries.
CREATE INDEX lineitem_by_receiptdate ON lineitem (l_receiptdate)
    INCLUDE (l_shipdate, l_commitdate, l_shipmode);
-- Q17: all lines of a few parts.
CREATE INDEX lineitem_by_part ON lineitem (l_partkey) INCLUDE (l_quantity, l_extendedprice);

-- --------------------------------------------------------------------------------------------------------
-- Load: rows and index tables in one atomic step each, sorted before they are written
-- --------------------------------------------------------------------------------------------------------

INSERT INTO region SELECT * FROM tpch('region', :scale);
INSERT INTO nation SELECT * FROM tpch('nation', :scale);
INSERT INTO supplier SELECT * FROM tpch('supplier', :scale);
INSERT INTO part SELECT * FROM tpch('part', :scale);
INSERT INTO partsupp SELECT * FROM tpch('partsupp', :scale);
INSERT INTO customer SELECT * FROM tpch('customer', :scale);
INSERT INTO orders SELECT * FROM tpch('orders', :scale);
INSERT INTO lineitem SELECT * FROM tpch('lineitem', :scale);

-- How some of the questions below are answered: a range of the index table each, no table read.
EXPLAIN SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24;

EXPLAIN SELECT p_partkey, p_mfgr FROM part WHERE p_size = 15 AND p_type LIKE '%BRASS';

EXPLAIN SELECT l_quantity, l_extendedprice FROM lineitem WHERE l_partkey IN (155, 156, 157);

-- --------------------------------------------------------------------------------------------------------
-- The 22 queries
-- --------------------------------------------------------------------------------------------------------

\echo Q1: pricing summary
SELECT
    l_returnflag,
    l_linestatus,
    sum(l_quantity) AS sum_qty,
    sum(l_extendedprice) AS sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
    avg(l_quantity) AS avg_qty,
    avg(l_extendedprice) AS avg_price,
    avg(l_discount) AS avg_disc,
    count(*) AS count_order
FROM lineitem
WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus;

\echo Q2: cheapest supplier
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey
  AND s_suppkey = ps_suppkey
  AND p_size = 15
  AND p_type LIKE '%BRASS'
  AND s_nationkey = n_nationkey
  AND n_regionkey = r_regionkey
  AND r_name = 'EUROPE'
  AND ps_supplycost = (
      SELECT min(ps_supplycost)
      FROM partsupp, supplier, nation, region
      WHERE p_partkey = ps_partkey
        AND s_suppkey = ps_suppkey
        AND s_nationkey = n_nationkey
        AND n_regionkey = r_regionkey
        AND r_name = 'EUROPE'
  )
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100;

\echo Q3: unshipped orders of highest value
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING'
  AND c_custkey = o_custkey
  AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15'
  AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10;

\echo Q4: late orders by priority
SELECT o_orderpriority, count(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE '1993-07-01'
  AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
  AND EXISTS (
      SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate
  )
GROUP BY o_orderpriority
ORDER BY o_orderpriority;

\echo Q5: revenue through local suppliers
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey
  AND l_orderkey = o_orderkey
  AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey
  AND n_regionkey = r_regionkey
  AND r_name = 'ASIA'
  AND o_orderdate >= DATE '1994-01-01'
  AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY n_name
ORDER BY revenue DESC;

\echo Q6: what the discounts cost
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01'
  AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
  AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01
  AND l_quantity < 24;

\echo Q7: shipments between two nations
SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
FROM (
    SELECT
        n1.n_name AS supp_nation,
        n2.n_name AS cust_nation,
        EXTRACT(YEAR FROM l_shipdate) AS l_year,
        l_extendedprice * (1 - l_discount) AS volume
    FROM supplier, lineitem, orders, customer, nation n1, nation n2
    WHERE s_suppkey = l_suppkey
      AND o_orderkey = l_orderkey
      AND c_custkey = o_custkey
      AND s_nationkey = n1.n_nationkey
      AND c_nationkey = n2.n_nationkey
      AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
           OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
      AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
) AS shipping
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year;

\echo Q8: market share of a nation
SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
FROM (
    SELECT
        EXTRACT(YEAR FROM o_orderdate) AS o_year,
        l_extendedprice * (1 - l_discount) AS volume,
        n2.n_name AS nation
    FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    WHERE p_partkey = l_partkey
      AND s_suppkey = l_suppkey
      AND l_orderkey = o_orderkey
      AND o_custkey = c_custkey
      AND c_nationkey = n1.n_nationkey
      AND n1.n_regionkey = r_regionkey
      AND r_name = 'AMERICA'
      AND s_nationkey = n2.n_nationkey
      AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
      AND p_type = 'ECONOMY ANODIZED STEEL'
) AS all_nations
GROUP BY o_year
ORDER BY o_year;

\echo Q9: profit by nation and year
SELECT nation, o_year, sum(amount) AS sum_profit
FROM (
    SELECT
        n_name AS nation,
        EXTRACT(YEAR FROM o_orderdate) AS o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
    FROM part, supplier, lineitem, partsupp, orders, nation
    WHERE s_suppkey = l_suppkey
      AND ps_suppkey = l_suppkey
      AND ps_partkey = l_partkey
      AND p_partkey = l_partkey
      AND o_orderkey = l_orderkey
      AND s_nationkey = n_nationkey
      AND p_name LIKE '%green%'
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC;

\echo Q10: customers who send back
SELECT
    c_custkey,
    c_name,
    sum(l_extendedprice * (1 - l_discount)) AS revenue,
    c_acctbal,
    n_name,
    c_address,
    c_phone,
    c_comment
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey
  AND l_orderkey = o_orderkey
  AND o_orderdate >= DATE '1993-10-01'
  AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH
  AND l_returnflag = 'R'
  AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC
LIMIT 20;

-- The share that counts as important shrinks with the scale, as the specification says.
\echo Q11: important stock
SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value
FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey
  AND s_nationkey = n_nationkey
  AND n_name = 'GERMANY'
GROUP BY ps_partkey
HAVING sum(ps_supplycost * ps_availqty) > (
    SELECT sum(ps_supplycost * ps_availqty) * (0.0001 / :scale)
    FROM partsupp, supplier, nation
    WHERE ps_suppkey = s_suppkey
      AND s_nationkey = n_nationkey
      AND n_name = 'GERMANY'
)
ORDER BY value DESC;

\echo Q12: late shipments by mode
SELECT
    l_shipmode,
    sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
        AS high_line_count,
    sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END)
        AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey
  AND l_shipmode IN ('MAIL', 'SHIP')
  AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate
  AND l_receiptdate >= DATE '1994-01-01'
  AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY l_shipmode
ORDER BY l_shipmode;

\echo Q13: customers by number of orders
SELECT c_count, count(*) AS custdist
FROM (
    SELECT c_custkey, count(o_orderkey)
    FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
    GROUP BY c_custkey
) AS c_orders (c_custkey, c_count)
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC;

\echo Q14: revenue of promoted parts
SELECT
    100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
        / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey
  AND l_shipdate >= DATE '1995-09-01'
  AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH;

-- Adapted: WITH instead of the view that the specification creates and drops.
\echo Q15: top supplier
WITH revenue (supplier_no, total_revenue) AS (
    SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount))
    FROM lineitem
    WHERE l_shipdate >= DATE '1996-01-01'
      AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
    GROUP BY l_suppkey
)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM supplier, revenue
WHERE s_suppkey = supplier_no
  AND total_revenue = (SELECT max(total_revenue) FROM revenue)
ORDER BY s_suppkey;

\echo Q16: suppliers by part
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp, part
WHERE p_partkey = ps_partkey
  AND p_brand <> 'Brand#45'
  AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
  AND ps_suppkey NOT IN (
      SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%'
  )
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size;

\echo Q17: revenue of small orders
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey
  AND p_brand = 'Brand#23'
  AND p_container = 'MED BOX'
  AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey);

\echo Q18: large orders
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
  AND c_custkey = o_custkey
  AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate
LIMIT 100;

\echo Q19: discounted revenue
SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem, part
WHERE (p_partkey = l_partkey
       AND p_brand = 'Brand#12'
       AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
       AND l_quantity >= 1 AND l_quantity <= 1 + 10
       AND p_size BETWEEN 1 AND 5
       AND l_shipmode IN ('AIR', 'AIR REG')
       AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey
       AND p_brand = 'Brand#23'
       AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
       AND l_quantity >= 10 AND l_quantity <= 10 + 10
       AND p_size BETWEEN 1 AND 10
       AND l_shipmode IN ('AIR', 'AIR REG')
       AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey
       AND p_brand = 'Brand#34'
       AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
       AND l_quantity >= 20 AND l_quantity <= 20 + 10
       AND p_size BETWEEN 1 AND 15
       AND l_shipmode IN ('AIR', 'AIR REG')
       AND l_shipinstruct = 'DELIVER IN PERSON');

\echo Q20: suppliers with too much stock
SELECT s_name, s_address
FROM supplier, nation
WHERE s_suppkey IN (
      SELECT ps_suppkey
      FROM partsupp
      WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
        AND ps_availqty > (
            SELECT 0.5 * sum(l_quantity)
            FROM lineitem
            WHERE l_partkey = ps_partkey
              AND l_suppkey = ps_suppkey
              AND l_shipdate >= DATE '1994-01-01'
              AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        )
  )
  AND s_nationkey = n_nationkey
  AND n_name = 'CANADA'
ORDER BY s_name;

\echo Q21: suppliers who kept orders waiting
SELECT s_name, count(*) AS numwait
FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey
  AND o_orderkey = l1.l_orderkey
  AND o_orderstatus = 'F'
  AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (
      SELECT * FROM lineitem l2
      WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey
  )
  AND NOT EXISTS (
      SELECT * FROM lineitem l3
      WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
        AND l3.l_receiptdate > l3.l_commitdate
  )
  AND s_nationkey = n_nationkey
  AND n_name = 'SAUDI ARABIA'
GROUP BY s_name
ORDER BY numwait DESC, s_name
LIMIT 100;

\echo Q22: customers worth calling
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (
    SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
    FROM customer
    WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
      AND c_acctbal > (
          SELECT avg(c_acctbal)
          FROM customer
          WHERE c_acctbal > 0.00
            AND SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
      )
      AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode;
