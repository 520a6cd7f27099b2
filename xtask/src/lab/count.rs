//! Counting: what went in, what came out, what is missing. Taken twice for each phase, while nothing
//! is under way, so that the difference is exact.
//!
//! Lost is what a client port of one node took and the client port of the same number of the other
//! node did not hand out, both ways, and what the kernel dropped between its own stack and a node.
//! Frames that a closed channel refused are not lost: refusing them is what it is for. They are told apart.

use std::{collections::BTreeMap, process::Command, time::Duration};

use serde::{Deserialize, Serialize};

use super::state::Node;
use crate::{
    lab::network::{self, Space},
    proc,
    ui::{Context, Done},
};

/// The state of everything that counts frames.
pub(crate) struct Snapshot {
    pub(crate) a: Node,
    pub(crate) b: Node,
    kernel: Kernel,
}

/// What the kernel counts around the nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Kernel {
    /// Frames dropped at client ports, between the host's stack and a node.
    client_drops: u64,
    /// Frames dropped at the line's interfaces.
    line_drops: u64,
    /// TCP segments that the hosts sent again.
    tcp_again: u64,
}

/// What a phase did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Count {
    /// Client frames that the nodes took, both ways.
    pub(crate) taken: u64,
    /// Client frames that the far nodes handed out.
    pub(crate) delivered: u64,
    /// Taken and not delivered, and dropped by the kernel.
    pub(crate) lost: u64,
    /// Delivered and never taken: a frame that an attacker brought in. Never right.
    pub(crate) extra: u64,
    /// Discarded while a channel was closed.
    pub(crate) refused: u64,
    /// Frames that the kernel dropped, part of `lost`.
    pub(crate) kernel_drops: u64,
    /// TCP segments sent again: TCP's own opinion.
    pub(crate) tcp_again: u64,
    /// Client octets delivered.
    pub(crate) octets: u64,
    /// Line frames protected.
    pub(crate) line_frames: u64,
    /// Rekeys.
    pub(crate) rekeys: u64,
    /// Line frames refused as late or replayed.
    pub(crate) replayed: u64,
    /// Line frames whose ICV did not verify.
    pub(crate) not_valid: u64,
    /// Key agreement frames refused as forged or damaged.
    pub(crate) agreement_forged: u64,
    /// Key agreement frames refused as replayed.
    pub(crate) agreement_replayed: u64,
}

impl Snapshot {
    /// From two nodes and, where there are namespaces, the kernel.
    pub(crate) fn take(a: Node, b: Node, namespaces: bool) -> Done<Self> {
        let kernel = if namespaces {
            Kernel::read()?
        } else {
            Kernel::default()
        };
        Ok(Self { a, b, kernel })
    }

    /// What happened from `earlier` to here.
    pub(crate) fn since(&self, earlier: &Self) -> Count {
        let mut count = Count::default();
        for (near, far) in [
            ((&earlier.a, &self.a), (&earlier.b, &self.b)),
            ((&earlier.b, &self.b), (&earlier.a, &self.a)),
        ] {
            count.add_way(near, far);
        }
        let drops = |kernel: &Kernel| kernel.client_drops;
        count.kernel_drops = drops(&self.kernel).saturating_sub(drops(&earlier.kernel));
        count.lost += count.kernel_drops;
        count.tcp_again = self
            .kernel
            .tcp_again
            .saturating_sub(earlier.kernel.tcp_again);
        count
    }

    /// Where the counters of the two nodes contradict each other, channel by channel and way by way, in
    /// words. Both must have been still when the snapshots were taken.
    pub(crate) fn disagreements(&self, earlier: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for ((from, to), (far_from, far_to)) in [
            ((&earlier.a, &self.a), (&earlier.b, &self.b)),
            ((&earlier.b, &self.b), (&earlier.a, &self.a)),
        ] {
            let ends = from.channels.iter().zip(&to.channels);
            let far_ends = far_from.channels.iter().zip(&far_to.channels);
            for ((before, after), (far_before, far_after)) in ends.zip(far_ends) {
                let (out, was_out) = (&after.outbound.counters, &before.outbound.counters);
                let (into, was_into) = (&far_after.inbound.counters, &far_before.inbound.counters);
                let closed = out.no_sa > was_out.no_sa;
                for (what, near, far, holds) in [
                    (
                        "line frames",
                        out.protected_frames - was_out.protected_frames,
                        into.ok - was_into.ok,
                        true,
                    ),
                    // What waited in an open line frame when the channel closed was taken and never left.
                    (
                        "client frames",
                        out.client_frames - was_out.client_frames,
                        into.client_frames - was_into.client_frames,
                        !closed,
                    ),
                ] {
                    if holds && near != far {
                        found.push(format!(
                            "channel {}: {} sent {near} {what}, {} counted {far}",
                            after.name, to.node, far_to.node
                        ));
                    }
                }
            }
        }
        found
    }

