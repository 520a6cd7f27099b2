//! The encryptor: pipeline, key handler, management.
