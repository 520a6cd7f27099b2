//! What happens to a frame, in order, both ways. No I/O, clock, randomness or async.
