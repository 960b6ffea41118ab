-- Log data and time series: events of hosts, in three designs. They hold the same rows and differ in
-- their rowkeys alone; which is right depends on the questions.
--
--   rowkeydb run sql_examples/timeseries.sql

-- ---------------------------------------------------------------------------------------------
\echo == Design 1: [hostname][log-event][timestamp]
-- ---------------------------------------------------------------------------------------------
-- For: one metric of one host over a period of time.
-- The delimiters keep host1 and host12 apart; lpad gives all times one width. Times are seconds.
CREATE TABLE log_by_host (
  host  VARCHAR,
  event VARCHAR,
  ts    BIGINT,
  value DOUBLE,
  PRIMARY KEY (host, '_', event, '_', lpad(ts, 10))
);

INSERT INTO log_by_host VALUES
  ('host1',  'cpu',  1700000000, 0.25), ('host1',  'cpu',  1700000060, 0.31),
  ('host1',  'cpu',  1700000120, 0.97), ('host1',  'cpu',  1700000180, 0.42),
  ('host1',  'disk', 1700000060, 0.71), ('host1',  'disk', 1700000180, 0.72),
  ('host12', 'cpu',  1700000060, 0.05), ('host12', 'cpu',  1700000120, 0.06),
  ('host2',  'cpu',  1700000000, 0.55), ('host2',  'cpu',  1700000120, 0.60);

SELECT rowkey, value FROM log_by_host;

-- Host, event and time together bound one range, and the scan touches nothing else.
SELECT ts, value FROM log_by_host
WHERE host = 'host1' AND event = 'cpu' AND ts BETWEEN 1700000060 AND 1700000120;
EXPLAIN SELECT ts, value FROM log_by_host
WHERE host = 'host1' AND event = 'cpu' AND ts BETWEEN 1700000060 AND 1700000120;

-- The newest first: the range is walked from its end, and the walk stops after two rows.
SELECT ts, value FROM log_by_host WHERE host = 'host1' AND event = 'cpu' ORDER BY ts DESC LIMIT 2;
EXPLAIN SELECT ts, value FROM log_by_host WHERE host = 'host1' AND event = 'cpu' ORDER BY ts DESC LIMIT 2;

-- Without the host the key has no known beginning: every row is read.
EXPLAIN SELECT host, value FROM log_by_host WHERE event = 'cpu' AND ts = 1700000120;

-- ---------------------------------------------------------------------------------------------
\echo == host1 is not host12
-- ---------------------------------------------------------------------------------------------
-- A raw scan, startkey host1 and endkey host2, returns host12 too: its bytes lie in between.
SELECT DISTINCT host FROM log_by_host WHERE rowkey >= 'host1' AND rowkey < 'host2' ORDER BY host;
EXPLAIN SELECT host FROM log_by_host WHERE rowkey >= 'host1' AND rowkey < 'host2';

-- Asked for the host, the engine puts the delimiter into the range.
SELECT DISTINCT host FROM log_by_host WHERE host = 'host1';
EXPLAIN SELECT host FROM log_by_host WHERE host = 'host1';

-- The other way is a fixed width: rpad(host, 20, 'x').
CREATE TABLE log_fixed (
  host  VARCHAR,
  event VARCHAR,
  ts    BIGINT,
  value DOUBLE,
  PRIMARY KEY (rpad(host, 20, 'x'), event, '_', lpad(ts, 10))
);
INSERT INTO log_fixed SELECT * FROM log_by_host WHERE ts = 1700000120;
SELECT rowkey FROM log_fixed;
EXPLAIN SELECT value FROM log_fixed WHERE host = 'host1';

-- ---------------------------------------------------------------------------------------------
\echo == Design 2: [hostname][log-event][Long.MAX_VALUE - timestamp]
-- ---------------------------------------------------------------------------------------------
-- For: the latest records of a metric of a host. The greatest time gives the smallest key, so the
-- newest record is the first of its range, and a plain forward scan finds it.
CREATE TABLE log_newest (
  host  VARCHAR,
  event VARCHAR,
  ts    BIGINT,
  value DOUBLE,
  PRIMARY KEY (host, '_', event, '_', lpad(9223372036854775807 - ts, 19))
);
INSERT INTO log_newest SELECT * FROM log_by_host;
SELECT rowkey, ts FROM log_newest WHERE host = 'host1' AND event = 'cpu';

SELECT ts, value FROM log_newest WHERE host = 'host1' AND event = 'cpu' ORDER BY ts DESC LIMIT 1;
EXPLAIN SELECT ts, value FROM log_newest WHERE host = 'host1' AND event = 'cpu' ORDER BY ts DESC LIMIT 1;

