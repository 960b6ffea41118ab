//! What is on a disk after the power has failed: all that was flushed, and of the rest all, some or nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::dice::Dice;

/// What is in a directory, and in those within: files by their names, directories by theirs with a slash.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Reads the files that hold something: the table of readers does not.
pub fn read(directory: &Path) -> Files {
    let mut files = Files::new();
    read_into(directory, "", &mut files);
    files
}

fn read_into(directory: &Path, under: &str, files: &mut Files) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = format!("{under}{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            read_into(&entry.path(), &folder(&name), files);
            files.insert(folder(&name), Vec::new());
        } else if name != "lock.mdb" {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// What names of files in a directory of this name begin with.
fn folder(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}/") }
}

/// Where a name is.
fn parent(name: &str) -> &str {
    let end = name.trim_end_matches('/').rfind('/');
    end.map_or("", |end| &name[..=end])
}

/// Makes `directory` hold these files and no others.
pub fn write(directory: &Path, files: &Files) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir(directory).unwrap();
    for (name, bytes) in files {
        match name.ends_with('/') {
            true => fs::create_dir(directory.join(name)).unwrap(),
            false => fs::write(directory.join(name), bytes).unwrap(),
        }
    }
}

/// What becomes of that which was written and not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    None,
    Some,
    All,
}

/// One operation, as `libc.c` noted it.
#[derive(Clone)]
pub struct Note {
    pub what: u8,
    /// It was flushed before it returned.
    pub at_once: bool,
    pub name: String,
    pub offset: u64,
    /// Of the operation, from 1.
    pub number: u64,
    pub bytes: Vec<u8>,
}

/// Reads the notes of a run. Of the last one a part may be missing.
pub fn notes(log: &Path) -> Vec<Note> {
    let log = fs::read(log).unwrap_or_default();
    let mut rest = &log[..];
    std::iter::from_fn(|| {
        let (head, tail) = rest.split_first_chunk::<24>()?;
        let number = |from, to| head[from..to].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let (name, tail) = tail.split_at_checked(number(2, 4) as usize)?;
        let (bytes, tail) = tail.split_at_checked(number(4, 8) as usize)?;
        rest = tail;
        Some(Note {
            what: head[0],
            at_once: head[1] != 0,
            name: String::from_utf8(name.to_vec()).unwrap(),
            offset: number(8, 16),
            number: number(16, 24),
            bytes: bytes.to_vec(),
        })
    })
    .collect()
}

/// Bytes of a page, which the system writes out or loses as a whole.
const PAGE: usize = 4096;

/// The content of a file, as it was and what was done to it.
#[derive(Default)]
struct Content {
    before: Vec<u8>,
    done: Vec<Done>,
}

struct Done {
    /// Where, and which bytes; `None`: the file ends here.
    at: usize,
    bytes: Option<Vec<u8>>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    Flushed,
    /// Its flush failed: to the system it is clean, and no later flush writes it.
    Given,
}

impl Content {
    /// Moves what is pending on.
    fn settle(&mut self, state: State) {
        let pending = self.done.iter_mut().filter(|done| done.state == State::Pending);
        pending.for_each(|done| done.state = state);
    }

    fn after(&self, loss: Loss, dice: &mut Dice) -> Vec<u8> {
        let mut out = self.before.clone();
        let mut kept = |state| match (state, loss) {
            (State::Flushed, _) | (_, Loss::None) => true,
            (_, Loss::Some) => dice.chance(50),
            (_, Loss::All) => false,
        };
        for Done { at, bytes, state } in &self.done {
            let Some(bytes) = bytes else {
                if kept(*state) {
                    out.resize(*at, 0);
                }
                continue;
            };
            let mut from = 0;
            while from < bytes.len() {
                let to = bytes.len().min((at + from) / PAGE * PAGE + PAGE - at);
                if kept(*state) {
                    out.resize(out.len().max(at + to), 0);
                    out[at + from..at + to].copy_from_slice(&bytes[from..to]);
                }
                from = to;
            }
        }
        out
    }
}

/// What a name leads to, by the number of a content. Directories have one as well, which stays empty.
type Names = BTreeMap<String, usize>;

