//! Rules about the tree itself: who imports whom, what `group` must not touch, how long a file may be.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no Rust files found");
    found
}

/// The `[dependencies]` of a crate that are ours.
fn ours(room: &str) -> Vec<String> {
    let manifest = root().join("crates").join(room).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    section
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| name.starts_with("kohort"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn rooms_import_only_what_they_may() {
    let may: [(&str, &[&str]); 5] = [
        ("wire", &[]),
        ("group", &["kohort-wire"]),
        ("sim", &["kohort-wire", "kohort-group"]),
        ("client", &["kohort-wire", "kohort-group"]),
        ("broker", &["kohort-wire", "kohort-group"]),
    ];
    for (room, allowed) in may {
        for name in ours(room) {
            assert!(
                allowed.contains(&name.as_str()),
                "{room} must not depend on {name}"
            );
        }
    }
}

/// The machines have no clock, no IO, no threads, and no iteration order that is left to chance.
#[test]
fn the_protocol_does_no_io() {
    let banned = [
        "HashMap",
        "HashSet",
        "std::time",
        "std::net",
        "std::fs",
        "std::io",
        "std::thread",
        "std::env",
        "tokio",
        "SystemTime",
        "Instant::",
        "println!",
        "rand::",
    ];
    for file in rust_files(&root().join("crates/group/src")) {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            for word in banned {
                assert!(
                    !code.contains(word),
                    "{}:{}: {word} has no place in group",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn files_fit_in_the_head() {
    let limit = 700;
    for room in ["wire", "group", "sim", "client", "broker", "cli"] {
        for file in rust_files(&root().join("crates").join(room).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap().lines().count();
            assert!(
                code <= limit,
                "{} has {code} lines; split it by story",
                file.display()
            );
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(
                ![
                    "util", "utils", "common", "helpers", "helper", "manager", "misc"
                ]
                .contains(&name.as_str()),
                "{}: name it for what it holds",
                file.display()
            );
        }
    }
}

/// The table of reported faults names tests that exist, and each of them names a report of its row.
#[test]
fn reported_faults_are_tested() {
    let table = fs::read_to_string(root().join("docs/reported-faults.md")).unwrap();
    let rows = table.lines().filter(|line| {
        line.starts_with("| ") && !line.starts_with("| report ") && !line.starts_with("|--")
    });
    let mut tests = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(
            cells.len(),
            4,
            "report, what happened, test, without the rule: {row}"
        );
        let reports: Vec<&str> = cells[0].trim_matches(['|', ' ']).split(", ").collect();
        let named: Vec<&str> = cells[2]
            .split('`')
            .filter(|part| part.contains("::"))
            .collect();
        assert_eq!(named.is_empty(), cells[2] == "—", "{row}");
        for test in named {
            tests += 1;
            let (path, name) = test.split_once("::").unwrap();
            let source = fs::read_to_string(root().join("crates").join(path))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            let head = format!("fn {name}(");
            let at = source
                .find(&head)
                .unwrap_or_else(|| panic!("there is no {test}"));
            let above = &source[..at];
            let above = above.rsplit("\n\n").next().unwrap();
            assert!(
                above.contains("#[test]") || above.contains("#[tokio::test"),
                "{test} is no test"
            );
            assert!(
                reports.iter().any(|report| above.contains(report)),
                "the doc comment of {test} names none of {reports:?}"
            );
        }
    }
    assert!(tests > 100, "the table has lost its tests: {tests}");
}
