//! Channels of a link: what is wanted of each, and the two commands for one.

use axum::{Json, extract::State, http::StatusCode};
use qloak_api::{
    Problem,
    control::{ChannelView, Intent},
};

use super::{
    Shared,
    reply::{Body, ChannelPath, Done, Name, Noted, Refusal},
};

/// All channels of a link: wanted and seen.
#[utoipa::path(
    get, path = "/v1/links/{link}/channels", tag = "channels",
    params(("link" = String, Path, description = "name of the link")),
    responses((status = 200, body = [ChannelView]), (status = 404, body = Problem))
)]
pub(super) async fn channels(
    State(controller): State<Shared>,
    Name(link): Name<String>,
) -> Result<Json<Vec<ChannelView>>, Refusal> {
    let picture = controller.picture();
    let link = picture.topology.link(&link).map_err(Problem::from)?;
    Ok(Json(picture.channels(link)))
}

/// What is wanted of a channel.
#[utoipa::path(
    get, path = "/v1/links/{link}/channels/{number}/intent", tag = "channels",
    params(("link" = String, Path, description = "name of the link"), ("number" = u16, Path, description = "number of the channel")),
    responses((status = 200, body = Intent), (status = 404, body = Problem, description = "no such channel, or nothing was ever asked of it"))
)]
pub(super) async fn intent(
    State(controller): State<Shared>,
    Name((link, channel)): ChannelPath,
) -> Result<Json<Intent>, Refusal> {
    let (_, key) = controller.find_channel(&link, channel)?;
    match controller.picture().intents.get(&key) {
        Some(standing) => Ok(Json(standing.intent.clone())),
        None => Err(Problem::not_found(format!(
            "nothing was asked of channel {channel} of link {link}; it is what the nodes' configurations say"
        ))
        .into()),
    }
}

/// Says what a channel shall be. Both ends are told at once; if one refuses, the other is put back.
#[utoipa::path(
    put, path = "/v1/links/{link}/channels/{number}/intent", tag = "channels", request_body = Intent,
    params(("link" = String, Path, description = "name of the link"), ("number" = u16, Path, description = "number of the channel")),
    responses(
        (status = 200, body = ChannelView, description = "both ends took it"),
        (status = 202, body = ChannelView, description = "it stands; an end that cannot be reached is told when it answers"),
        (status = 400, body = Problem, description = "no such suite, or limits that no node takes; names what is allowed"),
        (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "not offered at both ends, or an end refused and the other was put back")
    )
)]
pub(super) async fn set_intent(
    State(controller): State<Shared>,
    Name((link, channel)): ChannelPath,
    Body(intent): Body<Intent>,
) -> Result<Noted<ChannelView>, Refusal> {
    let changed = controller.set_intent(&link, channel, intent).await?;
    let status = if changed.complete {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok(Noted(status, changed.view, changed.note))
}

/// Starts a rekey at both ends.
#[utoipa::path(
    post, path = "/v1/links/{link}/channels/{number}/rekey", tag = "commands",
    params(("link" = String, Path, description = "name of the link"), ("number" = u16, Path, description = "number of the channel")),
    responses(
        (status = 200, body = Done), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 502, body = Problem)
    )
)]
pub(super) async fn rekey(
    State(controller): State<Shared>,
    Name((link, channel)): ChannelPath,
) -> Result<Noted<Done>, Refusal> {
    Ok(Noted::done(controller.rekey(&link, channel).await?))
}
