//! What a configuration says of the pipeline's own threads: how many, on which cores, whether they sleep.

/// The threads that carry the frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// 2: one each way. 1: the same thread runs both ways, turn by turn.
    pub threads: u8,
    /// The core of each thread, outbound first; one for both when one is named; the kernel's choice when none.
    pub cores: Vec<usize>,
    /// The threads never sleep.
    pub busy_poll: bool,
}

impl Pipeline {
    /// The core of a thread, counted from 0.
    pub(crate) fn core(&self, thread: usize) -> Option<usize> {
        self.cores
            .get(thread)
            .or_else(|| self.cores.first())
            .copied()
    }
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            threads: 2,
            cores: Vec::new(),
            busy_poll: false,
        }
    }
}
