//! The one way in and out over the network: HTTPS with mutual TLS, the caller's identity from its certificate, and the PKI that issues it.
