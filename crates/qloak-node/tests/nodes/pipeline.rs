//! The threads of the pipeline: one or two, on chosen cores, asleep or awake. Frames pass all the same.

use std::{collections::BTreeSet, fs, thread, time::Duration};

use crate::{
    collect,
    lab::{Lab, Mood, frame},
};

/// Frames each way on each channel.
const FRAMES: u32 = 2000;

/// A lab whose nodes have more to say, and wires that hold so many frames on the line.
async fn lab(tables: &str, wire_frames: usize) -> Lab {
    let mut lab = Lab::start_with(Mood::Good, 1, tables).await;
    lab.stop().await;
    for node in ["a.toml", "b.toml"] {
        let path = lab.folder.path().join(node);
        let text = fs::read_to_string(&path).expect("a configuration");
        let line = text.lines().find(|line| line.starts_with("lanes = "));
        let line = line.expect("a line port");
        let short = line
            .replace("-line-0", "-short-0")
            .replace(" }", &format!(", frames = {wire_frames} }}"));
        fs::write(&path, text.replace(line, &short)).expect("written");
    }
    lab.restart().await;
    lab.until_open().await;
    lab
}

/// Both ways at once on both channels while keys change: every frame arrives, in order.
async fn pass(lab: &Lab) {
    let mut ends = Vec::new();
    for client in [1, 3] {
        let (a, b) = (lab.customer("a", client), lab.customer("b", client));
        ends.push((client, a.twin(), b.twin()));
        ends.push((client, b, a));
    }
    let senders: Vec<_> = ends
        .into_iter()
        .map(|(client, mut near, mut far)| {
            let sending = thread::spawn(move || {
                for number in 0..FRAMES {
                    near.send(&frame(number, octets(number)));
                    if number % 100 == 0 {
                        thread::sleep(Duration::from_millis(10));
                    }
                }
            });
            let receiving = thread::spawn(move || {
                let mut got = Vec::new();
                collect(&mut far, &mut got, FRAMES as usize);
                got
            });
            (client, sending, receiving)
        })
        .collect();
    for (node, channel) in [(0, 1), (1, 1), (0, 2), (1, 2)].repeat(3) {
        let path = format!("/v1/channels/{channel}/rekey");
        let admin = lab.manage(node, "admin");
        admin.post_json::<_, ()>(&path, &()).await.expect("taken");
    }
    for (client, sending, receiving) in senders {
        sending.join().expect("sent");
        let got = receiving.join().expect("received");
        assert_eq!(got.len(), FRAMES as usize, "client port {client}");
        let wrong = (0..FRAMES)
            .zip(&got)
            .find(|(number, got)| **got != frame(*number, octets(*number)));
        assert!(
            wrong.is_none(),
            "client port {client}: frame {:?}",
            wrong.map(|(n, _)| n)
        );
    }
    for node in [0, 1] {
        let state = lab.state(node).await.expect("it answers");
        assert!(state.channels.iter().all(|channel| channel.rekeys > 0));
    }
}

fn octets(number: u32) -> usize {
    60 + (number as usize * 37) % 1400
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_thread_carries_both_ways_and_loses_nothing_while_keys_change() {
    let mut lab = lab("[pipeline]\nthreads = 1\n", 4096).await;
    pass(&lab).await;
    lab.stop().await;
}

/// Each node's one thread finds the line full again and again, while the far node's thread finds the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_nodes_of_one_thread_do_not_wait_for_each_other_on_a_full_line() {
    let mut lab = lab("[pipeline]\nthreads = 1\n", 2).await;
    pass(&lab).await;
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_never_sleep_carry_the_same() {
    let mut lab = lab("[pipeline]\nthreads = 1\nbusy_poll = true\n", 4096).await;
    pass(&lab).await;
    lab.stop().await;
}

/// What the kernel says of each thread of this process: its name and its cores (proc(5)).
fn threads() -> Vec<(String, String)> {
    let tasks = fs::read_dir("/proc/self/task").expect("threads").flatten();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let told = |status: String| {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().to_owned())
        };
        Some((field("Name:")?, field("Cpus_allowed_list:")?))
    };
    statuses.filter_map(told).collect()
}

/// The highest core that this process may use.
fn last_core() -> usize {
    let all: BTreeSet<String> = threads().into_iter().map(|(_, cores)| cores).collect();
    let numbers = all.iter().flat_map(|cores| cores.split([',', '-']));
    let last = numbers.filter_map(|number| number.parse().ok()).max();
    last.expect("a core")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_run_on_the_cores_that_the_configuration_names() {
    let core = last_core();
    let tables = format!("[pipeline]\ncores = [{core}]\n");
    let mut lab = lab(&tables, 4096).await;
    pass(&lab).await;
    let threads = threads();
    for name in ["node-a-out", "node-a-in", "node-b-out", "node-b-in"] {
        // Other tests of this process have threads of these names too, on no core of their own.
        let mut named = threads.iter().filter(|(thread, _)| thread == name);
        assert!(
            named.any(|(_, cores)| *cores == core.to_string()),
            "{name}: {threads:?}"
        );
    }
    lab.stop().await;
}
