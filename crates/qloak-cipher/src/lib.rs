//! Bytes in, bytes out: every cipher suite. Knows no frame, file or clock.
