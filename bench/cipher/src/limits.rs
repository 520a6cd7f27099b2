//! Every bound of this crate, and why.

/// Octets of AAD with each frame of an AEAD: two addresses and a SecTAG without SCI.
pub(crate) const AAD_OCTETS: usize = 20;

/// Frames below this many octets are measured in a ring of several batches, so that opening, which
/// needs the sealed frames put back before each round, is timed over thousands of cycles. Half of the
/// smallest nearest cache in use (32 KiB) with the sealed copy beside it.
pub(crate) const RING_OCTETS_MIN: usize = 16 * 1024;

/// Frames that one batch may have: the node's batch many times over.
pub(crate) const BATCH_FRAMES_MAX: usize = 1024;

/// One window of measuring. Far shorter than a scheduler's time slice, so that on a shared machine
/// most windows run undisturbed.
pub(crate) const WINDOW_NS: f64 = 250_000.0;

/// Windows of a figure: a full run and a quick one.
pub(crate) const WINDOWS: Windows = Windows {
    full: 61,
    quick: 15,
};

/// How many windows make a figure.
pub(crate) struct Windows {
    pub(crate) full: usize,
    pub(crate) quick: usize,
}

/// Slow ciphers on long batches fill a window many times over; they get at least these.
pub(crate) const WINDOWS_MIN: usize = 5;

/// After this long a figure has had its time, if it has its least windows.
pub(crate) const FIGURE_NS_MAX: f64 = 60e6;

/// Work that takes longer is timed by the thread's own time, whose look costs some hundred nanoseconds.
pub(crate) const LONG_NS_MIN: f64 = 100_000.0;

/// Additions of one look at the clock: some ten microseconds.
pub(crate) const CHAIN_ADDITIONS: u64 = 40_000;

/// Looks at the clock; the quickest is the undisturbed one.
pub(crate) const CHAIN_LOOKS: usize = 9;

/// On a core of our own half of a figure's windows lie within two or three hundredths.
pub(crate) const SPREAD_QUIET_MAX: f64 = 0.05;
