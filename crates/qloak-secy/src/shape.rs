//! When line frames leave. Outbound, between mux and protect.
//!
//! At once: a line frame that is begun leaves with the batch in which it was begun, full or not, so
//! that no frame waits for another. (Line frames of one size at one rate, which hide sizes and times,
//! decide here too.)

use crate::{ChannelRef, Outbound};

impl Outbound {
    /// How many of the `begun` line frames of a channel are to be protected and transmitted now, from
    /// the front. The others stay in the line batch. Closes what leaves: the next client frame begins
    /// a new line frame.
    pub fn shape(&mut self, channel: ChannelRef, begun: usize) -> usize {
        if let Some(state) = self.channels.get_mut(usize::from(channel.index)) {
            state.mux.close();
        }
        begun
    }
}