    /// Frames dropped on the line itself, by the kernel or at a node's line port: for the words of a
    /// failure, since what was lost there is missing at the far side and counted already.
    pub(crate) fn line_drops_since(&self, earlier: &Self) -> u64 {
        let node =
            |node: &Node| node.line.counters.receive_dropped + node.line.counters.transmit_dropped;
        let all =
            |snapshot: &Self| snapshot.kernel.line_drops + node(&snapshot.a) + node(&snapshot.b);
        all(self).saturating_sub(all(earlier))
    }
}

impl Count {
    /// Adds one way: from the clients of `near` to those of `far`, each as (before, after).
    fn add_way(&mut self, near: (&Node, &Node), far: (&Node, &Node)) {
        let clients = near
            .0
            .clients
            .iter()
            .zip(&near.1.clients)
            .zip(far.0.clients.iter().zip(&far.1.clients));
        for ((before, after), (far_before, far_after)) in clients {
            let refused = after
                .discarded_closed
                .saturating_sub(before.discarded_closed);
            let oversize = after
                .discarded_oversize
                .saturating_sub(before.discarded_oversize);
            let received = after
                .port
                .counters
                .received_frames
                .saturating_sub(before.port.counters.received_frames);
            let delivered = far_after
                .delivered_frames
                .saturating_sub(far_before.delivered_frames);
            // A frame too long for the line is lost to the client whatever the reason.
            let taken = received.saturating_sub(refused);
            self.taken += taken;
            self.delivered += delivered;
            self.lost += taken.saturating_sub(delivered).max(oversize);
            self.extra += delivered.saturating_sub(taken);
            self.refused += refused;
        }
        for (before, after) in near.0.channels.iter().zip(&near.1.channels) {
            let (from, to) = (&before.outbound.counters, &after.outbound.counters);
            self.line_frames += to.protected_frames.saturating_sub(from.protected_frames);
            self.rekeys += after.rekeys.saturating_sub(before.rekeys);
            let (from, to) = (&before.inbound.counters, &after.inbound.counters);
            self.octets += to.client_octets.saturating_sub(from.client_octets);
            self.replayed += (to.late + to.replayed).saturating_sub(from.late + from.replayed);
            self.not_valid += to.not_valid.saturating_sub(from.not_valid);
        }
        let (from, to) = (&near.0.key_handler, &near.1.key_handler);
        self.agreement_forged += to.forged.saturating_sub(from.forged)
            + near
                .1
                .strays
                .bad_agreement
                .saturating_sub(near.0.strays.bad_agreement);
        self.agreement_replayed += to.replayed.saturating_sub(from.replayed);
    }

    /// What is missing or too much though no channel should have been closed, in words.
    pub(crate) fn losses(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.lost > 0 {
            found.push(format!(
                "{} client frames lost, {} of them dropped by the kernel at client ports",
                self.lost, self.kernel_drops
            ));
        }
        if self.extra > 0 {
            found.push(format!(
                "{} frames were delivered that no client had sent",
                self.extra
            ));
        }
        if self.refused > 0 {
            found.push(format!("{} frames met a closed channel", self.refused));
        }
        if self.taken == 0 {
            found.push("no traffic".to_owned());
        }
        found
    }

    /// Gb/s of client frames delivered, both ways together.
    pub(crate) fn gbps(&self, time: Duration) -> f64 {
        self.octets as f64 * 8e-9 / time.as_secs_f64().max(1e-3)
    }
}

/// An interface as `ip -j -s link` tells it.
#[derive(Deserialize)]
struct Interface {
    ifname: String,
    stats64: Stats,
}

#[derive(Deserialize)]
struct Stats {
    rx: Way,
    tx: Way,
}

#[derive(Deserialize)]
struct Way {
    dropped: u64,
    errors: u64,
}

impl Kernel {
    fn read() -> Done<Self> {
        let mut kernel = Self::default();
        for space in [Space::HostsA, Space::HostsB] {
            kernel.client_drops += drops(space, |name| name.starts_with('c'))?;
            let mut show = Command::new("ip");
            show.args(["netns", "exec", space.name(), "cat", "/proc/net/snmp"]);
            kernel.tcp_again += tcp_again(&proc::output(&mut show)?);
        }
        for space in [Space::A, Space::B] {
            kernel.line_drops += drops(space, |name| name.starts_with("line"))?;
        }
        Ok(kernel)
    }
}

fn drops(space: Space, wanted: impl Fn(&str) -> bool) -> Done<u64> {
    let text = network::interface_counters(space)?;
    let interfaces: Vec<Interface> =
        serde_json::from_str(&text).cannot("read what `ip -j -s link` says")?;
    let of = |way: &Way| way.dropped + way.errors;
    Ok(interfaces
        .iter()
        .filter(|interface| wanted(&interface.ifname))
        .map(|interface| of(&interface.stats64.rx) + of(&interface.stats64.tx))
        .sum())
}

