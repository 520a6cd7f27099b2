//! Finds the circuits of `src/cipher/serpent/sbox.rs` and prints them as they stand there.
//!
//!     cargo run --release -p qloak-cipher --example serpent_circuits
//!
//! A circuit is a few helper gates, each of three inputs of the box, and one gate for each output.
//! The search tries every set of helpers, three first and then four, and takes an output as soon as
//! one gate makes it. Of the circuits found it keeps the one that takes fewest gates of two inputs,
//! for CPUs that have only those. It takes some minutes on one core.
//!
//! What makes it quick: a signal is a set, the pairs of input values that it tells apart. An output
//! is one gate of `a`, `b` and `c` if and only if each pair that it tells apart is told apart by
//! one of them.

/// The S-boxes of the submission, appendix A.5.
const BOXES: [[usize; 16]; 8] = [
    [3, 8, 15, 1, 10, 6, 5, 11, 14, 13, 4, 2, 7, 0, 9, 12],
    [15, 12, 2, 7, 9, 0, 5, 10, 1, 11, 14, 8, 6, 13, 3, 4],
    [8, 6, 7, 9, 3, 12, 10, 15, 13, 1, 14, 4, 0, 11, 5, 2],
    [0, 15, 11, 8, 12, 9, 6, 3, 13, 1, 2, 4, 10, 7, 5, 14],
    [1, 15, 8, 3, 12, 0, 11, 6, 2, 5, 4, 10, 9, 14, 7, 13],
    [15, 5, 2, 11, 4, 10, 9, 12, 0, 3, 14, 8, 13, 6, 7, 1],
    [7, 2, 12, 5, 8, 4, 6, 11, 14, 9, 1, 15, 13, 3, 10, 0],
    [1, 13, 15, 0, 14, 8, 2, 11, 7, 4, 12, 10, 9, 3, 5, 6],
];

/// A signal's value for each of the sixteen input values.
type Signal = u16;

/// The inputs: bit `j` of each input value.
const INPUTS: [Signal; 4] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

/// Circuits looked at for one box; the order of the search makes the choice repeatable.
const CIRCUITS_MAX: usize = 2000;

fn main() {
    for (inverse, name) in [(false, "forward"), (true, "inverse")] {
        println!("    {name}");
        for (number, forward) in BOXES.iter().enumerate() {
            let mut table = *forward;
            if inverse {
                for (value, output) in forward.iter().enumerate() {
                    table[*output] = value;
                }
            }
            let mut search = Search::new(&table);
            for helpers in 3..=4 {
                search.extend(&Circuit::default(), 0, helpers);
                if search.found > 0 {
                    break;
                }
            }
            let (_, circuit) = search.best.expect("four helpers are enough for each box");
            print(number, &circuit, &search.outputs);
        }
    }
}

/// A set of pairs of input values, one bit each.
type Pairs = u128;

fn told_apart(signal: Signal) -> Pairs {
    let pairs = (0..16).flat_map(|high| (0..high).map(move |low| (high, low)));
    pairs.zip(0..).fold(0, |sum, ((high, low), at)| {
        sum | u128::from((signal >> high ^ signal >> low) & 1) << at
    })
}

/// The signals so far: the inputs, then a gate each.
#[derive(Clone)]
struct Circuit {
    signals: Vec<(Signal, Pairs)>,
    /// What two signals tell apart, for all two of them.
    twos: Vec<Pairs>,
    /// Outputs not yet made, a bit each.
    missing: u8,
}

impl Default for Circuit {
    fn default() -> Self {
        let mut circuit = Self {
            signals: Vec::new(),
            twos: Vec::new(),
            missing: 0b1111,
        };
        for input in INPUTS {
            circuit.add((input, told_apart(input)));
        }
        circuit
    }
}

impl Circuit {
    fn add(&mut self, signal: (Signal, Pairs)) {
        self.twos
            .extend(self.signals.iter().map(|(_, other)| other | signal.1));
        self.signals.push(signal);
    }

    /// Whether a gate of `third` and two signals tells all these apart.
    fn makes(&self, wanted: Pairs, third: Pairs) -> bool {
        let rest = wanted & !third;
        self.twos.iter().any(|two| rest & !two == 0)
    }

    fn misses(&self, output: usize) -> bool {
        self.missing >> output & 1 == 1
    }
}

struct Search {
    outputs: [(Signal, Pairs); 4],
    /// Every function of three inputs that is 0 at 0: a gate takes in a complement for nothing.
    helpers: Vec<(Signal, Pairs)>,
    /// Gates of two inputs that a table takes.
    costs: [usize; 256],
    found: usize,
    best: Option<(usize, Vec<Gate>)>,
}

/// A signal, its table and the numbers of its inputs.
type Gate = (Signal, usize, [usize; 3]);

