//! A Kafka client whose consumer groups rebalance without stopping the world.
