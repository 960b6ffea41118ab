//! Parses COPY.

use std::path::Path;

use sqlparser::tokenizer::Token;

use super::Parser;
use crate::error::{Result, Span};
use crate::sql::ast::*;
use crate::value::Value;

/// The options of a COPY, while they are read.
#[derive(Default)]
struct CopyOptions {
    format: Option<CopyFormat>,
    header: Option<bool>,
    delimiter: Option<char>,
    null: Option<String>,
    skip_errors: Option<bool>,
    /// Place of the first option that applies to csv only.
    csv: Option<Span>,
}

impl Parser<'_> {
    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.expect_word("COPY")?;
        let source = self.copy_source()?;
        let to = self.word("TO");
        if !to && !self.word("FROM") {
            return Err(self.expected("FROM or TO"));
        }
        if !to && matches!(source, CopySource::Query(_)) {
            return Err(self.error("a query can only be copied TO a file"));
        }
        if self.peek_words(&["PROGRAM"]) {
            return Err(self
                .expected("the path of a file, in quotes")
                .why("statements start no programs")
                .hint("let the shell do it, and COPY the file that it writes or reads"));
        }
        let from = self.here();
        let path = match self.word(if to { "STDOUT" } else { "STDIN" }) {
            true => None,
            false => Some(self.text("the path of a file, in quotes")?),
        };
        let path_span = self.span_since(from);
        let mut options = self.copy_options(to)?;
        while !self.at_end() {
            self.copy_option(&mut options, to)?;
        }
        let file = self.copy_file(path, path_span, options)?;
        Ok(Statement::Copy(Box::new(Copy { source, to, file })))
    }

    /// A file to read rows from: `'path' [WITH (options)]`.
    pub(super) fn file_of_rows(&mut self) -> Result<CopyFile> {
        let from = self.here();
        let path = self.text("the path of a file, in quotes")?;
        let path_span = self.span_since(from);
        let options = self.copy_options(false)?;
        self.copy_file(Some(path), path_span, options)
    }

    fn copy_file(&self, path: Option<String>, path_span: Span, options: CopyOptions) -> Result<CopyFile> {
        let by_name = path.as_deref().map_or(Some(CopyFormat::Text), format_of);
        let Some(format) = options.format.or(by_name) else {
            let end = path.as_deref().and_then(|path| path.rsplit_once('.')).map_or("", |(_, end)| end);
            let hint = match end.to_ascii_lowercase().as_str() {
                "txt" | "tsv" | "tab" => "write WITH (FORMAT text), or FORMAT csv with a DELIMITER",
                "json" => {
                    "write WITH (FORMAT jsonl) for one object a line; jq -c '.[]' makes that of an array"
                }
                _ => "end its name in .csv, .jsonl or .parquet, or write WITH (FORMAT csv)",
            };
            return Err(self.error_at("the format of this file is not clear", path_span).hint(hint));
        };
        if path.is_none() && format == CopyFormat::Parquet {
            return Err(self
                .error_at("a Parquet file is no stream", path_span)
                .hint("name it: COPY t FROM 'file.parquet'"));
        }
        let is_text = format == CopyFormat::Text;
        let is_of_csv = |_: &Span| format != CopyFormat::Csv && !(is_text && options.header != Some(true));
        if let Some(place) = options.csv.filter(is_of_csv) {
            return Err(self
                .error_at("this option is about CSV files, and the file is none", place)
                .hint("HEADER goes with FORMAT csv; DELIMITER and NULL with csv and text"));
        }
        let tabs = is_text || path.as_deref().and_then(extension).as_deref() == Some("tsv");
        // A stream has no header, as in PostgreSQL.
        let header = options.header.unwrap_or(path.is_some());
        let null = options.null.unwrap_or_else(|| if is_text { "\\N".to_owned() } else { String::new() });
        Ok(CopyFile {
            path,
            format,
            header,
            delimiter: options.delimiter.unwrap_or(if tabs { '\t' } else { ',' }),
            null,
            skip_errors: options.skip_errors.unwrap_or(false),
        })
    }

    fn copy_source(&mut self) -> Result<CopySource> {
        if self.token(&Token::LParen) {
            let query = self.query()?;
            self.expect_token(Token::RParen)?;
            return Ok(CopySource::Query(query));
        }
        let name = self.object_name("the name of a table, or a query in parentheses")?;
        let columns = if self.peek_token(&Token::LParen) { self.names("a column")? } else { Vec::new() };
        Ok(CopySource::Table { name, columns })
    }

    /// `[WITH] (FORMAT csv, ...)`, or the same options after COPY without parentheses.
    fn copy_options(&mut self, to: bool) -> Result<CopyOptions> {
        let mut options = CopyOptions::default();
        let with = self.word("WITH");
        if self.token(&Token::LParen) {
            self.list(|p| p.copy_option(&mut options, to))?;
            self.expect_token(Token::RParen)?;
        } else if with {
            self.copy_option(&mut options, to)?;
        }
        Ok(options)
    }

    fn copy_option(&mut self, options: &mut CopyOptions, to: bool) -> Result<()> {
        let from = self.here();
        let (mut csv, mut on_error) = (false, false);
        let twice = if self.word("FORMAT") {
            let format = self.copy_format()?;
            options.format.replace(format).is_some()
        } else if self.word("CSV") {
            options.format.replace(CopyFormat::Csv).is_some()
        } else if self.word("HEADER") {
            csv = true;
            let header = self.switch();
            options.header.replace(header).is_some()
        } else if self.word("DELIMITER") {
            csv = true;
            let delimiter = self.delimiter()?;
            options.delimiter.replace(delimiter).is_some()
        } else if self.word("NULL") {
            csv = true;
            self.word("AS");
            let null = self.text("the text that stands for NULL")?;
            options.null.replace(null).is_some()
        } else if self.word("ON_ERROR") || self.words(&["ON", "ERROR"]) {
            on_error = true;
            let skip = self.on_error()?;
            options.skip_errors.replace(skip).is_some()
        } else {
            return Err(self.expected("FORMAT, HEADER, DELIMITER, NULL or ON_ERROR"));
        };
        let place = self.span_since(from);
        if twice {
            return Err(self.error_at("this option is given twice", place).hint("keep one of them"));
        }
        if on_error && to {
            return Err(self
                .error_at("ON_ERROR says what becomes of rows that cannot be read", place)
                .why("COPY TO reads no file")
                .hint("leave it out"));
        }
        if csv {
            options.csv.get_or_insert(place);
        }
        Ok(())
    }

    fn copy_format(&mut self) -> Result<CopyFormat> {
        let formats = [
            ("csv", CopyFormat::Csv),
            ("text", CopyFormat::Text),
            ("jsonl", CopyFormat::Jsonl),
            ("ndjson", CopyFormat::Jsonl),
            ("json", CopyFormat::Jsonl),
            ("parquet", CopyFormat::Parquet),
        ];
        let unknown = self.expected("csv, text, jsonl or parquet");
        match self.option_value()? {
            Value::Text(name) => formats
                .into_iter()
                .find(|(known, _)| name.eq_ignore_ascii_case(known))
                .map(|(_, format)| format)
                .ok_or(unknown),
            _ => Err(unknown),
        }
    }

    fn delimiter(&mut self) -> Result<char> {
        self.word("AS");
        let wrong =
            self.error("the delimiter is one ASCII character").hint("DELIMITER ';', or E'\\t' for a tab");
        let text = self.text("the delimiter, in quotes")?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if c.is_ascii() && !matches!(c, '"' | '\n' | '\r') => Ok(c),
            _ => Err(wrong),
        }
    }

    fn on_error(&mut self) -> Result<bool> {
        let unknown = self.expected("SKIP or STOP");
        match self.option_value()? {
            Value::Text(what) if ["skip", "ignore"].contains(&&*what.to_lowercase()) => Ok(true),
            Value::Text(what) if what.eq_ignore_ascii_case("stop") => Ok(false),
            _ => Err(unknown),
        }
    }
}

fn extension(path: &str) -> Option<String> {
    Some(Path::new(path).extension()?.to_str()?.to_ascii_lowercase())
}

fn format_of(path: &str) -> Option<CopyFormat> {
    match extension(path)?.as_str() {
        "csv" | "tsv" => Some(CopyFormat::Csv),
        "jsonl" | "ndjson" => Some(CopyFormat::Jsonl),
        "parquet" => Some(CopyFormat::Parquet),
        _ => None,
    }
}
