use super::*;
use crate::value::{ColumnType, Value};

fn lifted(sql: &str) -> (String, Vec<Value>) {
    let lifted = lift(sql).unwrap();
    (lifted.text, lifted.values.iter().map(|value| value.value(|| NOW).unwrap()).collect())
}

/// 2026-11-22 10:00:00
const NOW: i64 = 1_795_341_600_000_000;

#[test]
fn the_time_is_lifted_as_a_value_of_its_run() {
    assert_eq!(
        lifted("SELECT * FROM t WHERE a > now() - INTERVAL '2 hours' AND b = CURRENT_DATE AND c < now()"),
        (
            "SELECT * FROM t WHERE a > $1 AND b = $2 AND c < $3".into(),
            vec![Value::Timestamp(NOW - 7_200_000_000), Value::Date(20_779), Value::Timestamp(NOW)]
        )
    );
    assert_eq!(
        lifted(
            "SELECT * FROM t WHERE a > now() - INTERVAL '2' HOUR AND b >= current_date - 7 AND c < CURRENT_DATE + interval '1 week'"
        ),
        (
            "SELECT * FROM t WHERE a > $1 AND b >= $2 AND c < $3".into(),
            vec![Value::Timestamp(NOW - 7_200_000_000), Value::Date(20_772), Value::Date(20_786)]
        )
    );
    // As the last words as well.
    for last in ["CURRENT_TIMESTAMP", "current_timestamp ", "now()"] {
        assert_eq!(
            lifted(&format!("SELECT * FROM t WHERE a < {last}")).1,
            vec![Value::Timestamp(NOW)],
            "{last}"
        );
    }
    assert_eq!(lifted("SELECT * FROM t WHERE a < current_date").1, vec![Value::Date(20_779)]);
    for sql in [
        "SELECT now() FROM t WHERE a > now() - INTERVAL '1 fortnight' AND b > now() - INTERVAL '1' DECADE",
        "SELECT a FROM t WHERE a > now AND b = today AND c > current_date - n AND d = now() - e",
        "SELECT a FROM t WHERE a > now() - INTERVAL '1' DAY TO SECOND AND b > now() - INTERVAL '1'",
        "SELECT a FROM t WHERE a > current_date - 7 * n AND c > now() - 7 AND d > now()::int AND e = date_trunc('eon', now())",
        "SELECT a FROM t WHERE a > current_date - 99999999 AND b > now() - INTERVAL '99999999 days'",
    ] {
        assert_eq!(lifted(sql), (sql.into(), Vec::new()));
    }
}

#[test]
fn compared_literals_are_lifted() {
    let int = Value::Int;
    let text = |t: &str| Value::Text(t.into());
    assert_eq!(
        lifted("SELECT a, 5 FROM t WHERE id = 7 AND b <> 'it''s' ORDER BY 1 LIMIT 10"),
        (
            "SELECT a, 5 FROM t WHERE id = $1 AND b <> $2 ORDER BY 1 LIMIT 10".into(),
            vec![int(7), text("it's")]
        )
    );
    assert_eq!(
        lifted("select * from t where a between 1 and -2 and b in ('x', 'y') or c like 'z%'"),
        (
            "select * from t where a between $1 and $2 and b in ($3, $4) or c like $5".into(),
            vec![int(1), int(-2), text("x"), text("y"), text("z%")]
        )
    );
    assert_eq!(
        lifted(
            "SELECT a FROM t WHERE (a, b) > (1, 'x') AND c IN (SELECT d FROM u WHERE e = 5) ORDER BY a, b"
        ),
        (
            "SELECT a FROM t WHERE (a, b) > ($1, $2) AND c IN (SELECT d FROM u WHERE e = $3) ORDER BY a, b"
                .into(),
            vec![int(1), text("x"), int(5)]
        )
    );
    assert_eq!(
        lifted(
            "SELECT a FROM t WHERE (d, id) < (DATE '2024-01-02', 7) AND (a, b) IN ((1, 2), (3, -4)) AND c = (5)"
        ),
        (
            "SELECT a FROM t WHERE (d, id) < ($1, $2) AND (a, b) IN (($3, $4), ($5, $6)) AND c = ($7)".into(),
            vec![Value::Date(19_724), int(7), int(1), int(2), int(3), int(-4), int(5)]
        )
    );
    assert_eq!(
        lifted("SELECT a FROM t WHERE a IS DISTINCT FROM 7 AND b IS NOT DISTINCT FROM 'x' OR c IS DISTINCT FROM 1 + a"),
        (
            "SELECT a FROM t WHERE a IS DISTINCT FROM $1 AND b IS NOT DISTINCT FROM $2 OR c IS DISTINCT FROM 1 + a"
                .into(),
            vec![int(7), text("x")]
        )
    );
    assert_eq!(
        lifted("SELECT a FROM t WHERE b = 3 ORDER BY a LIMIT 20 OFFSET 40"),
        ("SELECT a FROM t WHERE b = $1 ORDER BY a LIMIT 20 OFFSET $2".into(), vec![int(3), int(40)])
    );
    assert_eq!(
        lifted("SELECT * FROM t WHERE a = $2 AND d >= DATE '2024-01-02';"),
        ("SELECT * FROM t WHERE a = $2 AND d >= $3;".into(), vec![Value::Date(19_724)])
    );
    assert_eq!(
        lifted("SELECT * FROM t WHERE a = 2.50 -- = 4\n AND b>1e3"),
        (
            "SELECT * FROM t WHERE a = $1  \n AND b>$2".into(),
            vec![Value::Decimal(250, 2), Value::Double(1000.0)]
        )
    );
}

