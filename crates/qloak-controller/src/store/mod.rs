//! What must outlive a restart: records, intents, the libraries as last seen, the audit log.
//!
//! One SQLite file in WAL mode with synchronous=FULL: what a caller was told has reached the disk.
//! Calls block (an fsync each), so the program makes them on threads for blocking work. The audit log
//! is append only, in the database itself: triggers refuse to change or delete a line of it.

mod audit;
mod records;
mod schema;

use std::{
    fs::{File, TryLockError},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;

pub use audit::OpenEntry;
pub use records::Kept;

/// Why the database failed. The controller's machine is at fault.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite says so.
    #[error("{0}; is the disk full or the file damaged?")]
    Sqlite(#[from] rusqlite::Error),
    /// A row does not say what it should.
    #[error("{0}; the file was written by another version or is damaged")]
    Damaged(String),
    /// Another controller works on it.
    #[error("another controller uses it; end that one, or give this one its own [store] file")]
    InUse,
    /// The file beside the database that says who uses it cannot be made.
    #[error("{0}; is the folder there, and may this program write to it?")]
    Lock(#[from] std::io::Error),
    /// The file belongs to a newer program.
    #[error("it was written by a newer version of this program (schema {found}, known is {known})")]
    Newer {
        /// The version in the file.
        found: i64,
        /// The version this program writes.
        known: i64,
    },
}

/// Makes sure that no other process steers from the same file: two would each undo what the other
/// does. Held for as long as the answer lives; the kernel lets go of it when a process dies.
///
/// # Errors
/// Another process holds it, or the lock file (`<file>.lock`) cannot be made.
pub fn claim(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(name)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The database. Cheap to clone; one writer at a time.
#[derive(Clone)]
pub struct Store {
    connection: Arc<Mutex<Connection>>,
}

impl Store {
    /// Opens the file, makes it if it is missing, and brings its schema up to date.
    ///
    /// # Errors
    /// The file cannot be opened, is no database, or was written by a newer program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut connection = Connection::open(path)?;
        schema::prepare(&mut connection)?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
        })
    }

    /// One transaction: all of `work` or nothing of it.
    fn transaction<T>(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // A thread that panicked inside a transaction has rolled it back: the connection is sound.
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }
}

impl From<StoreError> for qloak_api::Problem {
    fn from(error: StoreError) -> Self {
        Self::internal(format!("the controller's database: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.sqlite");
        std::fs::write(
            &path,
            "a letter to a friend, long enough to be no database header".repeat(20),
        )
        .expect("written");
        let error = Store::open(&path).err().expect("refused");
        assert!(error.to_string().contains("not a database"), "{error}");
        assert!(Store::open(&folder.path().join("no/such/folder/x.sqlite")).is_err());
    }

    #[test]
    fn one_controller_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.sqlite");
        let first = claim(&path).expect("free");
        assert!(matches!(claim(&path), Err(StoreError::InUse)));
        drop(first);
        claim(&path).expect("free again");
        assert!(matches!(
            claim(&folder.path().join("no/x")),
            Err(StoreError::Lock(_))
        ));
    }

    #[test]
    fn a_newer_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.sqlite");
        drop(Store::open(&path).expect("made"));
        let connection = Connection::open(&path).expect("opened");
        connection
            .pragma_update(None, "user_version", 1000)
            .expect("set");
        drop(connection);
        let error = Store::open(&path).err().expect("refused");
        assert!(
            matches!(error, StoreError::Newer { found: 1000, .. }),
            "{error}"
        );
    }
}