-- A period of time is still a range; its ends have changed places.
SELECT ts, value FROM log_newest
WHERE host = 'host1' AND event = 'cpu' AND ts >= 1700000120;
EXPLAIN SELECT ts, value FROM log_newest
WHERE host = 'host1' AND event = 'cpu' AND ts >= 1700000120;

-- ---------------------------------------------------------------------------------------------
\echo == Design 3: [bucket][timestamp][hostname][log-event], bucket = timestamp % numBuckets
-- ---------------------------------------------------------------------------------------------
-- For: everything in a period of time, whatever the host. Time alone in front would send all writes to
-- the end of the table; the bucket spreads them over seven places. (These times are whole minutes, and
-- 60 is a multiple of 4: in 4 buckets all rows would share one. A prime number avoids that.)
CREATE TABLE log_by_time (
  host  VARCHAR,
  event VARCHAR,
  ts    BIGINT,
  value DOUBLE,
  PRIMARY KEY (ts % 7, '_', lpad(ts, 10), '_', host, '_', event)
);
INSERT INTO log_by_time SELECT * FROM log_by_host;
SELECT rowkey FROM log_by_time;

-- A period is one range in each bucket. The rows of all of them are merged back into the order of time.
SELECT ts, host, event, value FROM log_by_time WHERE ts BETWEEN 1700000060 AND 1700000120 ORDER BY ts;
EXPLAIN SELECT ts, host, event, value FROM log_by_time
WHERE ts BETWEEN 1700000060 AND 1700000120 ORDER BY ts;

-- One moment has one bucket, so it is one range.
EXPLAIN SELECT * FROM log_by_time WHERE ts = 1700000120;

-- The newest of all: the last entry of each bucket is looked at, and the greatest is it.
SELECT ts, host, event FROM log_by_time ORDER BY ts DESC LIMIT 1;
EXPLAIN SELECT ts, host, event FROM log_by_time ORDER BY ts DESC LIMIT 1;

-- ---------------------------------------------------------------------------------------------
\echo == OpenTSDB: [metric_type][event_timestamp]
-- ---------------------------------------------------------------------------------------------
-- Time is in the key, but not in front: there are dozens or hundreds of metrics, and each writes at
-- the end of its own stretch of the table. No bucket is needed.
CREATE TABLE metrics (
  metric     VARCHAR,
  event_time TIMESTAMP,
  host       VARCHAR,
  value      DOUBLE,
  PRIMARY KEY (metric, '_', to_char(event_time, 'YYYYMMDDHH24MI'), '_', host)
);
INSERT INTO metrics VALUES
  ('sys.cpu.user',  '2023-11-14 22:13:00', 'host1',  0.25), ('sys.cpu.user',  '2023-11-14 22:14:00', 'host1',  0.31),
  ('sys.cpu.user',  '2023-11-14 22:14:00', 'host2',  0.05), ('sys.cpu.user',  '2023-11-14 22:15:00', 'host1',  0.97),
  ('sys.mem.free',  '2023-11-14 22:13:00', 'host1',  811),  ('sys.mem.free',  '2023-11-14 22:15:00', 'host2',  640),
  ('net.bytes.in',  '2023-11-14 22:14:00', 'host1',  9120), ('net.bytes.in',  '2023-11-14 22:15:00', 'host1',  8700);
SELECT rowkey, value FROM metrics;

-- One metric of all hosts over some minutes, in time's order as it lies.
SELECT event_time, host, value FROM metrics
WHERE metric = 'sys.cpu.user' AND event_time >= '2023-11-14 22:14:00' AND event_time < '2023-11-14 22:16:00'
ORDER BY event_time;
EXPLAIN SELECT event_time, host, value FROM metrics
WHERE metric = 'sys.cpu.user' AND event_time >= '2023-11-14 22:14:00' AND event_time < '2023-11-14 22:16:00'
ORDER BY event_time;

-- ---------------------------------------------------------------------------------------------
\echo == Events that expire
-- ---------------------------------------------------------------------------------------------
-- Nobody wants old events. Rows of this table go 30 days after they were written, from index tables, too.
CREATE TABLE recent (
  host  VARCHAR,
  ts    BIGINT,
  event VARCHAR,
  value DOUBLE,
  PRIMARY KEY (host, '_', lpad(2000000000 - ts, 10))
) WITH (ttl = '30 days');
CREATE INDEX recent_by_event ON recent (event, lpad(2000000000 - ts, 10)) INCLUDE (value);
INSERT INTO recent SELECT host, ts, event, value FROM log_by_host WHERE event = 'cpu';
SELECT host, ts, value FROM recent WHERE event = 'cpu' ORDER BY ts DESC, host LIMIT 3;

-- A shorter time holds for what is there as well. PURGE says how many rows have gone: none so soon.
ALTER TABLE recent SET (ttl = '7 days');
DESCRIBE recent;
PURGE recent;
