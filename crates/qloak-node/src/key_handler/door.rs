//! What enters and leaves the key handler: the words between the state machine and its driver.
//!
//! The driver owes the machine four things. It carries out actions in their order. An
//! [`Action::InstallInbound`] is in force in the pipeline before a frame that is received after it is
//! validated (apply changes after receiving a batch, before validating it), since the far node may use
//! the SA as soon as it has read the [`Action::Send`] that follows. It reports [`Event::Usage`] at once
//! after a switch, since the far node is only told of a new encoding SA once the pipeline was seen to use
//! it; at once when a rekey has come due; and within milliseconds of a use. It calls with [`Event::Tick`] when
//! [`super::KeyHandler::next_wake_ns`] has come.

use std::fmt;

use qloak_api::{
    An, Carriage, ChannelNumber, KeyId, Limits, MacAddress, SaeId,
    manage::{Alarm, AlarmKind, ChannelStatus, KeyHandlerState},
};
use qloak_cipher::suite::Suite;
use qloak_keys::{NamedKey, derive::SakMaterial};

/// What a key handler is made of.
pub struct KeyHandlerConfig {
    /// Address of this node's line port.
    pub address: MacAddress,
    /// Address of the far node's line port.
    pub peer_address: MacAddress,
    /// SAE ID of this node.
    pub sae_id: SaeId,
    /// SAE ID of the far node.
    pub peer_sae_id: SaeId,
    /// Slots of the key RAM, 8 to 65536, half of them for each direction.
    pub ram_slots: u32,
    /// Outbound keys that are kept ready; never more than half of the slots.
    pub fill_keys: u32,
    /// Keys asked of the KME at once, 1 to 128.
    pub keys_per_request: u32,
    /// The channels, each number once.
    pub channels: Vec<AgreeChannel>,
    /// Suites that this node encodes with or accepts: self-tested, and hazmat only where allowed.
    pub offered: Vec<&'static Suite>,
    /// Random octets that tell this start of the node from every other.
    pub boot: [u8; 16],
    /// How long things take.
    pub timings: Timings,
}

/// A channel as the key handler sees it.
#[derive(Clone, Copy)]
pub struct AgreeChannel {
    /// Its number.
    pub number: ChannelNumber,
    /// The suite that it starts with.
    pub suite: &'static Suite,
    /// Limits of each outbound SA.
    pub limits: Limits,
    /// 64-bit packet numbers (XPN); otherwise 32-bit ones.
    pub xpn: bool,
    /// How client frames are carried; both ends must agree.
    pub carriage: Carriage,
}

/// How long things take, all in nanoseconds. The default suits a line of up to some hundred
/// kilometres; what each is for stands in docs/key-agreement.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// Between two copies of an announce that is not answered.
    pub announce_retry_ns: u64,
    /// After this long without ready, the alarm rises and copies become rarer.
    pub ready_timeout_ns: u64,
    /// How long an old inbound SA is kept once frames under the new one arrive.
    pub drain_ns: u64,
    /// Between the first two copies of a sync that tells something new; doubled from copy to copy up to
    /// `keepalive_ns`.
    pub sync_ns: u64,
    /// Between sync frames when there is nothing new.
    pub keepalive_ns: u64,
    /// After this long without an authentic frame the peer may have restarted.
    pub silent_ns: u64,
    /// After this long without an authentic frame the alarm rises.
    pub silent_alarm_ns: u64,
    /// Between two copies of a first announce (hello).
    pub hello_retry_ns: u64,
    /// After this long without an answer from a peer that is there, a hello takes another key; from the
    /// fourth time on doubled each time.
    pub hello_renew_ns: u64,
    /// One hello of unknown origin may cost a KME request in this time (three at once).
    pub hello_token_ns: u64,
    /// First pause after a failed request to the KME; doubled each time up to `kme_retry_max_ns`.
    pub kme_retry_ns: u64,
    /// Longest pause after a failed request to the KME.
    pub kme_retry_max_ns: u64,
    /// A request to the KME that is not answered within this time has failed.
    pub kme_timeout_ns: u64,
    /// Between two attempts at a change that the peer refused.
    pub refused_retry_ns: u64,
}