#[test]
fn literals_are_lifted_from_either_side() {
    let int = Value::Int;
    let text = |t: &str| Value::Text(t.into());
    assert_eq!(
        lifted(
            "SELECT a FROM t WHERE ('x' IS NULL OR b = 'x') AND 5 < c AND '491' LIKE p || '%' AND (7 IS NOT NULL)"
        ),
        (
            "SELECT a FROM t WHERE ($1 IS NULL OR b = $2) AND $3 < c AND $4 LIKE p || '%' AND ($5 IS NOT NULL)"
                .into(),
            vec![text("x"), text("x"), int(5), text("491"), int(7)]
        )
    );
    for stays in [
        "SELECT a FROM t WHERE 5 + a < b AND f('x', a) AND 'x' || a = b",
        "SELECT (SELECT 'x' IS NULL) FROM t",
    ] {
        assert_eq!(lifted(stays), (stays.into(), Vec::new()));
    }
}

#[test]
fn sums_of_literals_are_lifted() {
    let int = Value::Int;
    assert_eq!(
        lifted(
            "SELECT a FROM t WHERE a BETWEEN 5 + 1 AND 5 + 9 AND b = -3 - 4 AND c IN (7, 7+1) AND d = 5 + 2 * 3"
        ),
        (
            "SELECT a FROM t WHERE a BETWEEN $1 AND $2 AND b = $3 AND c IN ($4, $5) AND d = 5 + 2 * 3".into(),
            vec![int(6), int(14), int(-7), int(7), int(8)]
        )
    );
    assert_eq!(
        lifted("SELECT a FROM t WHERE a > TIMESTAMP '1970-01-02' - INTERVAL '1 day' + INTERVAL '1' SECOND"),
        ("SELECT a FROM t WHERE a > $1".into(), vec![Value::Timestamp(1_000_000)])
    );
    for stays in [
        "SELECT a FROM t WHERE a = 9223372036854775807 + 1",
        "SELECT a FROM t WHERE a = 1 + 1.5 AND b = 'x' + 1 AND c = 1 + b",
        "SELECT a FROM t WHERE a > TIMESTAMP '9999-12-31' + INTERVAL '1 day' AND b > DATE '0001-01-01' - 1",
        "SELECT a FROM t WHERE a > TIMESTAMP '2024-01-31' + INTERVAL '1 month' * n AND b = '5'::int AND c = 'x'::text",
    ] {
        assert_eq!(lifted(stays), (stays.into(), Vec::new()));
    }
}