/// The files of a directory that held `before`, had this done to it, and then lost power.
pub fn after(before: &Files, notes: &[Note], loss: Loss, dice: &mut Dice) -> Files {
    let mut contents: Vec<Content> =
        before.values().map(|bytes| Content { before: bytes.clone(), done: Vec::new() }).collect();
    // The names in each directory: as flushed, and after each change since.
    let mut folders = BTreeMap::from([(String::new(), vec![Names::new()])]);
    for (content, name) in before.keys().enumerate() {
        folders.entry(parent(name).to_owned()).or_insert(vec![Names::new()])[0].insert(name.clone(), content);
        if name.ends_with('/') {
            folders.entry(name.clone()).or_insert(vec![Names::new()]);
        }
    }
    for note in notes {
        let name = &note.name;
        let content = folders[parent(name)].last().unwrap().get(name).copied();
        let mut write = |bytes, state| {
            let at = note.offset as usize;
            contents[content.unwrap()].done.push(Done { at, bytes, state });
        };
        let mut change = |change: &dyn Fn(&mut Names)| {
            let states = folders.get_mut(parent(name)).unwrap();
            let mut names = states.last().unwrap().clone();
            change(&mut names);
            states.push(names);
        };
        match note.what {
            b'w' if note.at_once => write(Some(note.bytes.clone()), State::Flushed),
            b'w' => write(Some(note.bytes.clone()), State::Pending),
            b't' => write(None, State::Pending),
            b's' | b'f' => match folders.get_mut(&folder(name)) {
                Some(states) if note.what == b's' => drop(states.drain(..states.len() - 1)),
                Some(_) => {}
                None => {
                    let state = if note.what == b's' { State::Flushed } else { State::Given };
                    contents[content.unwrap()].settle(state);
                }
            },
            b'c' | b'm' => {
                let name = if note.what == b'm' { folder(name) } else { name.clone() };
                change(&|names| {
                    names.insert(name.clone(), contents.len());
                });
                contents.push(Content::default());
                if note.what == b'm' {
                    folders.insert(name, vec![Names::new()]);
                }
            }
            b'u' => change(&|names| {
                names.remove(name);
            }),
            b'r' => {
                let to = String::from_utf8(note.bytes.clone()).unwrap();
                assert_eq!(parent(name), parent(&to), "names move within their directory");
                change(&|names| {
                    names.remove(name);
                    names.insert(to.clone(), content.unwrap());
                });
            }
            // An answer, or the fault.
            _ => {}
        }
    }
    // Changes of names in one directory are written in their order.
    let mut states = BTreeMap::new();
    for (folder, mut kept) in folders {
        let which = match loss {
            Loss::None => kept.len() - 1,
            Loss::Some => dice.below(kept.len()),
            Loss::All => 0,
        };
        states.insert(folder, kept.swap_remove(which));
    }
    let mut files = Files::new();
    let mut reached = vec![String::new()];
    while let Some(folder) = reached.pop() {
        for (name, content) in states[&folder].iter().filter(|(name, _)| *name != "lock.mdb") {
            files.insert(name.clone(), contents[*content].after(loss, dice));
            reached.extend(name.ends_with('/').then(|| name.clone()));
        }
    }
    files
}

#[test]
fn what_was_not_flushed_is_lost_and_what_a_failed_flush_gave_up_is_never_flushed_again() {
    let note = |what, name: &str, offset, bytes: &[u8]| Note {
        what,
        at_once: false,
        name: name.into(),
        offset,
        number: 0,
        bytes: bytes.to_vec(),
    };
    let before = Files::from([("a".into(), b"old".to_vec())]);
    let notes = [
        note(b'w', "a", 0, b"new"),
        note(b's', "a", 0, b""),
        note(b'w', "a", 3, b"er"),
        note(b'f', "a", 0, b""),
        note(b'w', "a", 5, b"!"),
        note(b's', "a", 0, b""),
        note(b'c', "b", 0, b""),
        note(b's', "", 0, b""),
        note(b'r', "b", 0, b"c"),
        note(b'm', "d", 0, b""),
        note(b'c', "d/e", 0, b""),
        note(b's', "d", 0, b""),
    ];
    let left = |loss| {
        let files = after(&before, &notes, loss, &mut Dice::new(1, 1)).into_iter();
        files.map(|(name, bytes)| format!("{name}={}", bytes.escape_ascii())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left(Loss::None), "a=newer! c= d/= d/e=");
    assert_eq!(left(Loss::All), "a=new\\x00\\x00! b=");
}
