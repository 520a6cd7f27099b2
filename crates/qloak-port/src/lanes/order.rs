//! Frames of several lanes in the order in which they were sent.
//!
//! ```text
//!   lane 0   1     4   5          7            the order:  1 2 3 4 5 . 7
//!   lane 1     2 3          (6 is lost)  8                          \ 7 waits until each lane
//!                                                                     has brought one behind 6
//! ```
//!
//! Each lane keeps the order of its frames, so a number that is missing is lost as soon as every lane
//! has brought a greater one; else when the first frame behind it has waited for as long as lanes may
//! differ. A frame that comes later than that is handed on at once: nothing is lost here, and what is too late
//! the replay window refuses. Numbers are read before anyone has verified them: a forged or damaged one can spoil
//! the order for a moment, until so many frames were late in a row that it is clear who is wrong.

use crate::{
    Batch, Sizes,
    limits::{LANE_LATE_FRAMES, LANE_STREAMS_MAX, LANES_HELD_FRAMES, LANES_MAX},
};

/// Which order a frame belongs to, and its number there; none for a frame that has no order to keep.
pub type OrderOf = fn(&[u8]) -> Option<(u128, u32)>;

/// One order that is kept.
struct Stream {
    name: u128,
    /// The number that comes next; none until it is clear which is the first.
    next: Option<u32>,
    /// The last number that each lane brought.
    last: [Option<u32>; LANES_MAX],
    /// Frames in a row that were late.
    late: usize,
    used_ns: u64,
}

impl Stream {
    fn new(name: u128, used_ns: u64) -> Self {
        Self {
            name,
            next: None,
            last: [None; LANES_MAX],
            late: 0,
            used_ns,
        }
    }
}

/// A frame that waits for those before it.
struct Waiting {
    stream: usize,
    number: u32,
    since_ns: u64,
}

/// Puts frames back in order.
pub(super) struct Order {
    order_of: OrderOf,
    lanes: usize,
    hold_ns: u64,
    streams: Vec<Stream>,
    /// The frames that wait, and in the same places what is known of them.
    held: Batch,
    waiting: Vec<Waiting>,
    /// Frames in order, to be handed on.
    ready: Batch,
}

impl Order {
    pub(super) fn new(order_of: OrderOf, lanes: usize, hold_ns: u64, sizes: Sizes) -> Self {
        Self {
            order_of,
            lanes,
            hold_ns,
            streams: Vec::with_capacity(LANE_STREAMS_MAX),
            held: Batch::with_sizes(LANES_HELD_FRAMES, sizes),
            waiting: Vec::with_capacity(LANES_HELD_FRAMES),
            ready: Batch::with_sizes(2 * LANES_HELD_FRAMES, sizes),
        }
    }

