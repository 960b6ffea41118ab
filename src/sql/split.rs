//! Splits a script into statements while its text arrives.
//!
//! A [`Splitter`] is pushed chunks of any size and hands out a statement as soon as its `;` arrives. It looks
//! at each character once, however the text is chunked: what it must remember between two characters (half of
//! a `--`, an open quote, how much of `$tag$` has matched) is its [`State`].

use std::collections::VecDeque;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::quotes::{ends_value, starts_name};

/// One statement of a script, without its `;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlText {
    /// From the first character that is not blank; comments are kept.
    pub text: String,
    /// 1-based line of the script on which `text` starts.
    pub line: u32,
}

/// Cuts a stream of SQL text at each `;` outside quotes and comments, but not between the queries of
/// `ADVISE FOR (query; query)`, nor between `BEGIN` and `END` of a trigger or function: there are none, and their
/// statements are not to be run as if they stood alone.
///
/// Knows `'..'`, `".."` and names in backticks with doubled quotes, `[name]`, `E'..'` with backslashes, `$tag$..$tag$`,
/// `--` to the end of the line, and nested `/* */`.
#[derive(Debug)]
pub struct Splitter {
    state: State,
    current: String,
    current_line: u32,
    line: u32,
    /// The current statement contains more than blanks and comments.
    has_content: bool,
    /// The last character; `None` at the start of a statement.
    before: Option<char>,
    /// Open parentheses in the current statement (count).
    depth: u32,
    ready: VecDeque<SqlText>,
}

#[derive(Debug)]
enum State {
    /// Between tokens.
    Plain,
    /// In a name, keyword or number; `escape` if it is just `E`, so that a quote now starts `E'..'`.
    Word { escape: bool },
    /// After one `-`.
    Dash,
    /// After one `/`.
    Slash,
    /// In `'..'`, `".."` or backticks. A doubled quote closes and reopens, with the same effect.
    Quoted(char),
    /// After a `[` that begins a name if a letter follows.
    Bracket,
    /// In `[name]`.
    Bracketed,
    /// In `E'..'`.
    Escaped,
    /// In `E'..'`, after a backslash.
    Backslash,
    /// In `E'..'`, after a quote, which may be doubled or the end.
    EscapedQuote,
    /// In `-- ..`.
    LineComment,
    /// In `/* .. */`, `depth` deep, after `last`.
    BlockComment { depth: u32, last: char },
    /// After `$` and this part of a tag.
    Dollar(String),
    /// In `$tag$ .. $tag$`, after `matched` characters of the closing delimiter.
    DollarQuoted { delimiter: Vec<char>, matched: usize },
}

impl Default for Splitter {
    fn default() -> Self {
        Splitter {
            state: State::Plain,
            current: String::new(),
            current_line: 1,
            line: 1,
            has_content: false,
            before: None,
            depth: 0,
            ready: VecDeque::new(),
        }
    }
}

impl Splitter {
    /// A splitter at line 1 of a script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next chunk of the script, of any size.
    pub fn push(&mut self, text: &str) {
        // `from`: start of what has not been copied to `current` yet.
        let mut from = 0;
        for (at, c) in text.char_indices() {
            if self.current.is_empty() && from == at && c.is_whitespace() {
                from = at + c.len_utf8();
                self.line += u32::from(c == '\n');
                self.current_line = self.line;
                continue;
            }
            if self.step(c) {
                // A full-width one stays, for the parser to refuse.
                let end = if c == ';' { at } else { at + c.len_utf8() };
                self.current.push_str(&text[from..end]);
                from = end;
                if (self.depth == 0 || !is_advise(&self.current)) && !is_in_body(&self.current) {
                    from = at + c.len_utf8();
                    self.cut();
                }
            }
            self.line += u32::from(c == '\n');
        }
        self.current.push_str(&text[from..]);
    }

    /// The next complete statement, in script order. Blank ones are left out.
    pub fn next_statement(&mut self) -> Option<SqlText> {
        self.ready.pop_front()
    }