#[test]
fn times_computed_of_constants_are_lifted() {
    let day = |text: &str| Value::Text(text.into()).cast(ColumnType::Date).unwrap();
    let time = |text: &str| Value::Text(text.into()).cast(ColumnType::Timestamp).unwrap();
    for (written, value) in [
        ("DATE '2024-01-31' + INTERVAL '1 month'", day("2024-02-29")),
        ("DATE '2024-02-29' - INTERVAL '1 year 1 day'", day("2023-02-27")),
        ("DATE '2024-01-31' - INTERVAL '7 days'", day("2024-01-24")),
        ("DATE '2024-01-31' + INTERVAL '36' HOUR", time("2024-02-01 12:00:00")),
        ("DATE '2024-01-31' + 1 - INTERVAL '2 weeks'", day("2024-01-18")),
        ("TIMESTAMP '2024-03-31 10:00:00' - INTERVAL '1 MONTH'", time("2024-02-29 10:00:00")),
        ("'2024-01-31'::date", day("2024-01-31")),
        ("'2024-01-31 10:00:00'::timestamp::date", day("2024-01-31")),
        ("CAST('2024-01-31' AS Date) + INTERVAL '2' month", day("2024-03-31")),
        ("date_trunc('week', TIMESTAMP '2024-01-31 10:00:00')", time("2024-01-29")),
        ("date_trunc('quarter', DATE '2024-02-29')::date", day("2024-01-01")),
        ("date_trunc('MONTH', now()) - INTERVAL '2 months'", time("2026-09-01")),
        ("current_date - INTERVAL '1 month'", day("2026-10-22")),
        ("current_date - INTERVAL '1 hour'", time("2026-11-21 23:00:00")),
        ("now()::date + 1", day("2026-11-23")),
        ("'5'::bigint", Value::Int(5)),
    ] {
        assert_eq!(
            lifted(&format!("SELECT a FROM t WHERE b BETWEEN {written} AND {written} AND c = {written}")),
            ("SELECT a FROM t WHERE b BETWEEN $1 AND $2 AND c = $3".into(), vec![value; 3]),
            "{written}"
        );
    }
}

#[test]
fn lists_have_a_power_of_two_of_values() {
    let int = Value::Int;
    assert_eq!(
        lifted("SELECT a FROM t WHERE a IN (1, 2, 3) AND b NOT IN (4) AND c IN (DATE '1970-01-02', now())"),
        (
            "SELECT a FROM t WHERE a IN ($1, $2, $3, $4) AND b NOT IN ($5) AND c IN ($6, $7)".into(),
            vec![int(1), int(2), int(3), int(3), int(4), Value::Date(1), Value::Timestamp(NOW)]
        )
    );
    let many = |n: usize| format!("SELECT a FROM t WHERE a IN ({}1)", "1, ".repeat(n - 1));
    assert_eq!([5, 700, 32_768].map(|n| lifted(&many(n)).1.len()), [8, 1024, 32_768]);
    assert_eq!(lift(&many(32_769)), None);
}

#[test]
fn a_comparison_ends_where_another_clause_begins() {
    let int = Value::Int;
    assert_eq!(
        lifted(
            "SELECT a, sum(b) OVER w FROM t JOIN u ON t.a = u.a AND u.b >= 5 LEFT JOIN v ON v.a = 6 WHERE c = 7 WINDOW w AS (PARTITION BY a)"
        ),
        (
            "SELECT a, sum(b) OVER w FROM t JOIN u ON t.a = u.a AND u.b >= $1 LEFT JOIN v ON v.a = $2 WHERE c = $3 WINDOW w AS (PARTITION BY a)"
                .into(),
            vec![int(5), int(6), int(7)]
        )
    );
}

#[test]
fn columns_with_a_name_may_compare_with_anything() {
    let int = Value::Int;
    assert_eq!(
        lifted(
            "SELECT a > 4, sum(CASE WHEN a = 3 THEN 5 END) AS x, (SELECT b FROM u WHERE c IN (5, 6)) AS \"y\", \
             a < 8 z, (a < 9) AS w FROM t WHERE b = 1 GROUP BY c HAVING a > 2 ORDER BY x"
        ),
        (
            "SELECT a > $1, sum(CASE WHEN a = $2 THEN 5 END) AS x, (SELECT b FROM u WHERE c IN ($3, $4)) AS \"y\", \
             a < 8 z, (a < $5) AS w FROM t WHERE b = $6 GROUP BY c HAVING a > $7 ORDER BY x"
                .into(),
            vec![int(4), int(3), int(5), int(6), int(9), int(1), int(2)]
        )
    );
    assert_eq!(
        lifted("SELECT a > 4 AS x FROM (SELECT (b > 5) AS a, b > 6 FROM t) u UNION SELECT (b > 7) AS c FROM v"),
        (
            "SELECT a > $1 AS x FROM (SELECT (b > $2) AS a, b > 6 FROM t) u UNION SELECT (b > $3) AS c FROM v"
                .into(),
            vec![int(4), int(5), int(7)]
        )
    );
    assert_eq!(
        lifted("SELECT (SELECT b > 5) AS x, a IS DISTINCT FROM (3) AS y, count(*) FILTER (WHERE a = 7) AS n"),
        (
            "SELECT (SELECT b > 5) AS x, a IS DISTINCT FROM (3) AS y, count(*) FILTER (WHERE a = $1) AS n"
                .into(),
            vec![int(7)]
        )
    );
}