/// `RetransSegs` of the two `Tcp:` lines, names and values.
fn tcp_again(snmp: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let values: BTreeMap<&str, &str> = names
        .split_whitespace()
        .zip(values.split_whitespace())
        .collect();
    values
        .get("RetransSegs")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(taken: u64, refused: u64, delivered: u64) -> Node {
        let text = serde_json::json!({
            "node": "node-a",
            "line": { "counters": counters(0) },
            "clients": [{
                "port": { "counters": counters(taken + refused) },
                "discarded_closed": refused, "discarded_oversize": 0, "delivered_frames": delivered,
            }],
            "channels": [],
            "strays": { "bad_tag": 0, "bad_agreement": 0 },
            "key_handler": {
                "outbound_keys": 0, "inbound_keys": 0, "kme_reachable": true, "peer_alive": true,
                "kme_requests": 0, "forged": 0, "replayed": 0,
            },
            "alarms": [],
        });
        serde_json::from_value(text).expect("a node")
    }

    fn counters(received: u64) -> serde_json::Value {
        serde_json::json!({
            "received_frames": received, "transmitted_frames": 0, "receive_dropped": 0,
            "transmit_dropped": 0, "malformed": 0,
        })
    }

    fn snapshot(a: Node, b: Node, client_drops: u64) -> Snapshot {
        let kernel = Kernel {
            client_drops,
            ..Kernel::default()
        };
        Snapshot { a, b, kernel }
    }

    #[test]
    fn nothing_is_lost_when_each_way_delivers_what_the_other_side_took() {
        let before = snapshot(node(5, 0, 7), node(7, 0, 5), 3);
        let after = snapshot(node(105, 0, 57), node(57, 0, 105), 3);
        let count = after.since(&before);
        assert_eq!((count.taken, count.delivered), (150, 150));
        assert_eq!((count.lost, count.extra), (0, 0));
    }

    #[test]
    fn a_loss_one_way_is_not_made_good_by_an_extra_frame_the_other_way() {
        let before = snapshot(node(0, 0, 0), node(0, 0, 0), 0);
        let after = snapshot(node(10, 0, 11), node(10, 0, 9), 0);
        let count = after.since(&before);
        assert_eq!((count.lost, count.extra), (1, 1));
    }

    #[test]
    fn refused_frames_are_told_apart_and_kernel_drops_are_lost() {
        let before = snapshot(node(0, 0, 0), node(0, 0, 0), 1);
        let after = snapshot(node(10, 4, 0), node(0, 0, 10), 3);
        let count = after.since(&before);
        assert_eq!((count.taken, count.refused, count.lost), (10, 4, 2));
    }

    /// A node with one channel that protected and took in so many frames.
    fn channel(sent: u64, no_sa: u64, received: u64) -> Node {
        let mut node = node(0, 0, 0);
        let text = serde_json::json!({
            "name": "trunk", "status": "open", "rekeys": 0, "last_suite_change_ms": null,
            "limits": { "seconds": 1, "rekey_at_percent": 1 },
            "outbound": {
                "encoding": null,
                "counters": { "protected_frames": sent, "client_frames": sent, "no_sa": no_sa },
            },
            "inbound": { "counters": {
                "ok": received, "late": 0, "replayed": 0, "not_valid": 0,
                "client_frames": received.saturating_sub(no_sa), "client_octets": 0,
            } },
        });
        node.channels = vec![serde_json::from_value(text).expect("a channel")];
        node
    }

    #[test]
    fn counters_of_two_nodes_agree_or_it_is_said_where_not() {
        let before = snapshot(channel(5, 0, 7), channel(7, 0, 5), 0);
        let agrees = snapshot(channel(15, 0, 27), channel(27, 0, 15), 0);
        assert_eq!(agrees.disagreements(&before), Vec::<String>::new());
        let fewer = snapshot(channel(15, 0, 27), channel(27, 0, 14), 0);
        let found = fewer.disagreements(&before);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("trunk") && found[0].contains("sent 10 line frames"));
    }

    #[test]
    fn what_a_closing_channel_held_is_no_disagreement() {
        let before = snapshot(channel(0, 0, 0), channel(0, 0, 0), 0);
        let after = snapshot(channel(10, 2, 0), channel(0, 2, 10), 0);
        assert_eq!(after.disagreements(&before), Vec::<String>::new());
    }

    #[test]
    fn losses_are_told_in_words() {
        let good = Count {
            taken: 1,
            ..Count::default()
        };
        assert_eq!(good.losses(), Vec::<String>::new());
        let bad = Count {
            taken: 9,
            lost: 2,
            extra: 1,
            refused: 3,
            ..Count::default()
        };
        assert_eq!(bad.losses().len(), 3);
        assert_eq!(Count::default().losses(), ["no traffic"]);
    }

    #[test]
    fn the_kernels_words_about_tcp() {
        let text = "Ip: A\nIp: 1\nTcp: ActiveOpens RetransSegs InErrs\nTcp: 3 42 0\n";
        assert_eq!(tcp_again(text), 42);
        assert_eq!(tcp_again("nothing"), 0);
    }
}