    /// Ends the script and gives the rest after the last `;`, unless it is blank. Call it after all complete
    /// statements are taken; the splitter is then reset to line 1.
    pub fn finish(&mut self) -> Option<SqlText> {
        // An unclosed comment is handed out, so that the parser reports it.
        self.has_content |= !matches!(self.state, State::Plain | State::LineComment);
        self.cut();
        let rest = self.ready.pop_back();
        *self = Splitter::default();
        rest
    }

    /// Does it wait for a `;` or the end of a quote or comment? Then a shell should ask for another line.
    pub fn is_open(&self) -> bool {
        self.has_content || !matches!(self.state, State::Plain | State::LineComment)
    }

    /// Is the position between two tokens, in no quote or comment?
    pub fn is_between_tokens(&self) -> bool {
        matches!(self.state, State::Plain)
    }

    /// The text of the current, unfinished statement.
    pub fn pending(&self) -> &str {
        &self.current
    }

    /// Ends the current statement.
    fn cut(&mut self) {
        let text = std::mem::take(&mut self.current);
        if std::mem::take(&mut self.has_content) {
            let text = match text.trim_end() {
                trimmed if trimmed.len() == text.len() => text,
                trimmed => trimmed.to_owned(),
            };
            self.ready.push_back(SqlText { text, line: self.current_line });
        }
        self.current_line = self.line;
        self.state = State::Plain;
        self.before = None;
        self.depth = 0;
    }

    /// Is the position in a name in backticks or brackets?
    pub(super) fn is_in_foreign_name(&self) -> bool {
        matches!(self.state, State::Quoted('`') | State::Bracketed)
    }

    /// Takes one character; true if it is the `;` that ends the statement, perhaps a full-width one.
    pub(super) fn step(&mut self, c: char) -> bool {
        let state = std::mem::replace(&mut self.state, State::Plain);
        self.state = match state {
            State::Plain => self.start(c),
            State::Word { .. } if is_word(c) => State::Word { escape: false },
            State::Word { escape: true } if c == '\'' => State::Escaped,
            State::Word { .. } => self.start(c),
            State::Dash if c == '-' => State::LineComment,
            State::Slash if c == '*' => State::BlockComment { depth: 1, last: ' ' },
            State::Dash | State::Slash => {
                self.has_content = true;
                self.start(c)
            }
            State::Quoted(quote) if c == quote => State::Plain,
            State::Quoted(quote) => State::Quoted(quote),
            State::Bracket if starts_name(c) => State::Bracketed,
            State::Bracket => self.start(c),
            State::Bracketed if c == ']' => State::Plain,
            State::Bracketed => State::Bracketed,
            State::Escaped => escaped(c),
            State::Backslash => State::Escaped,
            State::EscapedQuote if c == '\'' => State::Escaped,
            State::EscapedQuote => self.start(c),
            State::LineComment if c == '\n' || c == '\r' => State::Plain,
            State::LineComment => State::LineComment,
            State::BlockComment { depth, last } => block_comment(depth, last, c),
            State::Dollar(tag) => self.dollar(tag, c),
            State::DollarQuoted { delimiter, matched } => dollar_quoted(delimiter, matched, c),
        };
        self.before = Some(c);
        // Inside quotes and comments a `;` never leads back to Plain.
        matches!(c, ';' | '；') && matches!(self.state, State::Plain)
    }

    /// The state after a character at the start of a token.
    fn start(&mut self, c: char) -> State {
        self.has_content |= !c.is_whitespace() && !matches!(c, ';' | '-' | '/');
        match c {
            '(' => self.depth += 1,
            ')' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        match c {
            '\'' | '"' | '`' => State::Quoted(c),
            '[' if !self.before.is_some_and(ends_value) => State::Bracket,
            '-' => State::Dash,
            '/' => State::Slash,
            '$' => State::Dollar(String::new()),
            'e' | 'E' => State::Word { escape: true },
            c if is_word(c) => State::Word { escape: false },
            _ => State::Plain,
        }
    }

    /// After `$tag`: the opening delimiter of a quote, or a parameter such as `$1`.
    fn dollar(&mut self, mut tag: String, c: char) -> State {
        let starts_tag = !c.is_ascii_digit() || !tag.is_empty();
        if c == '$' {
            let delimiter = format!("${tag}$").chars().collect();
            State::DollarQuoted { delimiter, matched: 0 }
        } else if is_word(c) && starts_tag {
            tag.push(c);
            State::Dollar(tag)
        } else if is_word(c) {
            State::Word { escape: false }
        } else {
            self.start(c)
        }
    }
}

/// Is the text the start of an ADVISE statement, perhaps after comments?
fn is_advise(text: &str) -> bool {
    without_comments(text).get(..6).is_some_and(|word| word.eq_ignore_ascii_case("advise"))
}

/// The text behind the blanks and comments at its start.
fn without_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = match text.get(..2) {
            Some("--") => text.find(['\n', '\r']),
            Some("/*") => end_of_comment(text),
            _ => None,
        };
        let Some(end) = end else { return text };
        text = &text[end..];
    }
}

