//! Finds circuits like those of `src/cipher/serpent/sbox.rs` and prints them as they stand there.
//!
//!     cargo run --release -p qloak-cipher --example serpent_circuits
//!
//! A circuit is a few helper gates, each of three inputs of the box, and one gate for each output.
//! The search tries every set of helpers, three first and then four, and takes an output as soon as
//! one gate makes it. The first circuit found is printed, which need not be the one that stands there; for
//! S6 it has a gate more, because a helper of the better one is made from another helper. It takes
//! many minutes on one core.
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
            let search = Search::new(&table);
            let circuit = (3..=4)
                .find_map(|helpers| search.extend(&Circuit::default(), 0, helpers))
                .expect("four helpers are enough for each box");
            print(number, &circuit, search.outputs);
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
}

impl Search {
    fn new(table: &[usize; 16]) -> Self {
        let outputs = std::array::from_fn(|bit| {
            let signal = (0..16).fold(0, |sum, value| {
                sum | ((table[value] >> bit & 1) as Signal) << value
            });
            (signal, told_apart(signal))
        });
        let mut helpers: Vec<_> = threes(INPUTS.len())
            .flat_map(|from| {
                (2..256)
                    .step_by(2)
                    .map(move |table| gate(table, from.map(|at| INPUTS[at])))
            })
            .filter(|signal| !INPUTS.contains(signal))
            .map(|signal| (signal, told_apart(signal)))
            .collect();
        helpers.sort_by_key(|(signal, pairs)| (std::cmp::Reverse(pairs.count_ones()), *signal));
        helpers.dedup();
        Self { outputs, helpers }
    }

    /// Adds `left` more helpers, from number `first` on, in every way until all outputs are made.
    fn extend(&self, circuit: &Circuit, first: usize, left: usize) -> Option<Circuit> {
        for (at, helper) in self.helpers.iter().enumerate().skip(first) {
            let useful = (0..4).any(|output| {
                circuit.misses(output) && circuit.makes(self.outputs[output].1, helper.1)
            });
            if left == 1 && !useful {
                continue;
            }
            let mut longer = circuit.clone();
            longer.add(*helper);
            if useful {
                self.take_outputs(&mut longer);
            }
            if longer.missing == 0 {
                return Some(longer);
            }
            if left > 1
                && let Some(found) = self.extend(&longer, at + 1, left - 1)
            {
                return Some(found);
            }
        }
        None
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

fn print(number: usize, circuit: &Circuit, outputs: [(Signal, Pairs); 4]) {
    println!("    {number}: v0 v1 v2 v3 {{");
    for (at, wanted) in circuit.signals.iter().enumerate().skip(INPUTS.len()) {
        let before = &circuit.signals[..at];
        let [a, b, c] = threes(at)
            .find(|from| from.iter().fold(wanted.1, |rest, at| rest & !before[*at].1) == 0)
            .expect("each signal but the inputs is one gate of those before");
        let table = table_of(wanted.0, [a, b, c].map(|at| before[at].0));
        println!("        v{at} = {table:#04x} v{a} v{b} v{c};");
    }
    let wires = outputs.map(|output| circuit.signals.iter().position(|signal| *signal == output));
    let [a, b, c, d] = wires.map(|wire| wire.expect("every output is made"));
    println!("    }} v{a} v{b} v{c} v{d};");
}

/// Any three of so many signals.
fn threes(count: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..count)
        .flat_map(move |a| (a + 1..count).flat_map(move |b| (b + 1..count).map(move |c| [a, b, c])))
}
