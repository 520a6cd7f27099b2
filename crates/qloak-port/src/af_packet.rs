//! A packet socket as a port.
use crate::{AfPacketConfig, Batch, Counters, Kind, Port, PortError, Sizes};
use std::os::fd::BorrowedFd;
/// A packet socket.
pub(crate) struct AfPacketPort {
    name: String,
}
impl AfPacketPort {
    pub(crate) fn open(config: &AfPacketConfig, _sizes: &Sizes) -> Result<Self, PortError> {
        Err(PortError::Kernel {
            interface: config.interface.clone(),
            what: "open a packet socket",
            error: std::io::ErrorKind::Unsupported.into(),
        })
    }
}
impl Port for AfPacketPort {
    fn name(&self) -> &str {
        &self.name
    }
    fn kind(&self) -> Kind {
        Kind::AfPacket
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
