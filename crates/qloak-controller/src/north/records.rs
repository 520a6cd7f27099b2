//! Nodes, KMSs and links: list, add, remove; and what is handed through to a node.

use axum::{Json, extract::State, http::StatusCode};
use qloak_api::{
    Problem, SaeId,
    control::{KmsRecord, LinkRecord, NodeRecord},
    manage::KeyOperation,
};

use super::{
    Shared,
    reply::{Body, Done, Name, Noted, Refusal},
};

/// All nodes.
#[utoipa::path(get, path = "/v1/nodes", tag = "records", responses((status = 200, body = [NodeRecord])))]
pub(super) async fn nodes(State(controller): State<Shared>) -> Json<Vec<NodeRecord>> {
    Json(
        controller
            .picture()
            .topology
            .nodes
            .values()
            .cloned()
            .collect(),
    )
}

/// Adds a node.
#[utoipa::path(
    post, path = "/v1/nodes", tag = "records", request_body = NodeRecord,
    responses(
        (status = 201, body = NodeRecord),
        (status = 400, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn add_node(
    State(controller): State<Shared>,
    Body(record): Body<NodeRecord>,
) -> Result<Noted<NodeRecord>, Refusal> {
    let added = record.clone();
    controller
        .change_topology(|topology| topology.add_node(added))
        .await?;
    let note = format!("node {} at {} added", record.name, record.url);
    Ok(Noted(StatusCode::CREATED, record, note))
}

/// Removes a node that stands in no link. The node itself goes on as it is.
#[utoipa::path(
    delete, path = "/v1/nodes/{name}", tag = "records", params(("name" = String, Path, description = "name of the node")),
    responses(
        (status = 200, body = Done),
        (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn remove_node(
    State(controller): State<Shared>,
    Name(name): Name<SaeId>,
) -> Result<Noted<Done>, Refusal> {
    controller
        .change_topology(|topology| topology.remove_node(&name))
        .await?;
    Ok(Noted::done(format!("node {name} removed")))
}

/// Hands an operation to the key handler of a node. No key passes through the controller.
#[utoipa::path(
    post, path = "/v1/nodes/{name}/keys", tag = "commands", request_body = KeyOperation,
    params(("name" = String, Path, description = "name of the node")),
    responses(
        (status = 200, body = Done), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 502, body = Problem)
    )
)]
pub(super) async fn keys(
    State(controller): State<Shared>,
    Name(name): Name<SaeId>,
    Body(operation): Body<KeyOperation>,
) -> Result<Noted<Done>, Refusal> {
    let done = controller.keys(&name, &operation).await?;
    Ok(Noted::done(format!("{}: {done}", in_words(&operation))))
}

/// All KMSs.
#[utoipa::path(get, path = "/v1/kms", tag = "records", responses((status = 200, body = [KmsRecord])))]
pub(super) async fn kms(State(controller): State<Shared>) -> Json<Vec<KmsRecord>> {
    Json(
        controller
            .picture()
            .topology
            .kms
            .values()
            .cloned()
            .collect(),
    )
}

/// Adds a KMS to be watched.
#[utoipa::path(
    post, path = "/v1/kms", tag = "records", request_body = KmsRecord,
    responses(
        (status = 201, body = KmsRecord),
        (status = 400, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn add_kms(
    State(controller): State<Shared>,
    Body(record): Body<KmsRecord>,
) -> Result<Noted<KmsRecord>, Refusal> {
    let added = record.clone();
    controller
        .change_topology(|topology| topology.add_kms(added))
        .await?;
    let note = format!("KMS {} at {} added", record.kme_id, record.url);
    Ok(Noted(StatusCode::CREATED, record, note))
}

/// Removes a KMS from what is watched.
#[utoipa::path(
    delete, path = "/v1/kms/{kme_id}", tag = "records", params(("kme_id" = String, Path, description = "its KME ID")),
    responses((status = 200, body = Done), (status = 403, body = Problem), (status = 404, body = Problem))
)]
pub(super) async fn remove_kms(
    State(controller): State<Shared>,
    Name(kme_id): Name<String>,
) -> Result<Noted<Done>, Refusal> {
    controller
        .change_topology(|topology| topology.remove_kms(&kme_id))
        .await?;
    Ok(Noted::done(format!("KMS {kme_id} removed")))
}

/// All links.
#[utoipa::path(get, path = "/v1/links", tag = "records", responses((status = 200, body = [LinkRecord])))]
pub(super) async fn links(State(controller): State<Shared>) -> Json<Vec<LinkRecord>> {
    Json(
        controller
            .picture()
            .topology
            .links
            .values()
            .cloned()
            .collect(),
    )
}

/// Adds a link between two nodes.
#[utoipa::path(
    post, path = "/v1/links", tag = "records", request_body = LinkRecord,
    responses(
        (status = 201, body = LinkRecord),
        (status = 400, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn add_link(
    State(controller): State<Shared>,
    Body(record): Body<LinkRecord>,
) -> Result<Noted<LinkRecord>, Refusal> {
    let added = record.clone();
    controller
        .change_topology(|topology| topology.add_link(added))
        .await?;
    let note = format!(
        "link {} from {} to {} added",
        record.name, record.a, record.b
    );
    Ok(Noted(StatusCode::CREATED, record, note))
}

/// Removes a link and its intents. Its nodes go on as they are.
#[utoipa::path(
    delete, path = "/v1/links/{link}", tag = "records", params(("link" = String, Path, description = "name of the link")),
    responses((status = 200, body = Done), (status = 403, body = Problem), (status = 404, body = Problem))
)]
pub(super) async fn remove_link(
    State(controller): State<Shared>,
    Name(link): Name<String>,
) -> Result<Noted<Done>, Refusal> {
    let lock = controller.link_change(&link);
    let _held = lock.lock().await;
    controller
        .change_topology(|topology| topology.remove_link(&link))
        .await?;
    Ok(Noted::done(format!("link {link} and its intents removed")))
}

fn in_words(operation: &KeyOperation) -> String {
    match operation {
        KeyOperation::SoftReset => "soft reset".to_owned(),
        KeyOperation::HardReset => "hard reset".to_owned(),
        KeyOperation::Resize { slots } => format!("resize to {slots} slots"),
        KeyOperation::LoadOutbound { count } => format!("load {count} outbound keys"),
        KeyOperation::LoadInbound { key_ids } => format!("load {} inbound keys", key_ids.len()),
    }
}
