//! The asking side: one base URL, one expected identity, one certificate of ours.
//!
//! What always holds: no request is sent to a server that [`crate::client_config`] does not trust; no
//! redirect and no proxy is followed; time and size of an answer are bounded; nothing is asked twice on
//! its own account, since asking a KME for a key uses one up.

use std::{error::Error as _, io, time::Duration};

use axum::body::Bytes;
use reqwest::{Method, Url, header};
use serde::{Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

use crate::{DoorError, Flow, TlsFiles, client_config, limits};

/// Asks one server. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    patience: Duration,
}

/// An answer as it came, whatever its status.
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body, at most [`limits::ANSWER_OCTETS_MAX`] octets; wiped on drop, since it may hold keys.
    pub body: Zeroizing<Vec<u8>>,
}

impl Client {
    /// A client for the server at `base_url` (`https://host:port`, a path prefix may follow), whose
    /// certificate must be made out to that host.
    ///
    /// # Errors
    /// Files that cannot be used, or a URL that is no HTTPS base.
    pub fn new(base_url: &str, files: &TlsFiles) -> Result<Self, DoorError> {
        Self::make(base_url, None, files)
    }

    /// A client for the server with this identity: its certificate must carry `name` as common name or
    /// as DNS name, wherever it is reached.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn expecting(base_url: &str, name: &str, files: &TlsFiles) -> Result<Self, DoorError> {
        Self::make(base_url, Some(name), files)
    }

    /// The same client with another time limit for an answer.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The base URL, without a slash at its end.
    pub fn base_url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    fn make(base_url: &str, expected: Option<&str>, files: &TlsFiles) -> Result<Self, DoorError> {
        let wrong = |reason: String| DoorError::Url {
            url: base_url.to_owned(),
            reason,
        };
        let base = Url::parse(base_url).map_err(|error| wrong(error.to_string()))?;
        if base.scheme() != "https" {
            return Err(wrong("it does not begin with https://".to_owned()));
        }
        if base.query().is_some() || base.fragment().is_some() || !base.username().is_empty() {
            return Err(wrong(
                "a base URL has no user, query or fragment".to_owned(),
            ));
        }
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(client_config(files, expected)?)
            .https_only(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(limits::CONNECT_TIME_MAX)
            .pool_idle_timeout(limits::CLIENT_IDLE_TIME_MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            http,
            base,
            patience: limits::ANSWER_TIME,
        })
    }

    /// GET a JSON document.
    ///
    /// # Errors
    /// Every case of [`DoorError`] from `Unreachable` on; a status outside 200 to 299 is an error.
    pub async fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, DoorError> {
        self.json(Method::GET, path, None).await
    }

    /// POST a JSON document and read one.
    ///
    /// # Errors
    /// As [`Client::get_json`].
    pub async fn post_json<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, DoorError> {
        let body = self.text_of(path, body)?;
        self.json(Method::POST, path, Some(body)).await
    }

    /// PUT a JSON document and read one.
    ///
    /// # Errors
    /// As [`Client::get_json`].
    pub async fn put_json<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, DoorError> {
        let body = self.text_of(path, body)?;
        self.json(Method::PUT, path, Some(body)).await
    }

    /// DELETE and read a JSON document; an empty answer reads as `null`.
    ///
    /// # Errors
    /// As [`Client::get_json`].
    pub async fn delete_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, DoorError> {
        self.json(Method::DELETE, path, None).await
    }

    /// Any method, a JSON text as body or none, the answer as it comes. `path` begins with a slash and
    /// may have a query; text that is not its own must be percent-encoded by the caller ([`segment`](Self::segment)).
    ///
    /// # Errors
    /// Every case of [`DoorError`] from `Unreachable` on except `Status` and `NotJson`.
    pub async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Reply, DoorError> {
        let url = format!("{}{path}", self.base_url());
        let mut response = self
            .send(&url, method, body, ("application/json", self.patience))
            .await?;
        let status = response.status().as_u16();
        let announced =
            usize::try_from(response.content_length().unwrap_or(4096)).unwrap_or(usize::MAX);
        let too_large = || DoorError::TooLarge {
            url: url.clone(),
            allowed: limits::ANSWER_OCTETS_MAX,
        };
        let mut body = Zeroizing::new(Vec::with_capacity(announced.min(limits::ANSWER_OCTETS_MAX)));
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.failed(&url, &error))?
        {
            if body.len() + chunk.len() > limits::ANSWER_OCTETS_MAX {
                return Err(too_large());
            }
            grow(&mut body, chunk.len());
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { status, body })
    }

    /// POST a JSON document and read an answer that comes bit by bit, for as long as `lasts` beside the usual time
    /// for an answer.
    ///
    /// # Errors
    /// As [`Client::get_json`], but `NotJson`.
    pub async fn post_flow<B: Serialize + ?Sized>(
        &self,
        path: &str,
        body: &B,
        lasts: Duration,
    ) -> Result<Flow, DoorError> {
        let url = format!("{}{path}", self.base_url());
        let body = self.text_of(path, body)?;
        let patience = self.patience + lasts;
        let response = self
            .send(&url, "POST", Some(body), ("*/*", patience))
            .await?;
        let status = response.status().as_u16();
        let client = self.clone().with_patience(patience);
        let mut flow = Flow::new(response, client, url.clone());
        if (200..300).contains(&status) {
            return Ok(flow);
        }
        let mut body = Vec::new();
        while let Some(piece) = flow.next().await? {
            body.extend_from_slice(&piece);
            if body.len() > limits::PROBLEM_OCTETS_MAX {
                break;
            }
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(DoorError::Status { url, status, body })
    }

    async fn send(
        &self,
        url: &str,
        method: &str,
        body: Option<Vec<u8>>,
        (accept, patience): (&str, Duration),
    ) -> Result<reqwest::Response, DoorError> {
        let wrong = |reason: String| DoorError::Url {
            url: url.to_owned(),
            reason,
        };
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        let target = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        let mut request = self
            .http
            .request(method, target)
            .timeout(patience)
            .header(header::ACCEPT, accept);
        if let Some(body) = body {
            // The body may hold keys: this buffer is wiped when the transport has let go of it.
            let body = Bytes::from_owner(Zeroizing::new(body));
            request = request
                .header(header::CONTENT_TYPE, "application/json")
                .body(body);
        }
        request
            .send()
            .await
            .map_err(|error| self.failed(url, &error))
    }

    /// A text as one segment of a path: everything but letters, digits and `-._~` percent-encoded
    /// (RFC 3986, 2.3).
    pub fn segment(text: &str) -> String {
        let mut encoded = String::with_capacity(text.len());
        for octet in text.bytes() {
            if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
                encoded.push(char::from(octet));
            } else {
                encoded.push_str(&format!("%{octet:02X}"));
            }
        }
        encoded
    }

    fn text_of<B: Serialize + ?Sized>(&self, path: &str, body: &B) -> Result<Vec<u8>, DoorError> {
        serde_json::to_vec(body).map_err(|error| DoorError::Url {
            url: format!("{}{path}", self.base_url()),
            reason: format!("the request cannot be written as JSON: {error}"),
        })
    }

    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, DoorError> {
        let reply = self.exchange(method.as_str(), path, body).await?;
        let url = format!("{}{path}", self.base_url());
        if !(200..300).contains(&reply.status) {
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            return Err(DoorError::Status {
                url,
                status: reply.status,
                body,
            });
        }
        let text: &[u8] = if reply.body.is_empty() {
            b"null"
        } else {
            &reply.body
        };
        serde_json::from_slice(text).map_err(|error| DoorError::NotJson {
            url,
            reason: error.to_string(),
        })
    }

    /// Finds the real cause in the chain of causes and says whose fault it is.
    pub(crate) fn failed(&self, url: &str, error: &reqwest::Error) -> DoorError {
        let url = url.to_owned();
        let (tls, words) = causes(error);
        // Once a connection stands, only a fault of certificates says that no handler was reached: in
        // TLS 1.3 the server judges ours after the client may have begun to send.
        if let Some(error) = tls.filter(|tls| error.is_connect() || about_certificates(tls)) {
            return blame(url, &error);
        }
        if error.is_connect() {
            return DoorError::Unreachable { url, cause: words };
        }
        if error.is_timeout() {
            let waited_ms = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
            return DoorError::Timeout { url, waited_ms };
        }
        DoorError::Broken { url, cause: words }
    }
}