    /// Whether frames are here that nobody has got yet.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.ready.is_empty()
    }

    /// Whether so many frames can be taken in, whatever their order.
    pub(super) fn has_room(&self, frames: usize) -> bool {
        self.ready.spare() >= frames + self.waiting.len()
    }

    /// A lane has brought frames.
    pub(super) fn take(&mut self, lane: usize, batch: &mut Batch, now_ns: u64) {
        for index in 0..batch.len() {
            let Some((name, number)) = (self.order_of)(batch.frames()[index].octets()) else {
                pass(batch, index, &mut self.ready);
                continue;
            };
            let stream = self.stream(name, number, now_ns);
            let state = &mut self.streams[stream];
            state.last[lane] = Some(number);
            match state.next.map(|next| distance(next, number)) {
                Some(0) => {
                    state.next = Some(number.wrapping_add(1));
                    state.late = 0;
                    pass(batch, index, &mut self.ready);
                }
                Some(..0) if state.late < LANE_LATE_FRAMES => {
                    state.late += 1;
                    pass(batch, index, &mut self.ready);
                }
                Some(..0) => {
                    state.next = Some(number.wrapping_add(1));
                    state.late = 0;
                    pass(batch, index, &mut self.ready);
                }
                _ => {
                    if self.held.is_full() {
                        self.skip_to(0);
                    }
                    pass(batch, index, &mut self.held);
                    self.waiting.push(Waiting {
                        stream,
                        number,
                        since_ns: now_ns,
                    });
                }
            }
            self.go_on(stream);
        }
        batch.clear();
    }

    /// Hands on what has waited for long enough. To be called when the lanes have nothing more at the moment: what
    /// is missing may lie there for as long as we did not look.
    pub(super) fn give_up(&mut self, now_ns: u64) {
        let hold_ns = self.hold_ns;
        let over = |waiting: &Waiting| now_ns.saturating_sub(waiting.since_ns) >= hold_ns;
        while let Some(index) = self.waiting.iter().position(over) {
            self.skip_to(index);
        }
    }

    /// Gives what is in order, as far as there is room; says how many.
    pub(super) fn give(&mut self, batch: &mut Batch) -> usize {
        let given = self.ready.len().min(batch.spare());
        for index in 0..given {
            pass(&mut self.ready, index, batch);
        }
        self.ready.drop_front(given);
        given
    }

    /// The place of a stream. One that goes back after a pause is a new one of the same name: all that was under
    /// way of the old one has come. A new one takes the place of the one that was not used for the longest time.
    fn stream(&mut self, name: u128, number: u32, now_ns: u64) -> usize {
        let new = Stream::new(name, now_ns);
        if let Some(index) = self.streams.iter().position(|stream| stream.name == name) {
            let stream = &mut self.streams[index];
            let goes_back = stream.next.is_some_and(|next| distance(next, number) < 0);
            let pause_ns = now_ns.saturating_sub(stream.used_ns);
            stream.used_ns = now_ns;
            if goes_back && pause_ns > 2 * self.hold_ns {
                self.begin(index, new);
            }
            return index;
        }
        if self.streams.len() < LANE_STREAMS_MAX {
            self.streams.push(new);
            return self.streams.len() - 1;
        }
        let used = self.streams.iter().enumerate();
        let index = used
            .min_by_key(|(_, stream)| stream.used_ns)
            .map_or(0, |(index, _)| index);
        self.begin(index, new);
        index
    }

    /// Puts a new stream in the place of an old one, all of which is handed on.
    fn begin(&mut self, index: usize, new: Stream) {
        while let Some(waiting) = self
            .waiting
            .iter()
            .position(|waiting| waiting.stream == index)
        {
            self.skip_to(waiting);
        }
        self.streams[index] = new;
    }

    /// Hands on what follows without a gap, and beyond a gap that nothing can fill any more.
    fn go_on(&mut self, stream: usize) {
        loop {
            let Some(first) = self.first(stream) else {
                return;
            };
            let state = &self.streams[stream];
            let number = self.waiting[first].number;
            let mut lanes = state.last[..self.lanes].iter();
            let may_go = match state.next {
                Some(next) if next == number => true,
                Some(next) => lanes.all(|last| last.is_some_and(|last| distance(next, last) > 0)),
                None => lanes.all(Option::is_some),
            };
            if !may_go {
                return;
            }
            self.release(first);
        }
    }

    /// Which of the waiting frames of a stream comes first.
    fn first(&self, stream: usize) -> Option<usize> {
        let of_stream = |(_, waiting): &(usize, &Waiting)| waiting.stream == stream;
        let mut waiting = self.waiting.iter().enumerate().filter(of_stream);
        let (mut first, mut number) = waiting
            .next()
            .map(|(index, waiting)| (index, waiting.number))?;
        for (index, waiting) in waiting {
            if distance(number, waiting.number) < 0 {
                (first, number) = (index, waiting.number);
            }
        }
        Some(first)
    }

    /// Hands on a waiting frame, all of its stream that come before it, and what follows without a gap.
    fn skip_to(&mut self, index: usize) {
        let Some(&Waiting { stream, number, .. }) = self.waiting.get(index) else {
            return;
        };
        while let Some(first) = self.first(stream) {
            let next = self.waiting[first].number;
            if distance(number, next) > 0 && self.streams[stream].next != Some(next) {
                return;
            }
            self.release(first);
        }
    }

    /// A waiting frame goes on, and its stream behind it.
    fn release(&mut self, index: usize) {
        let Waiting { stream, number, .. } = self.waiting.swap_remove(index);
        self.streams[stream].next = Some(number.wrapping_add(1));
        pass(&mut self.held, index, &mut self.ready);
        let last = self.held.len() - 1;
        self.held.frames_mut().swap(index, last);
        self.held.truncate(last);
    }
}

