//! What may stand on the command line. Help, man pages and completions come from here.

use clap::{Args, Parser, builder::styling::AnsiColor, builder::styling::Styles};

use crate::command::Command;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  something failed in a way not named below
  2  the command line is not valid
  3  a file is at fault: configuration, certificate, key, capture
  4  the other side cannot be reached, or is not trusted, or does not trust us
  5  the other side refuses: no such thing, not allowed, not now
  6  done, but not all is well: a suite failed its self-test, a frame was not valid,
     a change was not seen in time

The connection may also be set in $XDG_CONFIG_HOME/qloak/cli.toml:
  pki = \"/etc/qloak/pki\"
  as = \"admin\"
  controller = \"https://192.0.2.10:9443\"";

/// A programmable network line encryptor.
#[derive(Debug, Parser)]
#[command(
    name = "qloak",
    version,
    styles = STYLES,
    after_help = AFTER_HELP,
    max_term_width = 100,
    arg_required_else_help = true,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How results and logs are shown.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Print results as JSON, errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print logs as JSON, one object a line; RUST_LOG chooses what is logged
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
