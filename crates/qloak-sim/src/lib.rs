//! Whole networks in one process from one seed. Never shipped.