#[test]
fn what_groups_ask_for_stays_as_in_the_select_list() {
    let same = [
        (
            "",
            "SELECT CASE WHEN a > 5 THEN 1 END AS x FROM t",
            " GROUP BY CASE WHEN a > 5 THEN 1 END HAVING a > 5",
        ),
        ("", "SELECT 1 <> 5 AS x FROM t", " GROUP BY ROLLUP (a), CUBE (1 <> 5) ORDER BY 1 <> 5"),
        ("", "SELECT (SELECT b FROM u WHERE c = 5) AS x FROM t", " GROUP BY (SELECT b FROM u WHERE c = 5)"),
        ("WITH w AS (", "SELECT a IN (1, 2, 3) AS x FROM t", " GROUP BY a IN (1, 2, 3)) SELECT 1 FROM w"),
        ("", "SELECT a = 1 AS x FROM t", " GROUP BY a = 1 UNION SELECT true FROM u"),
    ];
    for (before, select, groups) in same {
        let (text, values) = lifted(&format!("{before}{select} WHERE b = 6{groups} WHERE b = 7"));
        assert_eq!(values.first(), Some(&Value::Int(6)));
        let next = if groups.ends_with(['w', 'u']) { "$2" } else { "7" };
        assert_eq!(text, format!("{before}{select} WHERE b = $1{groups} WHERE b = {next}"));
    }
    assert_eq!(
        lifted("SELECT a = 5 AS x FROM t GROUP BY a HAVING count(*) > 6").0,
        "SELECT a = $1 AS x FROM t GROUP BY a HAVING count(*) > $2"
    );
}

#[test]
fn comments_are_left_out() {
    for sql in
        ["SELECT a/* 7 */FROM t", "SELECT a-- 8 '\nFROM t", "/* 9 */SELECT a FROM t --", "SELECT a FROM t"]
    {
        let words = lifted(sql).0;
        assert_eq!(words.split_whitespace().collect::<Vec<_>>(), ["SELECT", "a", "FROM", "t"], "{sql}");
    }
    let quoted = "SELECT '/* 7 */', \"-- 8\" FROM t";
    assert_eq!(lifted(quoted).0, quoted);
}

#[test]
fn operands_are_lifted_where_nobody_sees_the_name() {
    let (int, text) = (Value::Int, |t: &str| Value::Text(t.into()));
    let sql = "SELECT a, b - 17 AS b, c * (d + 5) * 2.5 AS c, CASE e WHEN 1 THEN 'x' WHEN 2 THEN e || 'y' ELSE 'z' END AS e FROM t";
    let unnamed = lift_unnamed(sql).unwrap();
    assert_eq!(
        unnamed.text,
        "SELECT a, b - $1 AS b, c * (d + $2) * $3 AS c, CASE e WHEN $4 THEN $5 WHEN $6 THEN e || $7 ELSE $8 END AS e FROM t"
    );
    let values: Vec<_> = unnamed.values.iter().map(|value| value.value(|| NOW).unwrap()).collect();
    assert_eq!(
        values,
        [int(17), int(5), Value::Decimal(25, 1), int(1), text("x"), int(2), text("y"), text("z")]
    );
    assert_eq!(lifted(sql).0, sql);
    assert_eq!(
        lift_unnamed(
            "SELECT 'a' || b, coalesce(c, 'd'), upper(e || 'f'), (SELECT 5 + g || 'h' FROM u) FROM t"
        )
        .unwrap()
        .text,
        "SELECT $1 || b, coalesce(c, $2), upper(e || $3), (SELECT 5 + g || 'h' FROM u) FROM t"
    );
    let least = lift("SELECT a FROM t WHERE a > -9223372036854775808 AND b > -9223372036854775809").unwrap();
    let values = [int(i64::MIN), Value::Decimal(i128::from(i64::MIN) - 1, 0)];
    assert_eq!(least.values, values.map(Constant::Value));
    for stays in [
        "SELECT a / 2, round(b, 2), coalesce(b, 3), 9223372036854775808 + c FROM t",
        "SELECT a FROM t LIMIT 5 + 3",
    ] {
        assert_eq!(lift_unnamed(stays).unwrap().text, stays);
    }
}

