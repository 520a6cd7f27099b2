//! Where frames come from and go to: memory, capture files, TAP, AF_PACKET behind one trait.