impl Default for Timings {
    fn default() -> Self {
        const MS: u64 = 1_000_000;
        Self {
            announce_retry_ns: 20 * MS,
            ready_timeout_ns: 500 * MS,
            drain_ns: 100 * MS,
            sync_ns: MS,
            keepalive_ns: 20 * MS,
            silent_ns: 200 * MS,
            silent_alarm_ns: 1000 * MS,
            hello_retry_ns: 50 * MS,
            hello_renew_ns: 2000 * MS,
            hello_token_ns: 1000 * MS,
            kme_retry_ns: 100 * MS,
            kme_retry_max_ns: 2000 * MS,
            kme_timeout_ns: 10_000 * MS,
            refused_retry_ns: 1000 * MS,
        }
    }
}

/// What the key handler is told.
pub enum Event<'a> {
    /// Time has passed.
    Tick,
    /// A frame of EtherType 0x88B5 came from the line: the whole frame without FCS.
    Frame(&'a [u8]),
    /// The KME answered [`Action::Take`].
    Taken {
        /// The number of the request.
        request: u64,
        /// Keys, or why there are none.
        result: Result<Vec<NamedKey>, SourceFailure>,
    },
    /// The KME answered [`Action::Fetch`].
    Fetched {
        /// The number of the request.
        request: u64,
        /// Keys, or why there are none.
        result: Result<Vec<NamedKey>, SourceFailure>,
    },
    /// How far the encoding SA of a channel is used.
    Usage {
        /// The channel.
        channel: ChannelNumber,
        /// The SA that the pipeline encodes with.
        an: An,
        /// Frames protected under it.
        frames: u64,
        /// Octets of secure data protected under it.
        octets: u64,
    },
    /// The first valid frame came in under this SA.
    Heard {
        /// The channel.
        channel: ChannelNumber,
        /// The SA.
        an: An,
    },
    /// An order; a refusal becomes [`Note::Refused`]. [`super::KeyHandler::command`] answers directly.
    Command(Command),
}

/// Why the KME gave no keys. Texts are for people; they never contain a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceFailure {
    /// No answer: no connection, TLS refused, or no reply in time. Keys may have been given and lost.
    #[error("the KME does not answer: {0}")]
    Unreachable(String),
    /// The KME answered that it will not: unknown key, unknown SAE, not allowed (400, 401, 403).
    #[error("the KME refuses: {0}")]
    Refused(String),
    /// The KME has no keys or cannot serve now (503).
    #[error("the KME has no keys now: {0}")]
    Empty(String),
    /// The answer is not what ETSI GS QKD 014 describes.
    #[error("the KME answers nonsense: {0}")]
    Nonsense(String),
}

/// What the key handler can be ordered to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The channel's next SAs have this suite; a change starts now.
    SetSuite {
        /// The channel.
        channel: ChannelNumber,
        /// The suite.
        suite: &'static Suite,
    },
    /// The limits of the channel's SAs, the present one included.
    SetLimits {
        /// The channel.
        channel: ChannelNumber,
        /// The limits.
        limits: Limits,
    },
    /// A new SA now.
    Rekey {
        /// The channel.
        channel: ChannelNumber,
    },
    /// Forget which keys wait and fetch anew; SAs in use go on.
    SoftReset,
    /// Zeroise every key, those of SAs too, and start again.
    HardReset,
    /// Change the number of slots; the youngest keys beyond the new size are zeroised.
    Resize {
        /// Slots, 8 to 65536.
        slots: u32,
    },
    /// Take keys at the KME into the outbound half now.
    LoadOutbound {
        /// How many, 1 to 128.
        count: u32,
    },
    /// Fetch these keys from the KME into the inbound half now.
    LoadInbound {
        /// Their names, 1 to 128.
        key_ids: Vec<KeyId>,
    },
}