#[test]
fn whole_columns_are_lifted() {
    let (int, text) = (Value::Int, |t: &str| Value::Text(t.into()));
    assert_eq!(
        lifted("WITH given AS (SELECT 5 AS a, 'x' AS b, 6) SELECT 7 AS c, d FROM given, (SELECT 8 AS d FROM t) u"),
        (
            "WITH given AS (SELECT $1 AS a, $2 AS b, 6) SELECT 7 AS c, d FROM given, (SELECT 8 AS d FROM t) u"
                .into(),
            vec![int(5), text("x")]
        )
    );
    let unnamed = |sql: &str| lift_unnamed(sql).unwrap().text;
    assert_eq!(
        unnamed("SELECT 5, a, a / 6, DATE '1970-01-02' AS b FROM (SELECT 8 FROM t) u ORDER BY 1, 2"),
        "SELECT $1, a, a / 6, $2 AS b FROM (SELECT 8 FROM t) u ORDER BY 1, 2"
    );
    assert_eq!(
        unnamed("SELECT 5 AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY 1), 7 ORDER BY 1, 2"),
        "SELECT $1 AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY 1), $2 ORDER BY 1, 2"
    );
    for stays in ["SELECT 5, a FROM t UNION ALL SELECT 6, b FROM u", "SELECT 5, a FROM t ORDER BY b = 5 + a"]
    {
        assert_eq!(unnamed(stays), stays);
    }
}

#[test]
fn rows_of_values_are_lifted_by_column() {
    let int = Value::Int;
    let text = |t: &str| Value::Text(t.into());
    assert_eq!(
        lifted("SELECT * FROM (VALUES (7, 'a', -1), (8, NULL, 2)) AS v (id, b, c) JOIN t ON t.id = v.id WHERE t.x > 3"),
        (
            "SELECT * FROM (VALUES ($1, $2, $3), ($4, NULL, $5)) AS v (id, b, c) JOIN t ON t.id = v.id WHERE t.x > $6"
                .into(),
            vec![int(7), text("a"), int(-1), int(8), int(2), int(3)]
        )
    );
    // Literals of several kinds, and what stands beside something computed, decide each other's type.
    assert_eq!(
        lifted("WITH v (a, b, c, d) AS (VALUES (1, 1.5, 'x', DATE '2024-01-01'), (2.5, 2.25, now(), '2024-01-02')) SELECT a FROM v").0,
        "WITH v (a, b, c, d) AS (VALUES (1, $1, 'x', DATE '2024-01-01'), (2.5, $2, now(), '2024-01-02')) SELECT a FROM v"
    );
    for sql in [
        "SELECT (SELECT max(a) FROM (VALUES (1), (2)) AS v (a))",
        "SELECT a FROM (VALUES (1), (2)) AS v (a) UNION SELECT b FROM t",
        "SELECT a FROM (VALUES ((SELECT max(b) FROM t)), (2)) AS v (a)",
        "SELECT a FROM (VALUES (true), (f(2, (3)))) AS v (a)",
        "SELECT a FROM (VALUES (1), (2) ORDER BY 1) AS v (a)",
        "SELECT a FROM (VALUES (1), (2",
        "SELECT a FROM (VALUES (1), 2)",
        "SELECT a FROM (VALUES",
    ] {
        assert_eq!(lifted(sql), (sql.into(), Vec::new()));
    }
}

#[test]
fn names_may_stand_in_the_quotes_of_others() {
    assert_eq!(
        lifted("SELECT [a = 1], d[1] FROM [t] WHERE [x y] = 7 AND t.[b]=`c'd` AND `e` IN (2)"),
        (
            "SELECT [a = 1], d[1] FROM [t] WHERE [x y] = $1 AND t.[b]=`c'd` AND `e` IN ($2)".into(),
            vec![Value::Int(7), Value::Int(2)]
        )
    );
}