/// Doubles into a new buffer and wipes the old one, which `Vec` would not do.
fn grow(body: &mut Zeroizing<Vec<u8>>, more: usize) {
    if body.capacity() - body.len() >= more {
        return;
    }
    let mut larger = Zeroizing::new(Vec::with_capacity((body.len() + more) * 2));
    larger.extend_from_slice(body);
    *body = larger;
}

/// The TLS error among the causes, if there is one, and the innermost cause in words. An
/// [`io::Error`] hides what it wraps from `source`, so it is opened by hand, layer by layer.
fn causes(error: &reqwest::Error) -> (Option<rustls::Error>, String) {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        words = cause.to_string();
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return (Some(tls.clone()), words);
        }
        next = match cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    (None, words)
}

fn about_certificates(error: &rustls::Error) -> bool {
    use rustls::{AlertDescription as Alert, Error};
    matches!(
        error,
        Error::InvalidCertificate(_)
            | Error::AlertReceived(
                Alert::CertificateRequired
                    | Alert::UnknownCA
                    | Alert::BadCertificate
                    | Alert::CertificateExpired
                    | Alert::CertificateRevoked
                    | Alert::CertificateUnknown
                    | Alert::UnsupportedCertificate
                    | Alert::AccessDenied
                    | Alert::DecryptError
            )
    )
}

/// rustls says precisely what happened; an operator wants to know at which end and what to do.
fn blame(url: String, error: &rustls::Error) -> DoorError {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};
    let not_trusted = |reason: &str| DoorError::ServerNotTrusted {
        url: url.clone(),
        reason: reason.to_owned(),
    };
    let refused = |reason: &str| DoorError::CallerRefused {
        url: url.clone(),
        reason: reason.to_owned(),
    };
    match error {
        // Another CA of the same name shows itself as a signature that does not verify.
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => not_trusted(
            "its certificate does not come from our CA; give both ends certificates of one CA, or name its CA in `ca`",
        ),
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => not_trusted(
            "its certificate has expired; make a new one there or set this machine's clock",
        ),
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            not_trusted("its certificate is not valid yet; compare the clocks of both machines")
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            not_trusted(
                "its certificate is made out to another name; is this the server that was meant, is the expected name right?",
            )
        }
        Error::InvalidCertificate(other) => {
            not_trusted(&format!("its certificate is not acceptable ({other})"))
        }
        Error::AlertReceived(Alert::CertificateRequired) => {
            refused("it wants a certificate and got none")
        }
        Error::AlertReceived(Alert::UnknownCA | Alert::BadCertificate | Alert::DecryptError) => {
            refused(
                "our certificate does not come from its CA; give both ends certificates of one CA",
            )
        }
        Error::AlertReceived(Alert::CertificateExpired) => refused(
            "our certificate has expired; make a new one or compare the clocks of both machines",
        ),
        Error::AlertReceived(alert) => refused(&format!("TLS alert {alert:?}")),
        other => refused(&format!(
            "no common TLS could be found ({other}); is this an HTTPS port?"
        )),
    }
}
