//! Segments as files: one file for each, batches one after the other as clients see them.
//!
//! A batch is written before it is acknowledged, so that it survives the end of the process; when it is synced to the disk
//! is `log.flush.interval.messages`' business. A torn tail is cut off when the log is opened again.

use super::storage::{SegmentBytes, SegmentStore};
use bytes::Bytes;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const START_OFFSET: &str = "start-offset";

/// The segments of one partition, in a folder of its own.
pub(crate) struct DiskStore {
    folder: PathBuf,
    /// Set when the broker stops: from then on another may own the folder.
    closed: Arc<AtomicBool>,
}

impl DiskStore {
    pub(crate) fn new(folder: PathBuf, closed: Arc<AtomicBool>) -> Self {
        Self { folder, closed }
    }

    fn segment(&self, base_offset: i64, size: u64) -> FileSegment {
        FileSegment {
            path: self.folder.join(format!("{base_offset:020}.log")),
            size,
            file: None,
            damaged: false,
            closed: Arc::clone(&self.closed),
        }
    }
}

impl SegmentStore for DiskStore {
    fn list(&mut self) -> io::Result<Vec<(i64, Box<dyn SegmentBytes>)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut found: Vec<(i64, Box<dyn SegmentBytes>)> = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let base = name.to_str().and_then(|name| name.strip_suffix(".log"));
            if let Some(base_offset) = base.and_then(|base| base.parse().ok()) {
                let segment = self.segment(base_offset, entry.metadata()?.len());
                found.push((base_offset, Box::new(segment)));
            }
        }
        found.sort_by_key(|(base_offset, _)| *base_offset);
        Ok(found)
    }

    fn create(&mut self, base_offset: i64) -> io::Result<Box<dyn SegmentBytes>> {
        fs::create_dir_all(&self.folder)?;
        let mut segment = self.segment(base_offset, 0);
        segment.open()?.set_len(0)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(Box::new(segment))
    }

    fn replace(
        &mut self,
        base_offset: i64,
        batches: &[Bytes],
    ) -> io::Result<Box<dyn SegmentBytes>> {
        let size = batches.iter().map(|batch| batch.len() as u64).sum();
        let segment = self.segment(base_offset, size);
        if self.closed.load(Ordering::Acquire) {
            return Err(stopped());
        }
        write_whole(&segment.path, |file| {
            batches
                .iter()
                .try_for_each(|batch| io::Write::write_all(file, batch))
        })?;
        Ok(Box::new(segment))
    }

    fn start_offset(&mut self) -> io::Result<Option<i64>> {
        match fs::read_to_string(self.folder.join(START_OFFSET)) {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn keep_start_offset(&mut self, offset: i64) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        write_whole(&self.folder.join(START_OFFSET), |file| {
            io::Write::write_all(file, format!("{offset}\n").as_bytes())
        })
    }
}

/// Writes a file so that after a crash there is the old one or the new one, whole.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = (|| {
        let mut file = File::create(&new)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn stopped() -> io::Error {
    io::Error::other("the broker has stopped")
}

struct FileSegment {
    path: PathBuf,
    size: u64,
    /// Open only while it is appended to: a broker may have many segments.
    file: Option<File>,
    /// A failed append could not be undone: nothing may be added after its remains.
    damaged: bool,
    closed: Arc<AtomicBool>,
}

impl FileSegment {
    fn open(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            self.file = Some(options.open(&self.path)?);
        }
        self.file
            .as_ref()
            .ok_or_else(|| io::Error::other("no file"))
    }
}

impl SegmentBytes for FileSegment {
    fn size(&self) -> u64 {
        self.size
    }

    fn append(&mut self, batch: Bytes) -> io::Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(stopped());
        }
        if self.damaged {
            return Err(io::Error::other(
                "an earlier failure left the segment with a torn end; restart the broker to cut it off",
            ));
        }
        let size = self.size;
        let file = self.open()?;
        if let Err(error) = file.write_all_at(&batch, size) {
            // What was there stays as it was.
            let undone = file.set_len(size);
            self.damaged = undone.is_err();
            return Err(io::Error::new(
                error.kind(),
                format!("{}: {error}", self.path.display()),
            ));
        }
        self.size += batch.len() as u64;
        Ok(())
    }

    fn read(&self, position: u64, length: usize) -> io::Result<Bytes> {
        let length = length.min(self.size.saturating_sub(position) as usize);
        if length == 0 {
            return Ok(Bytes::new());
        }
        let mut bytes = vec![0; length];
        match &self.file {
            Some(file) => file.read_exact_at(&mut bytes, position)?,
            None => File::open(&self.path)?.read_exact_at(&mut bytes, position)?,
        }
        Ok(bytes.into())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.open()?.set_len(size)?;
        self.size = size;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        match &self.file {
            Some(file) => file.sync_data(),
            None => Ok(()),
        }
    }

    fn seal(&mut self) -> io::Result<()> {
        self.sync()?;
        self.file = None;
        Ok(())
    }

    fn remove(&mut self) -> io::Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(stopped());
        }
        self.file = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
