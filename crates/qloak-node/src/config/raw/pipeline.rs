//! The checks of the table `[pipeline]`: cores that the process may use, and enough of them.

use serde::Deserialize;
use toml::Spanned;

use super::{check::ranged, kernel::RawDataplane};
use crate::{
    config::{ConfigError, Pipeline},
    limits,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPipeline {
    threads: Option<Spanned<u8>>,
    cores: Option<Spanned<Vec<usize>>>,
    #[serde(default)]
    busy_poll: bool,
}

impl RawPipeline {
    /// `usable` are the cores that this process may use; none when the kernel does not say.
    pub(super) fn check(
        table: Option<Spanned<Self>>,
        text: &str,
        dataplane: RawDataplane,
        usable: Option<&[usize]>,
    ) -> Result<Pipeline, ConfigError> {
        let Some(table) = table else {
            return Ok(Pipeline::default());
        };
        if dataplane == RawDataplane::KernelMacsec {
            let what = "is for the node's own threads: with dataplane = \"kernel-macsec\" the kernel carries the frames, on the cores that it likes";
            return Err(ConfigError::at(text, table.span(), "pipeline", what));
        }
        let Self {
            threads,
            cores,
            busy_poll,
        } = table.into_inner();
        let default = Pipeline::default().threads;
        let threads = ranged(
            text,
            threads,
            default,
            limits::PIPELINE_THREADS,
            "pipeline.threads",
        )?;
        let cores = match cores {
            Some(cores) => checked_cores(text, cores, threads, busy_poll, usable)?,
            None => Vec::new(),
        };
        Ok(Pipeline {
            threads,
            cores,
            busy_poll,
        })
    }
}

fn checked_cores(
    text: &str,
    cores: Spanned<Vec<usize>>,
    threads: u8,
    busy_poll: bool,
    usable: Option<&[usize]>,
) -> Result<Vec<usize>, ConfigError> {
    let at = |what: String| Err(ConfigError::at(text, cores.span(), "pipeline.cores", what));
    let given = cores.get_ref();
    if given.is_empty() || given.len() > usize::from(threads) {
        let (named, allowed) = (given.len(), if threads == 1 { "1" } else { "1 or 2" });
        return at(format!(
            "{named} are given for pipeline.threads = {threads}, {allowed} can be: one for each thread or one for all"
        ));
    }
    if let [first, second] = given[..]
        && first == second
    {
        return at(format!(
            "core {first} is named twice; name it once if both threads are to share it"
        ));
    }
    if let Some(usable) = usable
        && let Some(core) = given.iter().find(|core| !usable.contains(core))
    {
        return at(format!(
            "core {core} is none that this process may use, which are {}; taskset, a container or systemd's AllowedCPUs may say so",
            ranges(usable)
        ));
    }
    if busy_poll && given.len() < usize::from(threads) {
        return at("with pipeline.busy_poll two threads that never sleep would share a core: name two cores, or pipeline.threads = 1".into());
    }
    Ok(cores.into_inner())
}

/// Ascending numbers as the kernel writes them: `0-3, 8`.
fn ranges(numbers: &[usize]) -> String {
    let follows = |before: &usize, after: &usize| *after == before + 1;
    let range = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [] | [_] => run.iter().map(usize::to_string).collect(),
    };
    let runs: Vec<String> = numbers.chunk_by(follows).map(range).collect();
    runs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_told_as_the_kernel_tells_them() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3, 8, 10-11");
        assert_eq!(ranges(&[5]), "5");
    }
}