impl Search {
    fn new(table: &[usize; 16]) -> Self {
        let outputs = std::array::from_fn(|bit| {
            let signal = (0..16).fold(0, |sum, value| {
                sum | ((table[value] >> bit & 1) as Signal) << value
            });
            (signal, told_apart(signal))
        });
        let mut helpers: Vec<_> = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
            .iter()
            .flat_map(|from| {
                (2..256)
                    .step_by(2)
                    .map(|table| gate(table, from.map(|at| INPUTS[at])))
            })
            .filter(|signal| !INPUTS.contains(signal))
            .map(|signal| (signal, told_apart(signal)))
            .collect();
        helpers.sort_by_key(|(signal, pairs)| (std::cmp::Reverse(pairs.count_ones()), *signal));
        helpers.dedup();
        Self {
            outputs,
            helpers,
            costs: costs(),
            found: 0,
            best: None,
        }
    }

    /// Adds `left` more helpers, from number `first` on, in every way.
    fn extend(&mut self, circuit: &Circuit, first: usize, left: usize) {
        for at in first..self.helpers.len() {
            let helper = self.helpers[at];
            let useful = (0..4).any(|output| {
                circuit.misses(output) && circuit.makes(self.outputs[output].1, helper.1)
            });
            if left == 1 && !useful {
                continue;
            }
            let mut longer = circuit.clone();
            longer.add(helper);
            if useful {
                self.take_outputs(&mut longer);
            }
            if longer.missing == 0 {
                self.keep(&longer);
            } else if left > 1 {
                self.extend(&longer, at + 1, left - 1);
            }
            if self.found == CIRCUITS_MAX {
                return;
            }
        }
    }

    fn take_outputs(&self, circuit: &mut Circuit) {
        while let Some(output) = (0..4).find(|&output| {
            let wanted = self.outputs[output].1;
            let mut signals = circuit.signals.iter();
            circuit.misses(output) && signals.any(|(_, third)| circuit.makes(wanted, *third))
        }) {
            circuit.missing &= !(1 << output);
            circuit.add(self.outputs[output]);
        }
    }

    fn keep(&mut self, circuit: &Circuit) {
        self.found += 1;
        let gates: Vec<_> = (4..circuit.signals.len())
            .map(|at| self.cheapest(&circuit.signals[..at], circuit.signals[at]))
            .collect();
        let cost = gates.iter().map(|(_, table, _)| self.costs[*table]).sum();
        if self.best.as_ref().is_none_or(|(least, _)| cost < *least) {
            self.best = Some((cost, gates));
        }
    }

    /// The gate of three of these signals that makes `wanted` with the cheapest table.
    fn cheapest(&self, signals: &[(Signal, Pairs)], wanted: (Signal, Pairs)) -> Gate {
        let count = signals.len();
        (0..count)
            .flat_map(|a| (a + 1..count).flat_map(move |b| (b + 1..count).map(move |c| [a, b, c])))
            .filter(|from| {
                from.iter()
                    .fold(wanted.1, |rest, at| rest & !signals[*at].1)
                    == 0
            })
            .map(|from| {
                (
                    wanted.0,
                    table_of(wanted.0, from.map(|at| signals[at].0)),
                    from,
                )
            })
            .min_by_key(|(_, table, _)| self.costs[*table])
            .expect("only what one gate makes was added")
    }
}

/// The signal of a gate.
fn gate(table: usize, from: [Signal; 3]) -> Signal {
    (0..16).fold(0, |sum, value| {
        sum | ((table >> place(from, value) & 1) as Signal) << value
    })
}

/// The table of the gate that makes `signal`, zero where its inputs never are.
fn table_of(signal: Signal, from: [Signal; 3]) -> usize {
    (0..16).fold(0, |sum, value| {
        sum | usize::from(signal >> value & 1) << place(from, value)
    })
}

/// The bit of a table that three signals choose.
fn place(from: [Signal; 3], value: usize) -> usize {
    from.iter()
        .fold(0, |sum, signal| sum << 1 | usize::from(signal >> value & 1))
}

/// For each table the fewest gates of two inputs in a tree that makes it.
fn costs() -> [usize; 256] {
    let mut costs = [usize::MAX / 4; 256];
    for free in [0x00, 0xff, 0xf0, 0xcc, 0xaa] {
        costs[free] = 0;
    }
    loop {
        let before = costs;
        for a in 0..256 {
            for b in 0..256 {
                for made in [a & b, a | b, a ^ b, !a & b] {
                    costs[made & 0xff] = costs[made & 0xff].min(costs[a] + costs[b] + 1);
                }
            }
        }
        if costs == before {
            return costs;
        }
    }
}

fn print(number: usize, circuit: &[Gate], outputs: &[(Signal, Pairs); 4]) {
    println!("    {number}: v0 v1 v2 v3 {{");
    for (at, (_, table, [a, b, c])) in (4..).zip(circuit) {
        println!("        v{at} = {table:#04x} v{a} v{b} v{c};");
    }
    let wire = |output: &(Signal, _)| {
        4 + circuit
            .iter()
            .position(|(signal, ..)| *signal == output.0)
            .expect("an output")
    };
    let [a, b, c, d] = outputs.each_ref().map(wire);
    println!("    }} v{a} v{b} v{c} v{d};");
}
