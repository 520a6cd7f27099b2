//! `qloak man`.

use std::{fs, path::PathBuf};

use clap::{Args, CommandFactory};

use crate::{
    cli::Cli,
    error::{Error, Outcome},
    output, words,
};

/// Write the man pages, one for each command
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder to write to; made if missing
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(&self) -> Result<Outcome, Error> {
        fs::create_dir_all(&self.folder).map_err(|error| Error::file(&self.folder, error))?;
        clap_mangen::generate_to(Cli::command(), &self.folder)
            .map_err(|error| Error::file(&self.folder, error))?;
        let pages = fs::read_dir(&self.folder)
            .map_err(|error| Error::file(&self.folder, error))?
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("qloak"))
            .count() as u64;
        let folder = self.folder.display();
        output::text_line(&format!(
            "{} in {folder}; read the first with: man {folder}/qloak.1",
            words::plural(pages, "page")
        ))?;
        Ok(Outcome::Well)
    }
}