/// Where the comment ends that the text begins with, and the comments inside it do.
fn end_of_comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    loop {
        at += text[at..].find(['/', '*'])?;
        match text.get(at..at + 2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Does the text create a trigger or function whose `BEGIN` has no `END` behind a `;` yet?
fn is_in_body(text: &str) -> bool {
    let mut words = without_comments(text).split_whitespace().take(5);
    let is = |word: &str, others: &[&str]| others.iter().any(|other| word.eq_ignore_ascii_case(other));
    if !words.next().is_some_and(|word| is(word, &["create"]))
        || !words.any(|word| is(word, &["trigger", "function", "procedure"]))
    {
        return false;
    }
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize() else { return false };
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let is_word = |token: &Token, keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let begins = tokens.iter().any(|token| is_word(token, Keyword::BEGIN));
    begins && !matches!(&tokens[..], [.., Token::SemiColon, end] if is_word(end, Keyword::END))
}

/// Characters of names, keywords and numbers after the first.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii() && !c.is_whitespace() && c != '；'
}

fn escaped(c: char) -> State {
    match c {
        '\\' => State::Backslash,
        '\'' => State::EscapedQuote,
        _ => State::Escaped,
    }
}

fn block_comment(depth: u32, last: char, c: char) -> State {
    match (last, c) {
        // `last` becomes a blank, so that `/*/` does not open and close at once.
        ('*', '/') if depth == 1 => State::Plain,
        ('*', '/') => State::BlockComment { depth: depth - 1, last: ' ' },
        ('/', '*') => State::BlockComment { depth: depth + 1, last: ' ' },
        _ => State::BlockComment { depth, last: c },
    }
}

fn dollar_quoted(delimiter: Vec<char>, matched: usize, c: char) -> State {
    // `$` occurs only at the ends of a delimiter, so a failed match can only restart at this character.
    let matched = match c {
        c if c == delimiter[matched] => matched + 1,
        '$' => 1,
        _ => 0,
    };
    if matched == delimiter.len() { State::Plain } else { State::DollarQuoted { delimiter, matched } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&str]) -> Vec<SqlText> {
        let mut splitter = Splitter::new();
        let mut found = Vec::new();
        for chunk in chunks {
            splitter.push(chunk);
            found.extend(std::iter::from_fn(|| splitter.next_statement()));
        }
        found.extend(splitter.finish());
        found
    }

    fn texts(script: &str) -> Vec<String> {
        split(&[script]).into_iter().map(|s| s.text).collect()
    }

    const SCRIPT: &str = "SELECT 1;\n\n-- one; comment\n;SELECT 'a;''b', \"c;\"\"d\" -- tail; \n;\r\n\
        /* a /* nested; */ b; */ INSERT INTO t VALUES (E'it\\'s; ok''; \\\\'); select $$;$ $$, $x$ $$; $x $x$, $1;\
        \n  e';' ; a-b/c; $1;x$a$;/**/;/*/;*/;é;[a;'] `;\"`[1;d[';'];--";

    #[test]
    fn quotes_and_comments_hide_semicolons() {
        assert_eq!(
            texts(SCRIPT),
            [
                "SELECT 1",
                "SELECT 'a;''b', \"c;\"\"d\" -- tail;",
                "/* a /* nested; */ b; */ INSERT INTO t VALUES (E'it\\'s; ok''; \\\\')",
                "select $$;$ $$, $x$ $$; $x $x$, $1",
                "e';'",
                "a-b/c",
                "$1",
                "x$a$",
                "é",
                "[a;'] `;\"`[1",
                "d[';']",
            ]
        );
    }

    #[test]
    fn queries_of_advise_stay_together() {
        let advise = "ADVISE FOR (SELECT 1; SELECT (2); SELECT ')'), (SELECT 3)";
        let noted = "-- a;\n/* b; /* c */; */ advise for (a;\nb)";
        assert_eq!(texts(&format!("{advise}; SELECT (4;\n{noted};5")), [advise, "SELECT (4", noted, "5"]);
        let mut splitter = Splitter::new();
        advise.chars().for_each(|c| splitter.push(&c.to_string()));
        assert_eq!((splitter.next_statement(), splitter.is_open()), (None, true));
        assert_eq!(splitter.finish().unwrap().text, advise);
    }

    #[test]
    fn statements_of_triggers_and_functions_stay_together() {
        let trigger = "CREATE TEMP TRIGGER t AFTER DELETE ON o BEGIN\n UPDATE o SET n = CASE WHEN a THEN ';' END;\n \
                       DELETE FROM log; -- all\nEND";
        let function =
            "-- one\nCREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; end";
        let quoted = "create function g() returns int as $$ begin return 1; end $$ language plpgsql";
        let script =
            format!("BEGIN;{trigger};{function};{quoted}; CREATE TABLE begin_trigger (a); END; COMMIT");
        assert_eq!(
            texts(&script),
            ["BEGIN", trigger, function, quoted, "CREATE TABLE begin_trigger (a)", "END", "COMMIT"]
        );
    }

    #[test]
    fn lines_are_those_of_the_first_character() {
        let found = split(&["\n\nSELECT 1;\n-- note\nSELECT\n2 ; SELECT 3;\n\n\nSELECT 4"]);
        let lines: Vec<u32> = found.iter().map(|s| s.line).collect();
        assert_eq!(lines, [3, 4, 6, 9]);
        assert_eq!(found[1].text, "-- note\nSELECT\n2");
    }

    #[test]
    fn a_shell_knows_when_to_ask_for_more() {
        let open = |text: &str| {
            let mut splitter = Splitter::new();
            splitter.push(text);
            splitter.is_open()
        };
        for text in ["", "  \n", "-- note", "-- note\n", "SELECT 1;", "SELECT 1; \n", "/* note */"] {
            assert!(!open(text), "{text:?}");
        }
        for text in ["SELECT", "SELECT 1\n", "/* note", "'", "; $$ x $", "-"] {
            assert!(open(text), "{text:?}");
        }
    }

    #[test]
    fn signs_beyond_ascii() {
        assert_eq!(texts("SELECT 1；SELECT '；'; é；"), ["SELECT 1；", "SELECT '；'", "é；"]);
        assert_eq!(texts("SELECT\u{a0}E'\\';'; 2"), ["SELECT\u{a0}E'\\';'", "2"]);
    }

    #[test]
    fn what_never_ends_is_handed_out() {
        assert_eq!(texts("SELECT 1; /* no end"), ["SELECT 1", "/* no end"]);
        assert_eq!(texts("SELECT 'x;"), ["SELECT 'x;"]);
        assert_eq!(texts("SELECT $$x;"), ["SELECT $$x;"]);
        assert_eq!(texts(" -- just a note"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(cuts in prop::collection::vec(0..SCRIPT.len(), 0..12)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| SCRIPT.is_char_boundary(*at)).collect();
            cuts.extend([0, SCRIPT.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&str> = cuts.windows(2).map(|w| &SCRIPT[w[0]..w[1]]).collect();
            prop_assert_eq!(split(&chunks), split(&[SCRIPT]));
        }

        #[test]
        fn any_text_in_any_chunks(text in "[-/*'\"$eE\\\\; a\n\u{e9}；\u{a0}\\[\\]`]{0,40}", at in 0usize..40) {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            prop_assert_eq!(split(&[&text[..at], &text[at..]]), split(&[&text]));
        }
    }
}
