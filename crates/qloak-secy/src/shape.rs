//! When line frames leave. Outbound, between mux and protect.
//!
//! A line frame leaves when it is full, or when its first record has waited for as long as the channel
//! bears: not at all unless [`Outbound::set_wait`] was told otherwise. And only while client frames come
//! faster than that: one that comes alone would wait in vain.
//!
//! ```text
//!   begun   [ full ] [ full ] [ open ]            leaves now:  full, full
//!                                ^ youngest       leaves later, with what comes until then
//! ```
//!
//! A line frame that begins with a piece of a frame never waits: all pieces of a frame leave in one
//! batch, under one SA.
//!
//! A channel of one size ([`Outbound::set_one_size`]) hides how much it carries: all its line frames are as
//! long as the line allows, and [`Outbound::fill`] makes those that carry nothing. It sends them at one rate,
//! which is its caller's part:
//!
//! ```text
//!   records            [ full ] [ full ] [ zeros ] [ zeros ] [ rec. 0 ] [ zeros ]
//!   seen on the line   [      ] [      ] [       ] [       ] [        ] [       ]
//! ```

use qloak_api::ChannelNumber;

use crate::{ChannelRef, LineFrames, Outbound, limits, mux};

impl Outbound {
    /// How many of the `begun` line frames of a channel are to be protected and transmitted now, from
    /// the front. The one that stays, if one does, is the last and takes more records; it leaves at the
    /// first call with `now_ns` at [`Self::leaves_at`] or later. `u64::MAX` lets everything leave.
    pub fn shape(&mut self, channel: ChannelRef, begun: usize, now_ns: u64) -> usize {
        let Some(state) = self.channels.get_mut(usize::from(channel.index)) else {
            return begun;
        };
        if begun > 0
            && state
                .mux
                .leaves_at()
                .is_some_and(|leaves_at| now_ns < leaves_at)
        {
            return begun - 1;
        }
        state.mux.close();
        begun
    }

    /// When the open line frame of a channel has waited for long enough, in nanoseconds; `None` when no
    /// frame waits.
    pub fn leaves_at(&self, channel: ChannelRef) -> Option<u64> {
        self.channels
            .get(usize::from(channel.index))?
            .mux
            .leaves_at()
    }

    /// Makes every line frame of an aggregated channel as long as the line allows, or stops to. False when
    /// there is no such channel.
    pub fn set_one_size(&mut self, number: ChannelNumber, one_size: bool) -> bool {
        let state = self.state_mut(number);
        state.map(|state| state.mux.one_size = one_size).is_some()
    }

    /// Closes the line frame that takes records and fills it to full length, and begins `empty` line frames
    /// more that carry none. Fewer, when the line batch has no more, and none while no SA is allowed to encode.
    pub fn fill<L: LineFrames + ?Sized>(
        &mut self,
        channel: ChannelRef,
        line: &mut L,
        empty: usize,
        now_ns: u64,
    ) {
        let octets = self.line.mux_octets();
        let Some(state) = self.channels.get_mut(usize::from(channel.index)) else {
            return;
        };
        let header = self.line.mux_header(state.peer);
        state.mux.close();
        if let Some(mut last) = line.last() {
            mux::fill_up(&mut last, octets);
        }
        if !state.may_encode(now_ns) {
            return;
        }
        for _ in 0..empty.min(line.free()) {
            if !mux::begin(line, &header, octets) {
                return;
            }
            if let Some(mut last) = line.last() {
                mux::fill_up(&mut last, octets);
            }
            state.counters.fill_frames += 1;
        }
    }

    /// How long a line frame of an aggregated channel may wait for more records, in nanoseconds; 0, the
    /// value at start, is not at all. More than [`limits::WAIT_NS_MAX`] is as much as that. False when there
    /// is no such channel.
    pub fn set_wait(&mut self, number: ChannelNumber, wait_ns: u64) -> bool {
        let state = self.state_mut(number);
        state
            .map(|state| state.mux.wait_ns = wait_ns.min(limits::WAIT_NS_MAX))
            .is_some()
    }
}