/// Why a configuration or a command is not taken: what was given, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such channel.
    #[error("there is no channel {0}")]
    UnknownChannel(ChannelNumber),
    /// Two channels of one number.
    #[error("channel {0} is configured twice")]
    DoubleChannel(ChannelNumber),
    /// The suite failed its self-test, or is hazmat and not allowed here.
    #[error("suite {0} is not offered by this node")]
    NotOffered(&'static str),
    /// The suite has no form with 32-bit PNs.
    #[error(
        "suite {0} needs 64-bit packet numbers; channel {1} has 32-bit ones (aes-128-gcm and aes-256-gcm can)"
    )]
    PnForm(&'static str, ChannelNumber),
    /// A limit of zero, or a share outside 1 to 99.
    #[error(
        "limits must be at least 1 frame, 1 octet and 1 second, rekey_at_percent 1 to 99; given {frames} frames, {octets} octets, {seconds} s, {percent} %{}",
        every_us.map_or(String::new(), |us| format!(", a rekey each {us} us (rekey_every_us: 100 to 3600000000)"))
    )]
    Limits {
        /// Frames that were given.
        frames: u64,
        /// Octets that were given.
        octets: u64,
        /// Seconds that were given.
        seconds: u64,
        /// Share that was given.
        percent: u8,
        /// Time between rekeys that was given.
        every_us: Option<u64>,
    },
    /// A size that the key RAM cannot have.
    #[error("the key RAM has 8 to 65536 slots; {0} were asked for")]
    Slots(u32),
    /// A number of keys that cannot be asked for.
    #[error("{given} keys were asked for; {}", loadable(*allowed))]
    Count {
        /// Keys that were asked for.
        given: usize,
        /// Keys that fit.
        allowed: usize,
    },
    /// The key was delivered to this node before, or is on its way.
    #[error("key {0} was delivered to this node before or is on its way")]
    KnownKey(KeyId),
}

fn loadable(allowed: usize) -> String {
    match allowed {
        0 => "the key RAM is full: none can be loaded now".to_owned(),
        _ => format!("1 to {allowed} can be loaded now"),
    }
}

/// What the driver has to do, in this order.
pub enum Action {
    /// Transmit this whole Ethernet frame on the line port.
    Send(Vec<u8>),
    /// Ask the KME for new keys shared with the peer (enc_keys, the peer as slave SAE).
    Take {
        /// Comes back in [`Event::Taken`].
        request: u64,
        /// How many.
        count: u32,
    },
    /// Ask the KME for keys that the peer has taken (dec_keys, the peer as master SAE).
    Fetch {
        /// Comes back in [`Event::Fetched`].
        request: u64,
        /// Which.
        key_ids: Vec<KeyId>,
    },
    /// A new outbound SA, not yet used to encode.
    InstallOutbound {
        /// The channel.
        channel: ChannelNumber,
        /// Its number.
        an: An,
        /// The name of its key.
        key_id: KeyId,
        /// Its suite.
        suite: &'static Suite,
        /// Its SAK and salt.
        sak: SakMaterial,
    },
    /// From the next batch on, protect under this SA. Opens a closed channel.
    Encode {
        /// The channel.
        channel: ChannelNumber,
        /// The SA.
        an: An,
    },
    /// The outbound SA goes; zeroise its key.
    RetireOutbound {
        /// The channel.
        channel: ChannelNumber,
        /// The SA.
        an: An,
    },
    /// A further inbound SA is accepted.
    InstallInbound {
        /// The channel.
        channel: ChannelNumber,
        /// Its number.
        an: An,
        /// The name of its key.
        key_id: KeyId,
        /// Its suite.
        suite: &'static Suite,
        /// Its SAK and salt.
        sak: SakMaterial,
    },
    /// The inbound SA is accepted no longer; zeroise its key.
    RetireInbound {
        /// The channel.
        channel: ChannelNumber,
        /// The SA.
        an: An,
    },
    /// Nothing leaves on this channel until an SA encodes again.
    Close {
        /// The channel.
        channel: ChannelNumber,
    },
    /// Limits of the channel's SAs from now on, the present one included.
    SetLimits {
        /// The channel.
        channel: ChannelNumber,
        /// The limits.
        limits: Limits,
    },
    /// Something for the log.
    Note(Note),
}

