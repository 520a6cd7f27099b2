//! `cargo xtask disassemble`: what the compiler made of the cipher kernels, read back out of `qloak`.
//!
//! A kernel that is right can still be slow: an intrinsic that was called instead of inlined, or a wide
//! backend that was compiled to narrow instructions. No test of answers sees that, and a test of times
//! would cry wolf. So the instructions of each backend's functions are counted, and whom they call is
//! looked up.
//!
//! ```text
//!   qloak (ELF) -> image: functions, calls -> kernels of each backend -> rules: what must stand there
//! ```
//!
//! A backend's functions are those of its `Backend::run` (`with_features` in its name): everything that
//! works on registers is inlined there, or else it shows as a call.

mod image;
mod rules;

use std::{collections::BTreeMap, path::PathBuf};

use anstream::println;
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};

use crate::{
    lab,
    ui::{Done, Failure},
};
use image::{Function, Image};

/// Look for the wide instructions in the kernels, and for calls that should not be there.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Read this program instead of building `qloak`.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// `cargo xtask disassemble`.
pub(crate) fn run(arguments: &Arguments) -> Done {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(Failure::new(
            "the kernels that it knows are for x86-64, and this machine builds for another CPU",
        ));
    }
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => lab::build_product()?,
    };
    let kernels = kernels(&Image::read(&binary)?)?;
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "backend",
        "functions",
        "instruction",
        "for",
        "in functions",
        "wanted",
    ]);
    for found in rules::found(&kernels) {
        table.add_row(found);
    }
    println!("{table}");
    let findings = rules::findings(&kernels);
    if findings.is_empty() {
        println!("no kernel calls an intrinsic or a part of itself, divides or gathers");
        return Ok(());
    }
    Err(Failure::new(format!(
        "the kernels of {} are not what they should be (in a release build; a debug build inlines less)\n{}",
        binary.display(),
        findings.join("\n")
    )))
}

/// The functions of each backend, by its module's name.
type Kernels = BTreeMap<String, Vec<Function>>;

fn kernels(image: &Image) -> Done<Kernels> {
    let mut kernels = Kernels::new();
    for (address, name) in image.functions() {
        // <qloak_cipher::backend::aesni::Aesni as qloak_cipher::backend::Backend>::run::with_features
        let module = name
            .split_once("<qloak_cipher::backend::")
            .filter(|_| name.contains("::with_features"))
            .and_then(|(_, rest)| rest.split_once("::"));
        if let Some((module, _)) = module {
            let function = image.function(address)?;
            kernels.entry(module.to_owned()).or_default().push(function);
        }
    }
    if kernels.is_empty() {
        return Err(Failure::new(
            "the program has no kernels, or no symbols: it must not be stripped",
        ));
    }
    Ok(kernels)
}