#[test]
fn what_shapes_the_plan_stays() {
    for sql in [
        "SELECT (SELECT CASE WHEN a = 3 THEN 'x' END FROM u), a IS DISTINCT FROM b, f(a < 8, 5), a > 5 b FROM t",
        "WITH c AS (SELECT a > 4 FROM t) SELECT * FROM c ORDER BY a = 5 + 1, 2",
        "SELECT lpad(id, 4), (1, 2) FROM t WHERE a = 1 + b AND c = -b LIMIT 3",
        "SELECT \"= 5\" FROM t WHERE a = b AND d > INTERVAL '1 day'",
        "SELECT /*+ FULL(x = 5) */ a FROM t WHERE a = 5 IS NULL",
        "SELECT a FROM t WHERE a AND 5",
        "SELECT a FROM t WHERE f(1, 2)",
        "SELECT a FROM t WHERE a IN (b, 2) AND (a, (1), 2) IS NULL",
        "SELECT a FROM t WHERE doc->'a' IS NULL AND b = doc->>'c' AND doc -> 0 = d AND doc #> '{a}' = doc#>>'{b}'",
    ] {
        assert_eq!(lifted(sql), (sql.into(), Vec::new()));
    }
    for sql in [
        "INSERT INTO t VALUES (1)",
        "SELECT E'a\\'b' FROM t",
        "SELECT * FROM t WHERE a = ?",
        "SELECT $$a$$",
        "SELECT 'open",
        "",
    ] {
        assert_eq!(lift(sql), None, "{sql}");
    }
}

#[test]
fn outputs_get_their_literals_back_in_their_names() {
    let of = |sql: &str| lift(sql).unwrap();
    let exists =
        of("SELECT EXISTS (SELECT 1 FROM t WHERE id = 7 AND b = 'it''s'), $1 + a > 4 FROM u WHERE c = 5");
    assert_eq!(
        exists.text,
        "SELECT EXISTS (SELECT 1 FROM t WHERE id = $2 AND b = $3), $1 + a > $4 FROM u WHERE c = $5"
    );
    let names = [
        (
            "EXISTS (SELECT 1 FROM t WHERE id = $2 AND b = $3)",
            "EXISTS (SELECT 1 FROM t WHERE id = 7 AND b = 'it''s')",
        ),
        ("$1 + a > $4", "$1 + a > 4"),
        // No parameters.
        ("'$4' || \"$4\" || \"'\" = $4 || $44 || $", "'$4' || \"$4\" || \"'\" = 4 || $44 || $"),
    ];
    names.into_iter().for_each(|(planned, shown)| assert_eq!(exists.shown.name(planned), shown));
    // A column has the name of a parameter.
    let named = "SELECT a + 1, b AS \"b $1\" FROM t WHERE c = 2";
    assert_eq!(of(named).text, "SELECT a + 1, b AS \"b $1\" FROM t WHERE c = $1");
    assert!(of(named).shown.is_empty());
    // A query in parentheses names the outermost columns.
    let union = "(SELECT 7, a + 1, b AS c FROM t WHERE c = 2) UNION ALL (SELECT 8, 9, 10 WHERE 11 = 12)";
    assert_eq!(
        of(union).text,
        "(SELECT 7, a + 1, b AS c FROM t WHERE c = $1) UNION ALL (SELECT 8, 9, 10 WHERE $2 = $3)"
    );
    assert_eq!(of("(SELECT 7) UNION ALL (SELECT 8)").text, "(SELECT 7) UNION ALL (SELECT 8)");
    // It may be written in several ways.
    let several = "SELECT a = -7, a = 5 + 1, a > DATE '2024-01-01', a < now() FROM t";
    assert_eq!((of(several).text, of(several).shown.is_empty()), (several.into(), true));
    // A sort key contains a comparison, perhaps the same.
    let sorted = of("SELECT (SELECT b > 5 FROM u), a > 6 FROM t ORDER BY a > 6");
    assert_eq!(sorted.text, "SELECT (SELECT b > 5 FROM u), a > 6 FROM t ORDER BY a > $1");
    assert!(sorted.shown.is_empty());
    // Lists of one length share a text.
    let list = of("SELECT a IN (1, 2, 3) FROM t");
    assert_eq!(list.text, "SELECT a IN ($1, $2, $3) FROM t");
    assert_eq!(list.shown.name("a IN ($1, $2, $3)"), "a IN (1, 2, 3)");
    assert_eq!(lift_named("SELECT a > 4 FROM t").unwrap().text, "SELECT a > 4 FROM t");
}

