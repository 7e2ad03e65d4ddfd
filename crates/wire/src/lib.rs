//! Kafka wire format: bytes to messages and back, without IO or state.
