//! The QKD link emulator.
