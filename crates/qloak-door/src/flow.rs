//! Answers that come bit by bit: octets as they are made, for as long as they are made.
//!
//! Both ends of it: [`Flow`] reads one, [`flowing`] makes one from a queue. The queue is bounded, so whoever makes the
//! octets notices a reader that is slow or gone, and the reader notices when they end in the middle.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use tokio::sync::mpsc;

use crate::{Client, DoorError};

/// An answer of which the head was read and whose body still comes.
#[derive(Debug)]
pub struct Flow {
    response: reqwest::Response,
    client: Client,
    url: String,
}

impl Flow {
    pub(crate) fn new(response: reqwest::Response, client: Client, url: String) -> Self {
        Self {
            response,
            client,
            url,
        }
    }

    /// The next octets; none at the end of the answer.
    ///
    /// # Errors
    /// `Broken` or `Timeout` when it ends in the middle.
    pub async fn next(&mut self) -> Result<Option<Bytes>, DoorError> {
        let next = self.response.chunk().await;
        next.map_err(|error| self.client.failed(&self.url, &error))
    }
}

/// What is put into the queue, as the body of an answer. It ends when the queue's other end is dropped; an error cuts
/// it, so that nobody takes what came for the whole.
pub fn flowing(queue: mpsc::Receiver<io::Result<Bytes>>) -> Body {
    Body::from_stream(Queue(queue))
}

struct Queue(mpsc::Receiver<io::Result<Bytes>>);

impl Stream for Queue {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
