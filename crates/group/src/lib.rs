//! Kafka's group protocol, both ends, as pure state machines.
