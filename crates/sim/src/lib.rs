//! The laboratory: a seeded world of members, a coordinator, and a network that breaks.
