//! Kafka's property names on the command line: `-X key=value` and `--config FILE`.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Properties from a file and from the command line; the latter win.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PropertyArguments {
    /// Sets a property by Kafka's name; may be repeated, and wins over --config.
    #[arg(short = 'X', value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Reads properties from a file, as Java's tools do (`key=value` lines, # comments).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl PropertyArguments {
    /// Reads both and refuses keys that are not among `known`.
    ///
    /// # Errors
    /// Wrong usage: a file that cannot be read or parsed, an argument without `=`, an unknown key.
    pub(crate) fn read(&self, known: &[&str]) -> Result<BTreeMap<String, String>, Failure> {
        let mut all = BTreeMap::new();
        if let Some(path) = &self.config {
            let text = std::fs::read(path).map_err(|error| {
                Failure::usage(format!(
                    "cannot read the properties file {}: {error}",
                    path.display()
                ))
            })?;
            let text = String::from_utf8(text).map_err(|_| {
                Failure::usage(format!(
                    "the properties file {} is not UTF-8 text",
                    path.display()
                ))
            })?;
            let parsed =
                parse(&text).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
            for (line, key, value) in parsed {
                check(&key, known).map_err(|why| {
                    Failure::usage(format!("{} line {line}: {why}", path.display()))
                })?;
                all.insert(key, value);
            }
        }
        for pair in &self.set {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(Failure::usage(format!("-X {pair}: expected KEY=VALUE")));
            };
            let key = key.trim();
            check(key, known).map_err(|why| Failure::usage(format!("-X {pair}: {why}")))?;
            all.insert(key.to_owned(), value.trim().to_owned());
        }
        Ok(all)
    }
}

fn check(key: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&key) {
        return Ok(());
    }
    Err(match nearest(key, known) {
        Some(near) => format!("unknown property {key:?}; did you mean {near:?}?"),
        None => format!("unknown property {key:?}"),
    })
}

/// The known name that takes the fewest edits to reach, if it is anywhere near.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|name| (distance(key, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(key.len()) * 2 / 3)
        .map(|(_, name)| name)
}

/// Levenshtein's distance, by bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Reads Java's properties format: (line number, key, value), in order.
fn parse(text: &str) -> Result<Vec<(usize, String, String)>, String> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while continues(&whole) {
            whole.pop();
            match lines.next() {
                Some((_, next)) => whole.push_str(next.trim_start()),
                None => break,
            }
        }
        let (key, value) = split(&whole);
        let explain = |why: &str| format!("line {}: {why}", number + 1);
        let key = unescape(key).map_err(|why| explain(&why))?;
        let value = unescape(value).map_err(|why| explain(&why))?;
        if key.is_empty() {
            return Err(explain("expected KEY=VALUE, found no key"));
        }
        found.push((number + 1, key, value.trim_end().to_owned()));
    }
    Ok(found)
}

/// An odd number of backslashes at the end continues the line.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Splits at the first `=`, `:` or white space that no backslash precedes.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '=' || c == ':' || c.is_ascii_whitespace() {
            let rest = line[at..].trim_start();
            let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
            return (&line[..at], rest.trim_start());
        }
    }
    (line, "")
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = characters.by_ref().take(4).collect();
                let character = u32::from_str_radix(&digits, 16)
                    .ok()
                    .filter(|_| digits.len() == 4)
                    .and_then(char::from_u32);
                out.push(character.ok_or_else(|| format!("\\u{digits} is not a character"))?);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn java_properties_are_read_as_java_does() {
        let text = "# comment\n! too\n\n a = 1 \nb:2\nc 3\nlong=x,\\\n   y\nkey\\ with\\=signs=v\\u0041\nempty\n";
        let pairs: Vec<(String, String)> = parse(text)
            .unwrap()
            .into_iter()
            .map(|(_, key, value)| (key, value))
            .collect();
        let expected = [
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("long", "x,y"),
            ("key with=signs", "vA"),
            ("empty", ""),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(pairs, expected);
        assert!(parse("a=\\u00zz").unwrap_err().contains("line 1"));
    }

    #[test]
    fn an_unknown_key_names_the_nearest_known_one() {
        let arguments = PropertyArguments {
            set: vec!["session.timeout=6000".into()],
            config: None,
        };
        let known = ["session.timeout.ms", "heartbeat.interval.ms"];
        let Err(Failure::Usage(why)) = arguments.read(&known) else {
            panic!("not refused");
        };
        assert!(why.contains("session.timeout.ms"), "{why}");
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let path = std::env::temp_dir().join(format!("kohort-properties-{}", std::process::id()));
        std::fs::write(&path, "a=1\nb=2\n").unwrap();
        let arguments = PropertyArguments {
            set: vec!["b=3".into()],
            config: Some(path.clone()),
        };
        let read = arguments.read(&["a", "b"]).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!((read["a"].as_str(), read["b"].as_str()), ("1", "3"));
    }
}
