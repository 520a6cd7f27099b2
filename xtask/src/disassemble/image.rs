//! A program's functions, taken apart: which instructions with which registers, and whom they call.
//!
//! A call goes straight to an address, or through a slot of a table that the loader fills (`call
//! [rip + slot]`, or the slot in a register first). What a slot will hold stands in the program's dynamic
//! relocations, so that a function whose address is taken counts as called.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

use crate::ui::{Context, Done, Failure};

/// A width of vector registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Width {
    Xmm,
    Ymm,
    Zmm,
}

/// What was found in one function.
#[derive(Debug, Default)]
pub(super) struct Function {
    /// Instructions by the widest register that they name, if they name one.
    pub(super) counts: HashMap<(Mnemonic, Option<Width>), usize>,
    /// Functions that it calls, or whose address it takes.
    pub(super) calls: BTreeSet<String>,
}

/// A program.
pub(super) struct Image {
    /// Code and where it lies.
    text: Vec<(u64, Vec<u8>)>,
    /// Functions: address, size, name as the compiler wrote it.
    symbols: BTreeMap<u64, (u64, String)>,
    /// What the loader writes where: a function's address.
    slots: HashMap<u64, u64>,
    /// Slots of functions of other libraries, by name.
    imports: HashMap<u64, String>,
}

impl Image {
    /// Reads an ELF file.
    pub(super) fn read(path: &Path) -> Done<Self> {
        let octets = fs::read(path).cannot(format_args!("read {}", path.display()))?;
        let file = object::File::parse(&*octets).cannot(format_args!(
            "read {} as a program: give a program of this workspace for x86-64, such as target/release/qloak",
            path.display()
        ))?;
        let mut image = Self {
            text: Vec::new(),
            symbols: BTreeMap::new(),
            slots: HashMap::new(),
            imports: HashMap::new(),
        };
        for section in file.sections() {
            if section.kind() == object::SectionKind::Text {
                let code = section.data().cannot("read the program's code")?;
                image.text.push((section.address(), code.to_vec()));
            }
        }
        for symbol in file.symbols() {
            if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
                let name = symbol.name().unwrap_or_default().to_owned();
                image
                    .symbols
                    .insert(symbol.address(), (symbol.size(), name));
            }
        }
        let dynamic = file.dynamic_symbol_table();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            match relocation.target() {
                RelocationTarget::Absolute => {
                    image.slots.insert(at, relocation.addend().cast_unsigned());
                }
                RelocationTarget::Symbol(index) => {
                    let symbol = dynamic.as_ref().and_then(|table| {
                        object::ObjectSymbolTable::symbol_by_index(table, index).ok()
                    });
                    let name = symbol.and_then(|symbol| symbol.name().ok().map(str::to_owned));
                    image.imports.extend(name.map(|name| (at, name)));
                }
                _ => {}
            }
        }
        Ok(image)
    }

    /// Every function's address and its name for people.
    pub(super) fn functions(&self) -> impl Iterator<Item = (u64, String)> {
        self.symbols
            .iter()
            .map(|(address, (_, name))| (*address, readable(name)))
    }

    /// Takes the function at an address apart.
    pub(super) fn function(&self, address: u64) -> Done<Function> {
        let code = self.code(address).ok_or_else(|| {
            Failure::new(format!(
                "the function at {address:#x} lies outside the program's code"
            ))
        })?;
        let mut function = Function::default();
        let end = address + code.len() as u64;
        for instruction in Decoder::with_ip(64, code, address, DecoderOptions::NONE).iter() {
            if instruction.is_invalid() {
                return Err(Failure::new(format!(
                    "{:#x} is no instruction that the disassembler knows",
                    instruction.ip()
                )));
            }
            let kind = (instruction.mnemonic(), width(&instruction));
            *function.counts.entry(kind).or_default() += 1;
            let target = self.target(&instruction);
            // Jumps inside the function are its own.
            if let Some(target) = target.filter(|target| !(address..end).contains(target)) {
                function.calls.extend(self.name(target));
            }
        }
        Ok(function)
    }

    fn code(&self, address: u64) -> Option<&[u8]> {
        let (size, _) = self.symbols.get(&address)?;
        self.text.iter().find_map(|(start, code)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            code.get(from..from.checked_add(usize::try_from(*size).ok()?)?)
        })
    }

    /// The address that an instruction jumps to, calls, takes, or reads out of a slot; the slot itself
    /// where another library fills it.
    fn target(&self, instruction: &Instruction) -> Option<u64> {
        let near = [OpKind::NearBranch64, OpKind::NearBranch32];
        if instruction.op_count() > 0 && near.contains(&instruction.op0_kind()) {
            return Some(instruction.near_branch_target());
        }
        if !instruction.is_ip_rel_memory_operand() {
            return None;
        }
        let at = instruction.ip_rel_memory_address();
        Some(self.slots.get(&at).copied().unwrap_or(at))
    }

    /// The function at an address.
    fn name(&self, address: u64) -> Option<String> {
        let own = self.symbols.get(&address).map(|(_, name)| readable(name));
        own.or_else(|| self.imports.get(&address).cloned())
    }
}

