//! The SDN controller: intent, plan, observed.
