//! Loads a library in C and looks up its functions, once, for the whole life of this program.
#![allow(unsafe_code)]

use libloading::Library;

/// The first of these files that the system's loader finds.
pub(super) fn library(files: &[&str]) -> Result<&'static Library, String> {
    for &file in files {
        // SAFETY: these libraries are made to be loaded at any time; what runs as they are loaded
        // sets up their own tables. They stay loaded, so no pointer into them ever dangles.
        if let Ok(library) = unsafe { Library::new(file) } {
            return Ok(Box::leak(Box::new(library)));
        }
    }
    Err(format!("{} is not installed", files.join(" or ")))
}

/// A text that a library of C keeps for ever.
pub(super) fn text(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return "version unknown".into();
    }
    // SAFETY: the caller has it from a library that promises a text with a zero at its end, which
    // lies in the library itself and so lives as long.
    let text = unsafe { std::ffi::CStr::from_ptr(pointer) };
    text.to_string_lossy().trim().to_owned()
}

/// A struct of functions of a library in C, found by their names.
macro_rules! symbols {
    ($name:ident { $($field:ident = $symbol:literal ($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        /// Functions of the library, as its headers declare them.
        #[derive(Clone, Copy)]
        struct $name {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $name {
            /// Finds them all.
            fn load(library: &'static libloading::Library) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let name = concat!($symbol, "\0").as_bytes();
                        // SAFETY: the signature is the one that the library's header declares for
                        // this name, and the library stays loaded.
                        *unsafe { library.get(name) }
                            .map_err(|_| format!("it has no {}", $symbol))?
                    },)*
                })
            }
        }
    };
}

pub(super) use symbols;