/// What is worth a line in the log. Key IDs may be shown; keys never are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The peer proved who it is; the link speaks under a control key of its own.
    PeerFound,
    /// The peer has restarted: everything agreed with its former life is gone.
    PeerRestarted,
    /// A new SA encodes.
    Rekeyed {
        /// The channel.
        channel: ChannelNumber,
        /// The SA.
        an: An,
        /// The name of its key.
        key_id: KeyId,
        /// Its suite.
        suite: &'static str,
    },
    /// A change of suite is done.
    SuiteChanged {
        /// The channel.
        channel: ChannelNumber,
        /// The new suite.
        suite: &'static str,
        /// From the command to the last frame under the old suite, microseconds.
        took_us: u64,
    },
    /// An alarm rose.
    Raised {
        /// Its kind.
        kind: AlarmKind,
        /// The channel concerned, if one.
        channel: Option<ChannelNumber>,
        /// In words.
        text: String,
    },
    /// An alarm is over.
    Cleared {
        /// Its kind.
        kind: AlarmKind,
        /// The channel concerned, if one.
        channel: Option<ChannelNumber>,
    },
    /// A key was given up, since the peer cannot have it or its proof was wrong.
    KeyLost {
        /// Its name.
        key_id: KeyId,
    },
    /// A command that came as an event was refused.
    Refused(Refusal),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = |channel: &Option<ChannelNumber>| {
            channel
                .map(|c| format!("channel {c}: "))
                .unwrap_or_default()
        };
        match self {
            Self::PeerFound => write!(f, "the far node proved who it is"),
            Self::PeerRestarted => write!(f, "the far node has restarted; agreeing anew"),
            Self::Rekeyed {
                channel,
                an,
                key_id,
                suite,
            } => write!(
                f,
                "channel {channel}: SA {an} encodes, {suite}, key {key_id}"
            ),
            Self::SuiteChanged {
                channel,
                suite,
                took_us,
            } => write!(f, "channel {channel}: suite {suite} after {took_us} us"),
            Self::Raised {
                kind,
                channel,
                text,
            } => write!(f, "alarm {kind:?}: {}{text}", on(channel)),
            Self::Cleared { kind, channel } => {
                write!(
                    f,
                    "alarm {kind:?} is over{}",
                    channel
                        .map(|c| format!(" on channel {c}"))
                        .unwrap_or_default()
                )
            }
            Self::KeyLost { key_id } => write!(f, "key {key_id} was given up"),
            Self::Refused(refusal) => write!(f, "command refused: {refusal}"),
        }
    }
}

/// The key handler as it shows itself.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreeState {
    /// Counters and sizes.
    pub key_handler: KeyHandlerState,
    /// What is wrong now, oldest first.
    pub alarms: Vec<Alarm>,
    /// The channels, in the order of the configuration.
    pub channels: Vec<ChannelAgreement>,
    /// Agreement frames that did not parse.
    pub malformed: u64,
}

/// A channel as it shows itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelAgreement {
    /// Its number.
    pub number: ChannelNumber,
    /// Whether it carries frames.
    pub status: ChannelStatus,
    /// The suite that was asked for.
    pub suite_intended: &'static Suite,
    /// Limits of each SA.
    pub limits: Limits,
    /// The encoding SA.
    pub encoding: Option<AgreedSa>,
    /// Inbound SAs that are accepted, oldest first.
    pub accepted: Vec<AgreedSa>,
    /// A change is under way.
    pub changing: bool,
    /// Rekeys finished since start, outbound.
    pub rekeys: u64,
    /// The last change of suite, milliseconds from the command to the switch.
    pub last_suite_change_ms: Option<f64>,
}

/// An SA as it shows itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgreedSa {
    /// Its number.
    pub an: An,
    /// Its suite.
    pub suite: &'static Suite,
    /// The name of its key.
    pub key_id: KeyId,
    /// Seconds since it was installed.
    pub age_s: u64,
}