/// The widest vector register that an instruction names.
fn width(instruction: &Instruction) -> Option<Width> {
    let operands = 0..instruction.op_count();
    operands
        .filter(|operand| instruction.op_kind(*operand) == OpKind::Register)
        .filter_map(|operand| of(instruction.op_register(operand)))
        .max()
}

fn of(register: Register) -> Option<Width> {
    let widths = [
        (Register::XMM0..=Register::XMM31, Width::Xmm),
        (Register::YMM0..=Register::YMM31, Width::Ymm),
        (Register::ZMM0..=Register::ZMM31, Width::Zmm),
    ];
    widths
        .into_iter()
        .find_map(|(range, width)| range.contains(&register).then_some(width))
}

/// The name that people wrote, without the compiler's hash.
fn readable(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of one function, as if it were a program.
    fn made_up(code: &[u8]) -> Image {
        let size = code.len() as u64;
        Image {
            text: vec![(0x1000, code.to_vec())],
            symbols: BTreeMap::from([
                (0x1000, (size, "kernel".to_owned())),
                (0x2000, (1, "callee".to_owned())),
            ]),
            slots: HashMap::from([(0x3000, 0x2000)]),
            imports: HashMap::from([(0x3008, "memcpy".to_owned())]),
        }
    }

    #[test]
    fn instructions_are_counted_by_width() {
        // vaesenc xmm0, xmm1, xmm2; the same with ymm, twice; ret
        let code = [
            0xc4, 0xe2, 0x71, 0xdc, 0xc2, 0xc4, 0xe2, 0x75, 0xdc, 0xc2, 0xc4, 0xe2, 0x75, 0xdc,
            0xc2, 0xc3,
        ];
        let function = made_up(&code).function(0x1000).expect("code");
        let count = |width| function.counts[&(Mnemonic::Vaesenc, Some(width))];
        assert_eq!((count(Width::Xmm), count(Width::Ymm)), (1, 2));
        assert_eq!(function.counts[&(Mnemonic::Ret, None)], 1);
        assert!(function.calls.is_empty());
    }

    #[test]
    fn calls_are_found_straight_and_through_slots() {
        let straight = [0xe8, 0xfb, 0x0f, 0x00, 0x00]; // call 0x2000
        let slot = [0xff, 0x15, 0xfa, 0x1f, 0x00, 0x00]; // call [0x3000]
        let taken = [0x4c, 0x8b, 0x3d, 0xf9, 0x1f, 0x00, 0x00]; // mov r15, [0x3000]
        let import = [0xff, 0x15, 0x02, 0x20, 0x00, 0x00]; // call [0x3008]
        for (code, name) in [
            (&straight[..], "callee"),
            (&slot, "callee"),
            (&taken, "callee"),
            (&import, "memcpy"),
        ] {
            let function = made_up(code).function(0x1000).expect("code");
            assert_eq!(
                function.calls,
                BTreeSet::from([name.to_owned()]),
                "{code:x?}"
            );
        }
    }

    #[inline(never)]
    fn called(number: u64) -> u64 {
        std::hint::black_box(number)
    }

    #[inline(never)]
    fn calling(number: u64) -> u64 {
        called(number) + 1
    }

    /// This program itself.
    #[test]
    fn a_real_program_can_be_read() {
        assert_eq!(calling(1), 2);
        let image = Image::read(&std::env::current_exe().expect("a path")).expect("an ELF file");
        let (address, _) = image
            .functions()
            .find(|(_, name)| name.ends_with("image::tests::calling"))
            .expect("a symbol");
        let function = image.function(address).expect("code");
        let called = |name: &String| name.ends_with("image::tests::called");
        assert!(function.calls.iter().any(called), "{:?}", function.calls);
    }
}