/// How far it is from one number to another, around the end of their range.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

/// Moves a frame to the end of another batch, which has room for it.
fn pass(from: &mut Batch, index: usize, to: &mut Batch) {
    let passed = from.give(index, to);
    debug_assert!(passed, "a batch is too small");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        headroom: 0,
        octets_max: 64,
        tailroom: 0,
    };
    const HOLD_NS: u64 = 1000;

    /// Name and number stand at the beginning of a frame; a name of 0 has no order.
    fn order_of(frame: &[u8]) -> Option<(u128, u32)> {
        let number = u32::from_be_bytes(*frame[1..].first_chunk()?);
        (frame[0] > 0).then_some((u128::from(frame[0]), number))
    }

    struct Test {
        order: Order,
        now_ns: u64,
    }

    impl Test {
        fn new(lanes: usize) -> Self {
            Self {
                order: Order::new(order_of, lanes, HOLD_NS, SIZES),
                now_ns: 0,
            }
        }

        /// A lane brings numbers of a stream.
        fn bring(&mut self, lane: usize, name: u8, numbers: &[u32]) {
            let mut batch = Batch::with_sizes(64, SIZES);
            for number in numbers {
                let mut frame = vec![name];
                frame.extend(number.to_be_bytes());
                assert!(batch.push(&frame));
            }
            self.order.take(lane, &mut batch, self.now_ns);
            assert!(batch.is_empty());
        }

        fn get(&mut self) -> Vec<u32> {
            let mut batch = Batch::with_sizes(64, SIZES);
            let mut got = Vec::new();
            self.order.give_up(self.now_ns);
            while self.order.give(&mut batch) > 0 {
                let number = |frame: &crate::Frame| {
                    u32::from_be_bytes(*frame.octets()[1..].first_chunk().unwrap())
                };
                got.extend(batch.frames().iter().map(number));
                batch.clear();
            }
            got
        }
    }

    #[test]
    fn frames_come_out_in_the_order_in_which_they_were_sent() {
        let mut test = Test::new(2);
        test.bring(1, 1, &[3, 4]);
        assert_eq!(
            test.get(),
            [],
            "whether there is one before it, only lane 0 knows"
        );
        test.bring(0, 1, &[1, 2, 5]);
        assert_eq!(test.get(), [1, 2, 3, 4, 5]);
        test.bring(0, 1, &[6]);
        assert_eq!(test.get(), [6], "in order they wait for nothing");
        assert!(test.order.is_empty());
    }

    #[test]
    fn what_every_lane_has_passed_is_lost_and_waited_for_no_longer() {
        let mut test = Test::new(2);
        test.bring(0, 1, &[1]);
        test.bring(1, 1, &[2]);
        test.bring(0, 1, &[4]);
        assert_eq!(test.get(), [1, 2]);
        test.bring(1, 1, &[6]);
        assert_eq!(test.get(), [4], "3 is lost, 5 may still come on lane 0");
        test.bring(0, 1, &[5]);
        assert_eq!(test.get(), [5, 6]);
    }

    #[test]
    fn a_gap_is_waited_for_no_longer_than_lanes_may_differ() {
        let mut test = Test::new(3);
        test.bring(0, 1, &[10]);
        assert_eq!(test.get(), []);
        test.now_ns = HOLD_NS;
        assert_eq!(test.get(), [10]);
        test.bring(1, 1, &[12, 14]);
        test.now_ns += HOLD_NS - 1;
        assert_eq!(test.get(), []);
        test.bring(1, 1, &[15]);
        test.now_ns += 1;
        assert_eq!(test.get(), [12, 14, 15]);
        test.bring(2, 1, &[11, 13]);
        assert_eq!(test.get(), [11, 13], "what is late is not lost here");
    }

    #[test]
    fn streams_do_not_wait_for_each_other_and_agreement_waits_for_none() {
        let mut test = Test::new(2);
        test.bring(0, 1, &[1, 2]);
        test.bring(0, 0, &[77]);
        test.bring(1, 2, &[7]);
        assert_eq!(test.get(), [77]);
        test.bring(0, 2, &[6]);
        assert_eq!(test.get(), [6, 7]);
        test.bring(1, 1, &[3]);
        assert_eq!(test.get(), [1, 2, 3]);
    }

    #[test]
    fn a_stream_that_begins_again_is_put_in_order_too() {
        let mut test = Test::new(2);
        test.bring(0, 1, &[100, 102]);
        test.bring(1, 1, &[101, 103]);
        assert_eq!(test.get(), [100, 101, 102, 103]);
        test.now_ns = 3 * HOLD_NS;
        test.bring(1, 1, &[2]);
        assert_eq!(test.get(), []);
        test.bring(0, 1, &[1, 3]);
        assert_eq!(test.get(), [1, 2, 3]);
        test.now_ns = 6 * HOLD_NS;
        test.bring(0, 1, &[4]);
        assert_eq!(
            test.get(),
            [4],
            "one that goes on after a pause does not wait"
        );
    }

    /// As one that was forged, or whose number was damaged on the way, would do it.
    #[test]
    fn a_number_that_is_far_too_great_spoils_the_order_for_a_moment() {
        let mut test = Test::new(2);
        test.bring(0, 1, &[1]);
        test.bring(1, 1, &[2, 1_000_000]);
        test.now_ns = HOLD_NS;
        assert_eq!(test.get(), [1, 2, 1_000_000]);
        let mut next = 3;
        let mut bring = |test: &mut Test| {
            test.bring(1, 1, &[next + 1]);
            test.bring(0, 1, &[next]);
            next += 2;
            test.get()
        };
        assert_eq!(bring(&mut test), [4, 3], "late, and handed on as it comes");
        for _ in 0..LANE_LATE_FRAMES {
            bring(&mut test);
        }
        let got = bring(&mut test);
        assert!(got.len() == 2 && got[0] < got[1], "{got:?}");
    }

    #[test]
    fn numbers_go_around_and_too_many_are_let_through() {
        let mut test = Test::new(1);
        test.bring(0, 1, &[u32::MAX - 1, u32::MAX, 0, 1]);
        assert_eq!(test.get(), [u32::MAX - 1, u32::MAX, 0, 1]);
        let mut test = Test::new(2);
        test.bring(0, 1, &[0]);
        test.bring(1, 1, &[1]);
        let numbers: Vec<_> = (0..LANES_HELD_FRAMES as u32 + 100)
            .map(|number| 10 + number)
            .collect();
        for some in numbers.chunks(64) {
            test.bring(0, 1, some);
        }
        let got = test.get();
        assert_eq!(got[..2], [0, 1]);
        assert_eq!(
            got[2..],
            numbers,
            "the lost ones were given up when there was no room"
        );
    }

    /// Any lanes, losses and delays: what comes out is what came in, each once, and in order unless a lane was
    /// slower than allowed.
    #[test]
    fn whatever_the_lanes_do_nothing_is_lost_or_doubled() {
        use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
        for seed in 0..200 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let lanes = random.random_range(1..=8);
            let mut test = Test::new(lanes);
            let mut queues = vec![std::collections::VecDeque::new(); lanes];
            let (mut sent, mut got, mut number) = (Vec::new(), Vec::new(), u32::MAX - 300);
            for step in 0..1000_u64 {
                test.now_ns = step;
                let lane = random.random_range(0..lanes);
                if step < 900 && random.random_range(0..10) > 0 {
                    queues[lane].push_back(number);
                    sent.push(number);
                }
                number = number.wrapping_add(1);
                for (lane, queue) in queues.iter_mut().enumerate() {
                    if !queue.is_empty() && (step >= 900 || random.random_range(0..3) > 0) {
                        let some: Vec<_> = queue.drain(..).collect();
                        test.bring(lane, 1, &some);
                    }
                }
                got.extend(test.get());
            }
            test.now_ns = 10_000;
            got.extend(test.get());
            assert!(got == sent, "seed {seed}, {lanes} lanes");
            assert!(test.order.is_empty());
        }
    }
}
