//! Captures by way of the controller: handed through as they come, for operators, and written down.

use std::time::{Duration, Instant};

use qloak_api::{CaptureOrder, Side, control::AuditRecord};
use qloak_door::{Client, DoorError};

use crate::lab::{CAPTURED, Lab};

const PATH: &str = "/v1/nodes/node-a/capture";

fn order(side: Side, frames: u64) -> CaptureOrder {
    CaptureOrder {
        side,
        port: None,
        seconds: 5,
        frames,
        snap_octets: 64,
    }
}

async fn asked(client: &Client, path: &str, order: &CaptureOrder) -> Result<Vec<u8>, DoorError> {
    let mut flow = client
        .post_flow(path, order, Duration::from_secs(5))
        .await?;
    let mut all = Vec::new();
    while let Some(piece) = flow.next().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

fn refused(answer: Result<Vec<u8>, DoorError>) -> (u16, String) {
    match answer {
        Err(DoorError::Status { status, body, .. }) => (status, body),
        other => panic!("not refused: {other:?}"),
    }
}

async fn audit(lab: &Lab, wanted: &str) -> Vec<AuditRecord> {
    let begun = Instant::now();
    loop {
        let log: Vec<AuditRecord> = lab
            .as_caller("alice")
            .get_json("/v1/audit")
            .await
            .expect("the log");
        if log.iter().any(|line| line.outcome.contains(wanted)) {
            return log;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{wanted:?} is missing in {log:#?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_capture_is_handed_through_and_written_down() {
    let lab = Lab::start().await;
    let alice = lab.as_caller("alice");
    let whole: Vec<u8> = CAPTURED
        .iter()
        .flat_map(|piece| piece.repeat(250).into_bytes())
        .collect();
    assert_eq!(
        asked(&alice, PATH, &order(Side::Line, 100))
            .await
            .expect("octets"),
        whole
    );
    let log = audit(&lab, "complete").await;
    let (begun, ended) = (&log[log.len() - 2], &log[log.len() - 1]);
    assert_eq!(
        (begun.caller.as_str(), ended.caller.as_str()),
        ("alice", "alice")
    );
    assert!(
        begun.outcome.contains("the line side of node-a begun"),
        "{begun:?}"
    );
    let size = format!("{} octets", whole.len());
    assert!(ended.outcome.contains(&size), "{ended:?}");
}

#[tokio::test]
async fn a_capture_that_ends_in_the_middle_does_not_look_whole() {
    let lab = Lab::start().await;
    let cut = asked(&lab.as_caller("alice"), PATH, &order(Side::Line, 13)).await;
    assert!(matches!(cut, Err(DoorError::Broken { .. })), "{cut:?}");
    audit(&lab, "cut: ").await;
}

#[tokio::test]
async fn a_capture_is_refused_by_whoever_is_to_refuse_it() {
    let lab = Lab::start().await;
    let alice = lab.as_caller("alice");
    let by_role = asked(&lab.as_caller("node-b"), PATH, &order(Side::Line, 100)).await;
    assert_eq!(refused(by_role).0, 403);
    let (status, why) = refused(asked(&alice, PATH, &order(Side::Line, 0)).await);
    assert!(status == 400 && why.contains("frames is 0"), "{why}");
    let nowhere = asked(&alice, "/v1/nodes/node-x/capture", &order(Side::Line, 1)).await;
    assert_eq!(refused(nowhere).0, 404);
    assert!(lab.a.inside().commands.is_empty(), "the node was not asked");
    let (status, why) = refused(asked(&alice, PATH, &order(Side::Client, 100)).await);
    assert!(
        status == 409 && why.contains("node-a refused: set capture in node-a.toml"),
        "{why}"
    );
    audit(&lab, "refused with 403").await;
}
