//! A TAP interface as a port.
use crate::{Batch, Counters, Kind, Port, PortError, Sizes, TapConfig};
use std::os::fd::BorrowedFd;
/// A TAP interface.
pub(crate) struct TapPort {
    name: String,
}
impl TapPort {
    pub(crate) fn open(config: &TapConfig, _sizes: &Sizes) -> Result<Self, PortError> {
        Err(PortError::Kernel {
            interface: config.interface.clone(),
            what: "open a TAP interface",
            error: std::io::ErrorKind::Unsupported.into(),
        })
    }
}
impl Port for TapPort {
    fn name(&self) -> &str {
        &self.name
    }
    fn kind(&self) -> Kind {
        Kind::Tap
    }
    fn mac(&self) -> Option<[u8; 6]> {
        None
    }
    fn receive(&mut self, _batch: &mut Batch) -> Result<usize, PortError> {
        Ok(0)
    }
    fn transmit(&mut self, _batch: &mut Batch) -> Result<usize, PortError> {
        Ok(0)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(Self {
            name: self.name.clone(),
        }))
    }
    fn finished(&self) -> bool {
        false
    }
}
