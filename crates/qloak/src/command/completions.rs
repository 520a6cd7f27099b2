//! `qloak completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{
    cli::Cli,
    error::{Error, Outcome},
    output,
};

/// Print completions for a shell
///
/// For bash: qloak completions bash > /etc/bash_completion.d/qloak
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<Outcome, Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "qloak", &mut script);
        output::text_line(String::from_utf8_lossy(&script).trim_end())?;
        Ok(Outcome::Well)
    }
}
