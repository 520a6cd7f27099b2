//! Changes of the overview as server-sent events (WHATWG HTML, 9.2): each event is the whole overview,
//! so that a listener that missed one has missed nothing.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    extract::State,
    response::sse::{Event, Sse},
};
use futures_core::Stream;
use qloak_api::{Problem, control::Overview};
use tokio::sync::mpsc;

use super::{Shared, reply::Refusal};
use crate::limits;

/// The overview now and after each change, as server-sent events named `overview`.
#[utoipa::path(
    get, path = "/v1/events", tag = "overview",
    responses(
        (status = 200, body = Overview, content_type = "text/event-stream", description = "events named `overview`, data an Overview"),
        (status = 503, body = Problem, description = "too many listeners")
    )
)]
pub(super) async fn events(State(controller): State<Shared>) -> Result<Sse<Events>, Refusal> {
    let Ok(place) = controller.listeners.clone().try_acquire_owned() else {
        let detail = format!(
            "{} listeners are served at once",
            limits::EVENT_LISTENERS_MAX
        );
        return Err(Problem::new(503, "too many listeners", detail).into());
    };
    // One event of room: a listener that reads slowly gets fewer events and never old ones.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let _place = place;
        let (mut changes, mut closing) = (controller.changes(), controller.closing());
        loop {
            let Ok(room) = sender.reserve().await else {
                return;
            };
            changes.mark_unchanged();
            let overview = controller.picture().overview();
            let Ok(event) = Event::default().event("overview").json_data(&overview) else {
                return;
            };
            room.send(event);
            let next = async {
                tokio::time::sleep(limits::EVENT_INTERVAL).await;
                // Silence is not endless: the same picture again says that we live.
                let _ = tokio::time::timeout(limits::EVENT_SILENCE_MAX, changes.changed()).await;
            };
            tokio::select! {
                () = next => {}
                _ = closing.wait_for(|closing| *closing) => return,
                () = sender.closed() => return,
            }
        }
    });
    Ok(Sse::new(Events { receiver }))
}

/// Events on their way to one listener.
pub(super) struct Events {
    receiver: mpsc::Receiver<Event>,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|event| event.map(Ok))
    }
}
