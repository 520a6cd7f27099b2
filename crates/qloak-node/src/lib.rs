//! The encryptor: pipeline, key handler, management.

pub mod key_handler;
