//! Nodes and KMSs by their own REST doors, over mutual TLS. The certificate at the other end must be
//! made out to the name of the record, wherever the URL leads.

use std::{sync::Arc, time::Duration};

use qloak_api::{
    CaptureOrder, ChannelNumber, Limits, Problem, SuiteEntry,
    control::{KmsRecord, NodeRecord},
    kms::KmsState,
    manage::{KeyOperation, NodeState, SetSuite},
};
use qloak_door::{Client, DoorError, Flow, TlsFiles};
use serde::{Serialize, de::DeserializeOwned};

use super::{Answer, Dial, SouthError, Southbound, Watched};
use crate::limits;

/// Makes clients that show this controller's certificate.
pub struct RestDial {
    tls: TlsFiles,
}

impl RestDial {
    /// With the certificate in these files, read when a client is made.
    pub fn new(tls: TlsFiles) -> Self {
        Self { tls }
    }

    fn peer(&self, url: &str, name: &str) -> Peer {
        let client = Client::expecting(url, name, &self.tls);
        Peer {
            client: client
                .map(|client| client.with_patience(limits::PATIENCE))
                .map_err(|error| error.to_string()),
        }
    }
}

impl Dial for RestDial {
    fn node(&self, record: &NodeRecord) -> Arc<dyn Southbound> {
        Arc::new(self.peer(&record.url, record.name.as_str()))
    }

    fn kms(&self, record: &KmsRecord) -> Arc<dyn Watched> {
        Arc::new(self.peer(&record.url, &record.kme_id))
    }
}

/// A client, or why there can be none; the reason then stands in each answer.
struct Peer {
    client: Result<Client, String>,
}

impl Peer {
    fn client(&self) -> Result<&Client, SouthError> {
        self.client
            .as_ref()
            .map_err(|why| SouthError::Failed(why.clone()))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, SouthError> {
        self.client()?.get_json(path).await.map_err(blame)
    }

    /// A command. Of the answer only the status counts: a command that was taken was taken.
    async fn command(
        &self,
        method: &str,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<(), SouthError> {
        let client = self.client()?;
        let body = body
            .map(serde_json::to_vec)
            .transpose()
            .map_err(|error| SouthError::Failed(error.to_string()))?;
        let reply = client.exchange(method, path, body).await.map_err(blame)?;
        if (200..300).contains(&reply.status) {
            return Ok(());
        }
        Err(blame(DoorError::Status {
            url: format!("{}{path}", client.base_url()),
            status: reply.status,
            body: String::from_utf8_lossy(&reply.body).into_owned(),
        }))
    }
}

impl Southbound for Peer {
    fn state(&self) -> Answer<'_, NodeState> {
        Box::pin(self.get("/v1/state"))
    }

    fn library(&self) -> Answer<'_, Vec<SuiteEntry>> {
        Box::pin(self.get("/v1/suites"))
    }

    fn set_suite<'a>(&'a self, channel: ChannelNumber, suite: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let suite = suite.to_owned();
            let path = format!("/v1/channels/{channel}/suite");
            self.command("PUT", &path, Some(&SetSuite { suite })).await
        })
    }

    fn set_limits<'a>(&'a self, channel: ChannelNumber, limits: &'a Limits) -> Answer<'a, ()> {
        Box::pin(async move {
            let path = format!("/v1/channels/{channel}/limits");
            self.command("PUT", &path, Some(limits)).await
        })
    }

    fn rekey(&self, channel: ChannelNumber) -> Answer<'_, ()> {
        Box::pin(async move {
            let path = format!("/v1/channels/{channel}/rekey");
            self.command("POST", &path, None::<&()>).await
        })
    }

    fn keys<'a>(&'a self, operation: &'a KeyOperation) -> Answer<'a, ()> {
        Box::pin(self.command("POST", "/v1/keys", Some(operation)))
    }

    fn capture<'a>(&'a self, order: &'a CaptureOrder) -> Answer<'a, Flow> {
        Box::pin(async move {
            let lasts = Duration::from_secs(order.seconds.into());
            let flow = self.client()?.post_flow("/v1/capture", order, lasts).await;
            flow.map_err(blame)
        })
    }
}

impl Watched for Peer {
    fn state(&self) -> Answer<'_, KmsState> {
        Box::pin(self.get("/v1/state"))
    }
}

/// A client error is a refusal and will be one again; anything else may pass.
fn blame(error: DoorError) -> SouthError {
    match error {
        DoorError::Status { status, body, .. }
            if (400..500).contains(&status) && !matches!(status, 408 | 425 | 429) =>
        {
            let detail = serde_json::from_str::<Problem>(&body).map(|problem| problem.detail);
            SouthError::Refused(detail.unwrap_or_else(|_| format!("it answered {status}")))
        }
        other => SouthError::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, body: &str) -> DoorError {
        DoorError::Status {
            url: String::new(),
            status,
            body: body.to_owned(),
        }
    }

    #[test]
    fn a_refusal_is_told_from_a_failure() {
        let problem = serde_json::to_string(&Problem::conflict("not here")).expect("JSON");
        assert_eq!(
            blame(status(409, &problem)),
            SouthError::Refused("not here".to_owned())
        );
        assert!(matches!(
            blame(status(404, "<html>")),
            SouthError::Refused(_)
        ));
        assert!(matches!(blame(status(429, "")), SouthError::Failed(_)));
        assert!(matches!(
            blame(status(500, &problem)),
            SouthError::Failed(_)
        ));
    }
}