#[test]
fn literals_of_changes_are_lifted() {
    let int = Value::Int;
    let text = |t: &str| Value::Text(t.into());
    let lifted = |sql: &str| lift_change(sql).map(|lifted| (lifted.text, lifted.values));
    let lifts = |sql, left: &str, values| assert_eq!(lifted(sql), Some((left.to_owned(), values)));
    lifts(
        "UPDATE t SET a = 5, b = b + 17, c = 'x', d = -1.50 WHERE id = 7 AND e IN (1, 2, 3) -- why",
        "UPDATE t SET a = $1, b = b + $2, c = $3, d = $4 WHERE id = $5 AND e IN ($6, $7, $8, $9)  ",
        vec![int(5), int(17), text("x"), Value::Decimal(-150, 2), int(7), int(1), int(2), int(3), int(3)],
    );
    lifts(
        "update t set (a, b) = (1, 2), c = lpad(c, 3), d = (SELECT max(d) + 1 FROM u WHERE u.a = 4);",
        "update t set (a, b) = ($1, $2), c = lpad(c, 3), d = (SELECT max(d) + 1 FROM u WHERE u.a = $3);",
        vec![int(1), int(2), int(4)],
    );
    lifts(
        "UPDATE t SET a = u.a * 2 FROM u WHERE u.id = t.id AND u.b = 'y' ORDER BY t.id LIMIT 3",
        "UPDATE t SET a = u.a * $1 FROM u WHERE u.id = t.id AND u.b = $2 ORDER BY t.id LIMIT 3",
        vec![int(2), text("y")],
    );
    lifts(
        "DELETE FROM t /*+ INDEX(t by_a) */ WHERE a BETWEEN 1 AND 9 OR b LIKE 'x%'",
        "DELETE FROM t /*+ INDEX(t by_a) */ WHERE a BETWEEN $1 AND $2 OR b LIKE $3",
        vec![int(1), int(9), text("x%")],
    );
    lifts(
        "INSERT INTO t (a, b) VALUES (1, 'x'), (-2.50, NULL), (true, now()), (DEFAULT, 3 + 4), (f(5), (6))",
        "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4), ($5, now()), (DEFAULT, $6), (f(5), (6))",
        vec![int(1), text("x"), Value::Decimal(-250, 2), Value::Null, Value::Boolean(true), int(7)],
    );
    lifts(
        "insert into t values (1, 2) ON CONFLICT (a) DO UPDATE SET b = t.b + 3, c = 'x' WHERE t.b > 4 RETURNING b + 5, a = 6",
        "insert into t values ($1, $2) ON CONFLICT (a) DO UPDATE SET b = t.b + $3, c = $4 WHERE t.b > $5 RETURNING b + 5, a = 6",
        vec![int(1), int(2), int(3), text("x"), int(4)],
    );
    lifts(
        "UPSERT INTO t SELECT 5, a + 2 FROM u WHERE b = 3 ORDER BY a LIMIT 4",
        "UPSERT INTO t SELECT $1, a + $2 FROM u WHERE b = $3 ORDER BY a LIMIT 4",
        vec![int(5), int(2), int(3)],
    );
    lifts(
        "DELETE FROM t WHERE at < now() - INTERVAL '1 day' AND a IN (5, now()) AND a = 6",
        "DELETE FROM t WHERE at < now() - INTERVAL '1 day' AND a IN ($1, now()) AND a = $2",
        vec![int(5), int(6)],
    );
    lifts("UPDATE t SET a = b", "UPDATE t SET a = b", vec![]);
    for sql in [
        "UPDATE t SET a = $1 WHERE id = 7",
        "DROP TABLE t",
        "SELECT a FROM t WHERE id = 7",
        "INSERT INTO t VALUES (X'00')",
        &format!("INSERT INTO t VALUES (1{})", " ".repeat(4096)),
    ] {
        assert_eq!(lifted(sql), None, "{sql}");
    }
}
