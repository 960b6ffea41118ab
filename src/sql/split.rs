//! Stand-in splitter: quotes and line comments only.

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlText {
    /// The text, without its `;`.
    pub text: String,
    /// 1-based first line in the script.
    pub line: u32,
}

/// Incremental splitter.
#[derive(Default)]
pub struct Splitter {
    rest: String,
    line: u32,
}

impl Splitter {
    /// An empty one.
    pub fn new() -> Self {
        Splitter { rest: String::new(), line: 1 }
    }

    /// Adds text.
    pub fn push(&mut self, text: &str) {
        self.rest.push_str(text);
    }

    /// The next whole statement.
    pub fn next_statement(&mut self) -> Option<SqlText> {
        let end = self.find_end()?;
        let text: String = self.rest.drain(..=end).collect();
        let statement = self.trimmed(&text[..text.len() - 1]);
        self.line += text.matches('\n').count() as u32;
        statement.or_else(|| self.next_statement())
    }

    /// The rest without a `;`.
    pub fn finish(&mut self) -> Option<SqlText> {
        let text = std::mem::take(&mut self.rest);
        self.trimmed(&text)
    }

    /// A statement has begun.
    pub fn is_open(&self) -> bool {
        self.trimmed(&self.rest).is_some()
    }

    fn trimmed(&self, text: &str) -> Option<SqlText> {
        let blank = |l: &str| l.trim().is_empty() || l.trim().starts_with("--");
        let skipped = text.split_inclusive('\n').take_while(|l| blank(l)).count() as u32;
        let body: String = text.split_inclusive('\n').skip(skipped as usize).collect();
        (!body.trim().is_empty()).then(|| SqlText { text: body.trim().into(), line: self.line + skipped })
    }

    fn find_end(&self) -> Option<usize> {
        let (mut quote, mut comment, mut last) = (None, false, ' ');
        for (i, c) in self.rest.char_indices() {
            match (quote, c) {
                _ if comment => comment = c != '\n',
                (Some(q), c) if c == q => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '-') if last == '-' => comment = true,
                (None, ';') => return Some(i),
                _ => {}
            }
            last = c;
        }
        None
    }
}
