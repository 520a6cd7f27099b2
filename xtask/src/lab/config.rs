//! The lab's configuration files, written as an operator would write them.
