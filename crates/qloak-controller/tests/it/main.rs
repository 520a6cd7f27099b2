//! The controller as a whole: real doors with mutual TLS on 127.0.0.1, nodes that are told what to say.

mod bad_input;
mod capture;
mod dashboard;
mod lab;
mod north;
mod openapi;
mod steering;
