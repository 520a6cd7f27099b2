//! Frames of a node, recorded there and handed through as they come.
//!
//! The controller keeps none of them. Whether a side may be recorded at all is said by the node's own configuration;
//! who may ask is said here, as for every command, and the audit log has two lines: that it began, and how it ended.

use axum::{
    Extension,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use qloak_api::{CAPTURE_MEDIA_TYPE, CaptureOrder, Problem, SaeId, Side};
use qloak_door::{Caller, Flow};
use tokio::sync::mpsc;

use super::{
    Shared,
    reply::{Body, Name, Note, Refusal},
};
use crate::limits;

/// Records frames of one side of a node, as pcapng, until a bound of the order is reached or the caller hangs up.
#[utoipa::path(
    post, path = "/v1/nodes/{name}/capture", tag = "commands", request_body = CaptureOrder,
    params(("name" = String, Path, description = "name of the node")),
    responses(
        (status = 200, content_type = "application/x-pcapng", description = "frames as they pass; statistics say how many are missing"),
        (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "the node's own configuration does not allow it, or another capture is running there"),
        (status = 502, body = Problem)
    )
)]
pub(super) async fn capture(
    State(controller): State<Shared>,
    Extension(caller): Extension<Caller>,
    Name(name): Name<SaeId>,
    Body(order): Body<CaptureOrder>,
) -> Result<Response, Refusal> {
    let flow = controller.capture(&name, &order).await?;
    let (queue, answer) = mpsc::channel(limits::CAPTURE_PIECES_WAITING);
    tokio::spawn(hand_through(controller, caller, name.clone(), flow, queue));
    let what = match (order.side, order.port) {
        (Side::Line, _) => "the line side".to_owned(),
        (Side::Client, None) => "the client side, in the clear".to_owned(),
        (Side::Client, Some(port)) => format!("client port {port}, in the clear"),
    };
    let note = format!(
        "capture of {what} of {name} begun: {} s, {} frames of {} octets at most",
        order.seconds, order.frames, order.snap_octets
    );
    let kind = [(header::CONTENT_TYPE, CAPTURE_MEDIA_TYPE)];
    let mut response = (kind, qloak_door::flowing(answer)).into_response();
    response.extensions_mut().insert(Note(note));
    Ok(response)
}

type Piece = std::io::Result<axum::body::Bytes>;

async fn hand_through(
    controller: Shared,
    caller: Caller,
    node: SaeId,
    mut flow: Flow,
    queue: mpsc::Sender<Piece>,
) {
    let mut closing = controller.closing();
    let mut octets = 0;
    let how = loop {
        let piece = tokio::select! {
            piece = flow.next() => piece,
            () = queue.closed() => break "the caller ended it".to_owned(),
            _ = closing.wait_for(|closing| *closing) => break "the controller stopped".to_owned(),
        };
        match piece {
            Ok(Some(piece)) => {
                octets += piece.len();
                if queue.send(Ok(piece)).await.is_err() {
                    break "the caller ended it".to_owned();
                }
            }
            Ok(None) => break "complete".to_owned(),
            Err(error) => {
                let how = format!("cut: {error}");
                let _ = queue.send(Err(std::io::Error::other(error))).await;
                break how;
            }
        }
    };
    let outcome = format!("{how}; {octets} octets of pcapng were handed through");
    let action = format!("end of the capture of {node}");
    let noted = controller.store(move |store| store.audit_note(&caller.name, &action, &outcome));
    // What the database says is in the log already.
    let _ = noted.await;
}
