//! What a key is: its container, its life, its derivations and its delivery format. No I/O.
